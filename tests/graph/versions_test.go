package graph

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// sdk is the module of an SDK, and the folder with the go.mod that names its version.
type sdk struct{ module, folder string }

// sdks are those of the plugins' versions, by the name of their provider. The plugin for Proxmox VE is newer than the program's SDK.
var sdks = map[string]sdk{
	"command":    {"github.com/pulumi/pulumi-command/sdk", "."},
	"kubernetes": {"github.com/pulumi/pulumi-kubernetes/sdk/v4", "."},
	"proxmoxve":  {"github.com/muhlba91/pulumi-proxmoxve/sdk/v7", "tests/plugins"},
	"talos":      {"github.com/pulumiverse/pulumi-talos/sdk", "."},
	"tls":        {"github.com/pulumi/pulumi-tls/sdk/v5", "."},
}

// A registration without a version lets Pulumi run the newest plugin that is installed, or fetch the newest that exists.
func TestResources_NameTheVersionOfTheirSDK(t *testing.T) {
	versions := sdkVersions(t)
	eachStack(t, func(t *testing.T, _ *cluster.Cluster, rec *mocks.Recorder) {
		seen := map[string]bool{}
		for _, reg := range rec.Find(func(reg mocks.Registration) bool { return reg.Custom && reg.Type != typeStash }) {
			provider, isProvider := strings.CutPrefix(reg.Type, "pulumi:providers:")
			if !isProvider {
				provider, _, _ = strings.Cut(reg.Type, ":")
			}
			require.Contains(t, versions, provider, "%s %s", reg.Type, reg.Name)
			assert.Equal(t, versions[provider], reg.RPC.GetVersion(), "%s %s", reg.Type, reg.Name)
			seen[provider] = true
		}
		assert.Len(t, seen, len(sdks))
		require.NotEmpty(t, rec.Calls())
		for _, call := range rec.Calls() {
			provider, _, _ := strings.Cut(call.Token, ":")
			assert.Equal(t, versions[provider], call.Version, "%s", call.Token)
		}
	})
}

// sdkVersions reads the versions of the SDKs from the go.mod of each, by the name of their provider.
func sdkVersions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for provider, of := range sdks {
		path := filepath.Join(clusters.Root(t), of.folder, "go.mod")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		file, err := modfile.Parse(path, text, nil)
		require.NoError(t, err)
		for _, required := range file.Require {
			if required.Mod.Path == of.module {
				versions[provider] = strings.TrimPrefix(required.Mod.Version, "v")
			}
		}
	}
	require.Len(t, versions, len(sdks))
	return versions
}

// An older CLI may lack what the program's SDK asks of the engine, such as hooks and stashes.
func TestProject_RequiresACLIAsRecentAsItsSDK(t *testing.T) {
	project, err := workspace.LoadProject("Pulumi.yaml")
	require.NoError(t, err)
	module, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	sdk := regexp.MustCompile(`github\.com/pulumi/pulumi/sdk/v3 v(\S+)`).FindSubmatch(module)
	require.NotNil(t, sdk)
	assert.Equal(t, ">="+string(sdk[1]), project.RequiredPulumiVersion)
	assert.NoError(t, plugin.ValidatePulumiVersionRange(project.RequiredPulumiVersion, "v"+string(sdk[1])))
	assert.ErrorContains(t, plugin.ValidatePulumiVersionRange(project.RequiredPulumiVersion, "v3.100.0"), "does not satisfy")
}
