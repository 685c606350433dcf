//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

// TestMesh_TwoClustersSeeEachOther creates two clusters with each other as peers, one after the other, and destroys the second one again.
// The mesh between them is real: Cilium's mesh API server, and agents that read from it.
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

	l.changesMeshAddress()
	l.rotatesMeshCA()

	l.must("fault", "mesh-gone", "apps")
	require.Equal(t, "absent", l.sees("infra", "apps"), "Cilium still reports a connection, but the address does not answer")
	l.must("fault", "--off", "mesh-gone", "apps")
	require.Equal(t, "connected", l.sees("infra", "apps"))

	l.pulumi("state", "unprotect", "--all", "--yes", "--stack", "apps")
	l.pulumi("destroy", "--yes", "--skip-preview", "--stack", "apps")
	require.Equal(t, "absent", l.sees("infra", "apps"))
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")

	l.changesPeers("infra", noPeer, "[]")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	unprotectAndDestroy(l)
}

// rotatesMeshCA sets a new CA in both stacks and brings both up at the same time, as docs/credentials.md says. Agents that start afterwards
// have certificates of the new CA only.
func (l *lab) rotatesMeshCA() {
	l.t.Helper()
	authority, err := exec.Command("make", "--silent", "--directory=../..", "mesh-ca").Output()
	require.NoError(l.t, err)
	stacks := []string{"infra", "apps"}
	ended := make(chan error, len(stacks))
	for _, stack := range stacks {
		l.setSecret(stack, cluster.MeshAuthorityKey, string(authority))
	}
	for _, stack := range stacks {
		go func() {
			out, err := l.try("pulumi", "--non-interactive", "--color=never", "up", "--yes", "--skip-preview", "--stack", stack)
			if err != nil {
				err = fmt.Errorf("%s: %w\n%s", stack, err, end(out))
			}
			ended <- err
		}()
	}
	for range stacks {
		require.NoError(l.t, <-ended)
	}
	for _, stack := range stacks {
		l.in("kubectl", "--context=admin@"+stack, "delete", "pods", "--namespace=kube-system", "--selector=k8s-app=cilium")
	}
	require.Equal(l.t, "connected", l.sees("infra", "apps"))
	require.Equal(l.t, "connected", l.sees("apps", "infra"))
}
