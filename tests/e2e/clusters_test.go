//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

// TestClusters_ThreeFormOneMesh creates three clusters of one node each. The third is one more stack file, one more folder for Flux, and
// one more peer of the two that run, as docs/operations.md says.
func TestClusters_ThreeFormOneMesh(t *testing.T) {
	stacks := []string{"infra", "apps", "edge"}
	clone := filepath.Join(t.TempDir(), "slipway")
	runGit(t, "clone", "--quiet", filepath.Join("..", ".."), clone)
	require.NoError(t, os.WriteFile(filepath.Join(clone, "Pulumi.edge.yaml"), []byte(fixtures.Third()), 0o600))
	folder := filepath.Join(clone, "kubernetes", "clusters")
	require.NoError(t, os.CopyFS(filepath.Join(folder, "edge"), os.DirFS(filepath.Join(folder, "apps"))))
	for _, stack := range stacks {
		peers := slices.DeleteFunc(slices.Clone(stacks), func(other string) bool {
			return other == stack || other == "edge" && stack != "edge"
		})
		editStackFile(t, filepath.Join(clone, "Pulumi."+stack+".yaml"), func(s settings) {
			oneNode(s)
			s.set("mesh", map[string]any{"peers": peers})
		})
	}
	runGit(t, "-C", clone, "add", "--all")
	runGit(t, "-C", clone, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message", "third")
	l := startLabOf(t, clone, "three")

	for _, stack := range []string{"infra", "apps"} {
		l.pulumi("up", "--yes", "--skip-preview", "--stack", stack)
	}
	for stack, peers := range map[string]string{"infra": `["apps","edge"]`, "apps": `["infra","edge"]`} {
		l.changesPeers(stack, furtherPeer, peers)
	}
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "edge")
	for _, stack := range stacks {
		l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", stack)
		for _, peer := range stacks {
			if peer != stack {
				require.Equal(t, "connected", l.sees(stack, peer))
			}
		}
	}

	// The id is free in the stack files: only the outputs of infra say that it still runs with it.
	infra := filepath.Join(clone, "Pulumi.infra.yaml")
	before, err := os.ReadFile(infra)
	require.NoError(t, err)
	editStackFile(t, infra, func(s settings) { s.set("cluster", map[string]any{"id": 9}) })
	l.pulumi("config", "set", "--stack", "edge", "--path", "slipway:cluster.id", "1")
	for _, how := range [][]string{{"preview"}, {"up", "--yes", "--skip-preview"}} {
		out, err := l.try(append([]string{"pulumi", "--non-interactive", "--color=never", "--stack", "edge"}, how...)...)
		require.Error(t, err)
		require.Contains(t, out, "cluster.id: 1 is cluster.id of infra as it runs; pick another")
	}
	require.NoError(t, os.WriteFile(infra, before, 0o600))
	l.pulumi("config", "set", "--stack", "edge", "--path", "slipway:cluster.id", "3")
	for _, stack := range stacks {
		l.pulumi("state", "unprotect", "--all", "--yes", "--stack", stack)
		l.pulumi("destroy", "--yes", "--skip-preview", "--stack", stack)
	}
	require.Empty(t, l.status().VMs)
}
