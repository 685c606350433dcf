//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/docs"
)

// TestStorage_AProviderAndItsConsumerGivePodsVolumes creates a consumer, whose provider does not exist yet, and then the provider. Nobody
// hands the consumer anything: it finds in 1Password what the provider has written. The volumes are bound by the real csi-provisioner, also
// that of the application of docs/first-app.md, which first its own manifests mount, and then a chart.
func TestStorage_AProviderAndItsConsumerGivePodsVolumes(t *testing.T) {
	t.Parallel()
	l := meshLab(t, "storage", nil)
	for _, stack := range []string{"apps", "infra"} {
		l.pulumi("up", "--yes", "--skip-preview", "--stack", stack)
		var report struct{ Outcome string }
		text := l.pulumi("stack", "output", "--stack", stack, "storageReport")
		require.NoError(t, json.Unmarshal([]byte(text), &report), text)
		require.Equal(t, "open", report.Outcome, stack)
		require.Equal(t, stack == "apps", strings.Contains(text, "is absent: 1Password has no item"), text)
		require.Empty(t, l.left(stack), "the gate leaves nothing in %s", stack)
	}
	l.connectsByItself()
	l.namesTheNodeWithoutDriver()
	l.killedProbeLeavesNothing()
	l.takesOverNewKeys()
	l.keepsItsNamespace()
	for _, stack := range []string{"infra", "apps"} {
		l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", stack)
	}
	for _, fromChart := range []bool{false, true} {
		l.addFirstApp("infra", docs.App{Cluster: "kubernetes/clusters/infra/workloads", Volume: true, Chart: fromChart})
	}
	l.pulumi("state", "unprotect", "--all", "--yes", "--stack", "apps")
	l.pulumi("destroy", "--yes", "--skip-preview", "--stack", "apps")
	unprotectAndDestroy(l)
}

// left is what is left of the probe. Claims and volumes of the tree are not.
func (l *lab) left(stack string) (lines []string) {
	l.t.Helper()
	for line := range strings.Lines(l.probeObjects(stack)) {
		if !strings.HasPrefix(line, "persistentvolume/") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// connectsByItself waits for the consumer's volumes, now that the provider exists; only the waits between the refreshes are cut short.
func (l *lab) connectsByItself() {
	l.t.Helper()
	for _, object := range []string{"flux-system/storage-monitors", "rook-ceph/rook-csi-rbd-node", "rook-ceph/rook-csi-rbd-provisioner"} {
		namespace, name, _ := strings.Cut(object, "/")
		l.eventually(object+" has synced", func() bool {
			l.in("kubectl", "--context=admin@apps", "annotate", "externalsecret", "-n", namespace, name,
				fmt.Sprintf("force-sync=%d", time.Now().UnixNano()), "--overwrite")
			return l.in("kubectl", "--context=admin@apps", "get", "externalsecret", "-n", namespace, name, "-o",
				`jsonpath={.status.conditions[?(@.type=="Ready")].status}`) == "True"
		})
	}
	out, err := l.probeStorage("apps", "--timeout", "5m")
	require.NoError(l.t, err, "%s", end(out))
}

func (l *lab) namesTheNodeWithoutDriver() {
	l.t.Helper()
	const node = "apps-worker-1"
	l.must("fault", "csi-driver-missing", node)
	l.eventually("the CSINode has no driver", func() bool {
		return l.in("kubectl", "--context=admin@apps", "get", "csinode", node, "-o", "jsonpath={.spec.drivers[*].name}") == ""
	})
	out, err := l.probeStorage("apps", "--timeout", "10s")
	require.Error(l.t, err)
	require.Regexp(l.t, node+`: driver rook-ceph\.rbd\.csi\.ceph\.com.* is not registered`, out)
	l.must("fault", "--off", "csi-driver-missing", node)
	out, err = l.probeStorage("apps", "--timeout", "3m")
	require.NoError(l.t, err, "%s", end(out))
}

// killedProbeLeavesNothing kills a probe whose volume cannot be made, and waits until Kubernetes has removed all of it.
func (l *lab) killedProbeLeavesNothing() {
	l.t.Helper()
	l.must("fault", "ceph-gone", "infra")
	l.in("sh", "-c", `set -e
kubectl config view --minify --flatten --context=admin@apps >"$SLIPWAY_LAB/kill.kubeconfig"
cd "$0"
go build -buildvcs=false -o "$SLIPWAY_LAB/kill.probe" ./cmd/slipway-probe`, l.checkout())
	out, err := l.try("sh", "-c", `exec timeout --signal=KILL 20 "$SLIPWAY_LAB/kill.probe" storage \
  --kubeconfig "$SLIPWAY_LAB/kill.kubeconfig" --class ceph-block --attempt 1m`)
	require.Error(l.t, err, "it was killed: %s", end(out))
	require.NotEmpty(l.t, l.left("apps"), "the Job of the killed probe is there")
	l.must("fault", "--off", "ceph-gone", "infra")
	l.eventually("Kubernetes has removed the Job and its volume", func() bool { return len(l.left("apps")) == 0 })
}

// takesOverNewKeys gives a user of the provider's Ceph another key, which reaches the consumer by itself.
func (l *lab) takesOverNewKeys() {
	l.t.Helper()
	l.newCephKey("node")
	l.takeOverCephKey("node")
	out, err := l.probeStorage("apps", "--timeout", "3m")
	require.NoError(l.t, err, "%s", end(out))
}

// keepsItsNamespace declares another RADOS namespace of the consumer, which has a volume. Nothing of the storage changes, and afterwards
// the volume is mounted again. The second run removes what the refused one has left in the state.
func (l *lab) keepsItsNamespace() {
	l.t.Helper()
	const stack = "apps"
	l.mountsVolume(stack)
	file := l.stackFile(stack)
	declared, err := os.ReadFile(file)
	require.NoError(l.t, err)
	before, work := otherNamespace.stays(l), l.machineTasks()
	editStackFile(l.t, file, otherNamespace.edit)
	out, err := l.try("pulumi", "--non-interactive", "--color=never", "up", "--yes", "--skip-preview", "--stack", stack)
	require.Error(l.t, err, "up went on: %s", end(out))
	require.Regexp(l.t, otherNamespace.says, out)
	require.Equal(l.t, work, l.machineTasks(), "Proxmox VE was given work")
	require.Equal(l.t, before, otherNamespace.stays(l))
	require.NoError(l.t, os.WriteFile(file, declared, 0o600))
	l.pulumi("up", "--yes", "--skip-preview", "--stack", stack)
	require.Equal(l.t, before, otherNamespace.stays(l))
	l.in("kubectl", "--context=admin@"+stack, "delete", "--namespace=default", "pods", "--selector=app=writer")
	l.writes(stack)
}
