//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/docs"
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

	l.fetchesDatabase("true")
	l.pulumi("refresh", "--yes", "--skip-preview", "--target", "**-vm", "--target", "**-iso", "--stack", "infra")
	l.declare("lifecycle", map[string]any{"snapshots": map[string]any{"recoverFrom": "survivor.db"}})
	preview := func() (string, error) {
		return l.try("pulumi", "--non-interactive", "--color=never", "preview", "--stack", "infra")
	}
	out, err := preview()
	require.Error(t, err, "the database has no checksum")
	require.Contains(t, out, "survivor.db cannot be restored")
	l.fetchesDatabase(survivorsChecksum)
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

// survivorsChecksum is the command of docs/recovery.md that prints the checksum of the survivor's database.
const survivorsChecksum = "openssl dgst -sha256 -binary survivor"

// fetchesDatabase runs the commands of docs/recovery.md that put the survivor's database of etcd where a run looks for snapshots, with
// another command in the place of that for the checksum.
func (l *lab) fetchesDatabase(another string) {
	l.t.Helper()
	const document = "docs/recovery.md"
	steps, err := docs.Steps(l.t.Name(), document, readDocument(l.t, document))
	require.NoError(l.t, err)
	require.Len(l.t, steps, 1)
	step := steps[0]
	require.Contains(l.t, step.Commands, survivorsChecksum)
	step.Commands = strings.NewReplacer("talosctl -n ADDRESS", "talosctl --context=infra --nodes=10.25.11.11", survivorsChecksum, another).
		Replace(step.Commands)
	l.runs(l.t, step, nil)
}
