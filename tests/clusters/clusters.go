// Package clusters gives tests the clusters of the committed stack files, to use as they are or to change.
package clusters

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/stacks/config"
)

// GitPassword is the password that every cluster has.
const GitPassword = "GIT-PASSWORD-MARKER"

// Infra is the cluster of Pulumi.infra.yaml after the changes. A key that follows another one keeps its value unless a change
// empties it. A cluster that Complete finds wrong fails the test.
func Infra(t testing.TB, changes ...func(*cluster.Cluster)) *cluster.Cluster {
	t.Helper()
	return Load(t, filepath.Join(Root(t), "Pulumi.infra.yaml"), changes...)
}

// Load is the cluster of a stack file after the changes.
func Load(t testing.TB, path string, changes ...func(*cluster.Cluster)) *cluster.Cluster {
	t.Helper()
	c, err := config.LoadFile(path)
	require.NoError(t, err)
	c.GitPassword = cluster.NewSecret(GitPassword)
	for _, change := range changes {
		change(c)
	}
	var findings cluster.Findings
	c.Complete(&findings)
	require.NoError(t, findings.Err())
	return c
}

// Root is the folder of the repository.
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
