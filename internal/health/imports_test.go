package health_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The Pulumi program imports these packages for their specs. If they imported client-go, every preview would compile and link it.
func TestHealth_DependsOnTheStandardLibraryAndPurePackagesOnly(t *testing.T) {
	const module = "github.com/slipway-platform/slipway/"
	pure := []string{module + "internal/health", module + "internal/health/kube", module + "internal/probe", module + "cluster"}
	for _, spec := range []string{"gate", "workloads", "handover"} {
		path := module + "internal/health/" + spec
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", path).Output()
		require.NoError(t, err)
		dependencies := strings.Fields(string(out))
		assert.Contains(t, dependencies, module+"internal/health", "the list is that of the package")
		assert.Subset(t, append(pure, path), dependencies)
	}
}
