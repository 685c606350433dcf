package graph

import (
	"os"
	"regexp"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An older CLI may lack what the program's SDK asks of the engine, such as hooks and stashes.
func TestProject_RequiresACLIAsRecentAsItsSDK(t *testing.T) {
	project, err := workspace.LoadProject("../../Pulumi.yaml")
	require.NoError(t, err)
	module, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	sdk := regexp.MustCompile(`github\.com/pulumi/pulumi/sdk/v3 v(\S+)`).FindSubmatch(module)
	require.NotNil(t, sdk)
	assert.Equal(t, ">="+string(sdk[1]), project.RequiredPulumiVersion)
	assert.NoError(t, plugin.ValidatePulumiVersionRange(project.RequiredPulumiVersion, "v"+string(sdk[1])))
	assert.ErrorContains(t, plugin.ValidatePulumiVersionRange(project.RequiredPulumiVersion, "v3.100.0"), "does not satisfy")
}
