//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMesh_TwoClustersSeeEachOther creates two clusters with each other as peers, one after the other, and destroys the second one again.
// The mesh between them is real: Cilium's mesh API server, and agents that read what it has.
func TestMesh_TwoClustersSeeEachOther(t *testing.T) {
	t.Parallel()
	l := meshLab(t, "mesh", nil)

	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Contains(t, l.meshReport("infra").remarks(), "apps is absent", "the first cluster's gate opens and names the peer")
	require.Equal(t, "absent", l.sees("infra", "apps"))

	l.pulumi("up", "--yes", "--skip-preview", "--stack", "apps")
	require.Empty(t, l.meshReport("apps").remarks())
	require.Equal(t, "connected", l.sees("apps", "infra"))
	require.Equal(t, "connected", l.sees("infra", "apps"))
	for _, stack := range []string{"infra", "apps"} {
		l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", stack)
	}

	l.must("fault", "mesh-gone", "apps")
	require.Equal(t, "absent", l.sees("infra", "apps"), "Cilium still reports a connection, but the address does not answer")
	l.must("fault", "--off", "mesh-gone", "apps")
	require.Equal(t, "connected", l.sees("infra", "apps"))

	l.pulumi("state", "unprotect", "--all", "--yes", "--stack", "apps")
	l.pulumi("destroy", "--yes", "--skip-preview", "--stack", "apps")
	require.Equal(t, "absent", l.sees("infra", "apps"))
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	unprotectAndDestroy(l)
}
