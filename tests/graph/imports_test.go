package graph

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The SDK's helm and yaml packages import every Kubernetes kind there is: minutes of CPU and gigabytes of memory, at
// each cold compile of the program, in each PR check.
func TestProgram_ImportsNoPackageThatTakesMinutesToCompile(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	list.Dir = "../.."
	out, err := list.Output()
	require.NoError(t, err)
	imports := strings.Fields(string(out))

	const kubernetes = "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	assert.Contains(t, imports, kubernetes+"/core/v1", "the list is that of the program")
	for _, path := range imports {
		for _, heavy := range []string{kubernetes + "/helm/", kubernetes + "/yaml", kubernetes + "/kustomize"} {
			assert.False(t, strings.HasPrefix(path, heavy), "%s is imported; components/helm and apiextensions do without", path)
		}
	}
}
