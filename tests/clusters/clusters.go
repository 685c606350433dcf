// Package clusters provides the clusters of the committed stack files to tests, unchanged or with changes. The folder samples has copies of
// the stack files, which `make golden` writes: who edits the stack files for clusters of their own breaks no test.
package clusters

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/stacks/config"
)

// GitPassword is the Git password of every cluster.
const GitPassword = "GIT-PASSWORD-MARKER"

// Infra returns the cluster of Pulumi.infra.yaml after the changes. A key that follows another key keeps its value unless a change
// empties it. Without the machines whose disks it provides, the cluster provides no storage. If Complete finds a problem, the test fails.
func Infra(t testing.TB, changes ...func(*cluster.Cluster)) *cluster.Cluster {
	t.Helper()
	return Load(t, Sample(t, "infra"), changes...)
}

const samples = "tests/clusters/samples"

// Sample returns the path of the copy of a stack file, beside which those of the other stacks are.
func Sample(t testing.TB, stack string) string {
	t.Helper()
	return filepath.Join(Root(t), samples, "Pulumi."+stack+".yaml")
}

// Samples returns the paths of all copies.
func Samples(t testing.TB) []string {
	t.Helper()
	return []string{Sample(t, "apps"), Sample(t, "infra")}
}

// Project fills a folder with links to what the repository has, but with the copies in place of its stack files.
func Project(folder, repository string) error {
	repository, err := filepath.Abs(repository)
	if err != nil {
		return err
	}
	for _, from := range []string{repository, filepath.Join(repository, samples)} {
		entries, err := os.ReadDir(from)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if isStack, _ := filepath.Match("Pulumi.*.y*ml", entry.Name()); isStack && from == repository {
				continue
			}
			if err := os.Symlink(filepath.Join(from, entry.Name()), filepath.Join(folder, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Load returns the cluster of a stack file after the changes. It is in no mesh: see Meshed.
func Load(t testing.TB, path string, changes ...func(*cluster.Cluster)) *cluster.Cluster {
	t.Helper()
	c := Read(t, path)
	c.GitPassword, c.Mesh = cluster.NewSecret(GitPassword), cluster.Mesh{}
	for _, change := range changes {
		change(c)
	}
	switch machines := len(c.StorageMachines()); { // a test of other machines is about other things
	case c.Storage.Role == cluster.StorageProvider && machines == 0:
		c.Storage = cluster.Storage{Role: cluster.StorageNone}
	case c.Storage.Replicas != nil && *c.Storage.Replicas > machines:
		c.Storage.Replicas = nil
	}
	var findings cluster.Findings
	c.Complete(&findings)
	require.NoError(t, findings.Err())
	return c
}

// Read returns the cluster of a stack file as it is.
func Read(t testing.TB, path string) *cluster.Cluster {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return Parse(t, path, string(text))
}

// Parse returns the cluster of the text of a stack file, whose path is that of config.ParseFile.
func Parse(t testing.TB, path, text string) *cluster.Cluster {
	t.Helper()
	source, err := config.ParseFile(path, []byte(text))
	require.NoError(t, err)
	c, err := config.Load(source)
	require.NoError(t, err)
	return c
}

// Root returns the path of the repository.
func Root(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(folder, "Pulumi.yaml")); err == nil {
			return folder
		}
		above := filepath.Dir(folder)
		require.NotEqual(t, folder, above, "no Pulumi.yaml in this folder or one above")
		folder = above
	}
}
