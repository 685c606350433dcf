package health_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Checks judge what was observed. One that asked the cluster itself could not be tested without one.
func TestHealth_DependsOnNoClientAndNoPulumi(t *testing.T) {
	for _, spec := range []string{
		"health/gate", "health/workloads", "health/externalsecrets", "health/mesh", "health/storage", "health/own", "engines/flux/handover",
		"engines/argocd/handover",
	} {
		path := "github.com/slipway-platform/slipway/internal/" + spec
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", path).Output()
		require.NoError(t, err)
		dependencies := strings.Fields(string(out))
		assert.Contains(t, dependencies, "github.com/slipway-platform/slipway/internal/health", "the list is that of the package")
		for _, dependency := range dependencies {
			assert.NotContains(t, dependency, "k8s.io/client-go")
			assert.NotContains(t, dependency, "github.com/pulumi/")
		}
	}
}
