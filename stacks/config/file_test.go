package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

// root is the repository's root, and samples has the copies of its stack files.
const (
	root    = "../.."
	samples = root + "/tests/clusters/samples"
)

func TestStackFiles_AreValidAndHoldNoSecret(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samples, "Pulumi.*.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 2, "infra and apps at least")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			source, err := ParseFile(file, text)
			require.NoError(t, err)
			require.Empty(t, source.written)
			for key, value := range source.Values {
				assert.False(t, value.Secret, "%s is encrypted, so that only one passphrase could read it", key)
			}
			assert.JSONEq(t, `["*"]`, source.Values["pulumi:disable-default-providers"].Text())

			first, _, _ := strings.Cut(string(text), "\n")
			assert.Equal(t, "# yaml-language-server: $schema=stacks/config/"+schemaFile, first, "editors look for it there")

			stack, err := Load(source)
			require.NoError(t, err)
			assert.False(t, stack.GitPassword.IsSet())
			assert.False(t, stack.ProxmoxAPIToken.IsSet())
		})
	}
}

func TestStackFiles_DeclareTheTwoClusters(t *testing.T) {
	for _, want := range []struct {
		stack, pods, mesh, gateway, gitPath string
		id, controlPlanes, workers          int
		storage                             cluster.StorageRole
	}{
		{"infra", "10.244.0.0/16", "10.25.11.100", "10.25.11.120", "kubernetes/clusters/infra", 1, 3, 2, cluster.StorageProvider},
		{"apps", "10.246.0.0/16", "10.25.12.100", "10.25.12.120", "kubernetes/clusters/apps", 2, 3, 3, cluster.StorageConsumer},
	} {
		t.Run(want.stack, func(t *testing.T) {
			stack, err := loadFile(filepath.Join(samples, "Pulumi."+want.stack+".yaml"))
			require.NoError(t, err)
			assert.Equal(t, want.stack, stack.Stack)
			assert.Equal(t, want.stack, stack.Identity.Name)
			assert.Equal(t, want.id, stack.Identity.ID)
			assert.Equal(t, netip.MustParsePrefix(want.pods), stack.Network.PodCIDR)
			assert.Equal(t, netip.MustParseAddr(want.mesh), stack.Network.LoadBalancers.Mesh)
			assert.Equal(t, netip.MustParseAddr(want.gateway), stack.Network.LoadBalancers.Gateway)
			assert.Equal(t, want.gitPath, stack.GitOps.Path)
			assert.Equal(t, want.storage, stack.Storage.Role)
			assert.Len(t, stack.ControlPlanes(), want.controlPlanes)
			assert.Len(t, stack.WorkerMachines(), want.workers)
		})
	}
}

// The clusters share a Proxmox cluster, a mesh and a network, so their names, ids and addresses must differ.
func TestStackFiles_ShareNoIdentity(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samples, "Pulumi.*.yaml"))
	require.NoError(t, err)
	var all []*cluster.Cluster
	for _, file := range files {
		c, err := loadFile(file)
		require.NoError(t, err)
		all = append(all, c)
	}
	require.GreaterOrEqual(t, len(all), 2)
	for i, problems := range cluster.Compare(all) {
		assert.Empty(t, problems, files[i])
	}
}

func TestParseFile_NamesTheFileInItsErrors(t *testing.T) {
	const broken = "some/Pulumi.broken.yaml"
	_, err := ParseFile(broken, []byte("a: &a [*a]\n"))
	assert.EqualError(t, err, broken+": line 1: is part of what its alias stands for, so that it never ends; write it without the alias")
}

func TestProjectFile_BindsNoStackToAKey(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Pulumi.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "name: "+Namespace+"\n")
	assert.NotContains(t, string(text), "config:", "a key of the project file must be in every stack file")
}

// The engine hands a program JSON, in which 01121 is 593 already.
func TestCheckText_RefusesWhatPulumiWouldChangeSilently(t *testing.T) {
	folder := t.TempDir()
	assert.NoError(t, CheckText(folder, "infra"), "a file elsewhere is not looked for")
	text := "config:\n  slipway:nodePools: [{nodes: [{vmId: 01121}]}]\n"
	for _, name := range []string{"Pulumi.infra.yml", "Pulumi.infra.yaml"} {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		assert.ErrorContains(t, CheckText(folder, "infra"), "did you mean 1121?", name)
		assert.NoError(t, CheckText(folder, "apps"))
		require.NoError(t, os.Remove(path))
	}
	assert.NoError(t, CheckText(root, "infra"))
}

// Pulumi resolves the environment, and hands the program its values together with those of the file.
func TestCheckText_AcceptsAFileWhoseConfigurationIsInAnEnvironment(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "Pulumi.infra.yaml")
	require.NoError(t, os.WriteFile(path, []byte("environment:\n  - slipway/infra\n"), 0o600))
	assert.NoError(t, CheckText(folder, "infra"))
	_, err := loadFile(path)
	assert.EqualError(t, err, "config: is missing, and nothing here reads an environment; check the stack with: pulumi preview")
}

// Pulumi takes a key without a namespace for one of the project's (stackConfigNamespacedWithProject in its go/common/workspace).
func TestParseFile_ReportsKeysThatPulumiGivesToTheProject(t *testing.T) {
	folder := t.TempDir()
	minimal, err := os.ReadFile(filepath.Join(fixturesFolder, "valid", "minimal.yaml"))
	require.NoError(t, err)
	text := strings.Replace(string(minimal), "  slipway:gitops:", "  gitops:", 1)
	text = strings.Replace(text, "config:", "encryptionsalt: v1:notasalt\nconfig:\n"+
		"  home:gitPassword: {secure: \"v1:AAECAwQFBgcICQoL:bm90IGEgcmVhbCBjaXBoZXJ0ZXh0\"}", 1)
	for project, want := range map[string][]string{
		"slipway": {"home:gitPassword: is not a key of slipway; write it as slipway:gitPassword"},
		"home": {
			"gitops: is a key of the project home to Pulumi; write slipway:gitops",
			"home:gitPassword: is not a key of slipway; write it as slipway:gitPassword",
		},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "Pulumi.yaml"), []byte("name: "+project+"\nruntime: go\n"), 0o600))
		source, err := ParseFile(filepath.Join(folder, "Pulumi.home.yaml"), []byte(text))
		require.NoError(t, err)
		_, err = Load(source)
		assert.Equal(t, strings.Join(want, "\n"), err.Error(), project)
	}
}
