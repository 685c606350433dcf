package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

// project returns a folder with the stack files home and other, which are peers, after changes of the latter's text.
func project(t *testing.T, changes ...string) string {
	t.Helper()
	file := fixtures.Write(t, "mesh", "home")
	other := strings.NewReplacer(changes...).Replace(fixtures.Peer())
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), "Pulumi.other.yaml"), []byte(other), 0o600))
	return file
}

func TestLoad_ReadsThePeersOfAMesh(t *testing.T) {
	stack, err := loadFile(project(t))
	require.NoError(t, err)
	require.Len(t, stack.Mesh.Clusters, 1)
	peer := stack.Mesh.Clusters[0]
	assert.Equal(t, "other other 2 1 10.25.12.100", strings.Join([]string{
		peer.Stack, peer.Name, string(rune('0' + peer.ID)), string(rune('0' + peer.Nodes)), peer.Address.String(),
	}, " "))
}

// The folder in which the command runs may be another project.
func TestLoad_ReadsKeysOfAPeerByTheProjectBesideIt(t *testing.T) {
	short := func(name string) string {
		file := project(t, "  slipway:gitops:", "  gitops:")
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), "Pulumi.yaml"), []byte("name: "+name+"\nruntime: go\n"), 0o600))
		return file
	}
	elsewhere := filepath.Dir(short("website"))
	t.Chdir(elsewhere)
	_, err := loadFile(short("slipway"))
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	_, err = loadFile(short("home"))
	assert.ErrorContains(t, err, "gitops: is a key of the project home to Pulumi; write slipway:gitops")
}

func TestLoad_RefusesPeersWithProblems(t *testing.T) {
	const notListed = "mesh.peers[0]: other does not list this stack as its peer; add home to mesh.peers of other"
	for want, path := range map[string]string{
		notListed: project(t, "peers: [home, infra]", "peers: []"),
		"cluster.id: 1 is cluster.id of other; pick another":                      project(t, "id: 2\n", "id: 1\n"),
		"mesh.peers[0]: other has a stack file with problems: cluster.id: 300 is": project(t, "id: 2\n", "id: 300\n"),
	} {
		_, err := loadFile(path)
		assert.ErrorContains(t, err, want)
	}
	_, err := loadFile(project(t, "id: 2\n", "id: 300\n"))
	assert.ErrorContains(t, err, "; see all of them with: slipway check other")
	path := project(t)
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(path), "Pulumi.other.yaml")))
	_, err = loadFile(path)
	assert.ErrorContains(t, err, "mesh.peers[0]: other has no stack file beside this one; write Pulumi.other.yaml, or name another stack")
}

// A consumer that takes over from another one has the same namespace on purpose, so this is a warning, which the file can accept.
func TestLoad_WarnsOfAConsumerWithTheNamespaceOfAnother(t *testing.T) {
	file := fixtures.Write(t, "storage-consumer-apart", "home")
	folder := filepath.Dir(file)
	text := fixtures.Get("storage-consumer-apart").Text
	for stack, change := range map[string][2]string{
		"twin": {}, "apart": {"radosNamespace: home", "radosNamespace: apart"}, "elsewhere": {"provider: other", "provider: third"},
		"together": {", radosNamespace: home", ""}, "broken": {"id: 1\n", "id: 300\n"},
	} {
		changed := strings.Replace(text, change[0], change[1], 1)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "Pulumi."+stack+".yaml"), []byte(changed), 0o600))
	}
	stack, err := loadFile(file)
	require.NoError(t, err)
	var said []string
	for _, advice := range stack.Advice(time.Now()) {
		if advice.Path == "storage.radosNamespace" {
			said = append(said, advice.Error())
		}
	}
	assert.Equal(t, []string{"storage.radosNamespace: home is also that of twin: each can read and delete the volumes of the other; " +
		"write another one in the newer cluster, unless both are to have the same volumes"}, said)

	require.NoError(t, os.Remove(filepath.Join(folder, "Pulumi.twin.yaml")))
	stack, err = loadFile(file)
	require.NoError(t, err)
	assert.Empty(t, stack.Storage.SameNamespace)
}
