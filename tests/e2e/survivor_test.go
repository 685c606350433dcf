//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRestore_TwoOfThreeControlPlanesAreMadeAnewFromTheSurvivorsData rehearses the way back of docs/recovery.md when two of three control
// planes are lost with their disks, and there is no snapshot.
func TestRestore_TwoOfThreeControlPlanesAreMadeAnewFromTheSurvivorsData(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "survivor", controlPlanesAlone)
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	uid := l.field("namespace/kube-system", "{.metadata.uid}")
	l.kubectl("create", "--namespace=default", "configmap", "newest")
	destroyVMs(l, "infra-cp-2", "infra-cp-3")
	l.eventually("etcd has lost its quorum", func() bool {
		_, err := l.try("kubectl", "--context=admin@infra", "--request-timeout=5s", "get", "--namespace=default", "configmap/newest")
		return err != nil
	})

	l.fetchesDatabase("")
	l.pulumi("refresh", "--yes", "--skip-preview", "--target", "**-vm", "--target", "**-iso", "--stack", "infra")
	l.declare("lifecycle", map[string]any{"snapshots": map[string]any{"recoverFrom": "survivor.db"}})
	preview := func() (string, error) {
		return l.try("pulumi", "--non-interactive", "--color=never", "preview", "--stack", "infra")
	}
	out, err := preview()
	require.Error(t, err, "the database has no checksum")
	require.Contains(t, out, "survivor.db cannot be restored")
	l.fetchesDatabase("openssl dgst -sha256 -binary survivor")
	out, err = preview()
	require.NoError(t, err, "%s", end(out))
	require.NotContains(t, out, "cannot be restored")

	l.onNode("10.25.11.11", "reset", "--graceful=false", "--reboot", "--system-labels-to-wipe", "EPHEMERAL", "--timeout=5m")
	out = l.pulumiSays(remindsOfRecovery, "up", "--yes", "--skip-preview", "--stack", "infra")
	require.Contains(t, out, "etcd was restored from survivor.db")
	require.Equal(t, uid, l.field("namespace/kube-system", "{.metadata.uid}"), "it is the same cluster")
	l.kubectl("get", "--namespace=default", "configmap/newest")
	require.Equal(t, []string{"infra-cp-1", "infra-cp-2", "infra-cp-3"}, l.etcdMembers())
	ready := l.field("nodes", `{.items[*].status.conditions[?(@.type=="Ready")].status}`)
	require.Equal(t, "True True True", ready)

	l.pulumi("config", "rm", "--stack", "infra", "--path", "slipway:lifecycle.snapshots.recoverFrom")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	unprotectAndDestroy(l)
}

// fetchesDatabase puts the survivor's database of etcd where a run looks for snapshots, with what a command adds.
func (l *lab) fetchesDatabase(checksum string) {
	l.t.Helper()
	const fetch = `umask 077; folder=$XDG_STATE_HOME/slipway/snapshots; mkdir -p "$folder"; cd "$XDG_STATE_HOME"
talosctl --context=infra --nodes=10.25.11.11 read /var/lib/etcd/member/snap/db >survivor
(cat survivor; CHECKSUM) >"$folder/survivor.db"`
	if checksum == "" {
		checksum = "true"
	}
	l.in("sh", "-ec", strings.ReplaceAll(fetch, "CHECKSUM", checksum))
}
