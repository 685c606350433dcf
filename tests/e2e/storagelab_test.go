//go:build e2e || matrix

package e2e

import (
	"fmt"
	"time"
)

// probeStorage runs the storage's probe by hand for a stack's cluster, as docs/gates.md says.
func (l *lab) probeStorage(stack string, args ...string) (string, error) {
	l.t.Helper()
	const script = `set -e
cd "$0"
file=$SLIPWAY_LAB/storage-$1.json
(cd "$SLIPWAY_LAB/project" && pulumi stack output storageSpec --stack "$1") >"$file"
kubectl config view --minify --flatten --context="admin@$1" >"$file.kubeconfig"
shift
exec go run ./cmd/slipway-probe storage --kubeconfig "$file.kubeconfig" --spec "$file" "$@"`
	return l.try(append([]string{"sh", "-c", script, l.checkout(), stack}, args...)...)
}

// probeObjects lists what is left of the storage's probe in a stack's cluster: jobs, pods, claims and volumes.
func (l *lab) probeObjects(stack string) string {
	l.t.Helper()
	return l.in("sh", "-c", `set -e
kubectl --context="admin@$0" get jobs,pods,persistentvolumeclaims -n kube-system -l app.kubernetes.io/name=slipway-storage-probe -o name
kubectl --context="admin@$0" get persistentvolumes -o name`, stack)
}

// newCephKey removes the user of the provider's Ceph that the consumer's CSI driver is on a node or as provisioner. Its CephClient comes
// back with another key.
func (l *lab) newCephKey(part string) {
	l.t.Helper()
	client := "consumer-rbd-" + part
	l.in("kubectl", "--context=admin@infra", "delete", "cephclient", "-n", "rook-ceph", client)
	l.in("kubectl", "--context=admin@infra", "annotate", "kustomization", "-n", "flux-system", "storage-connection",
		fmt.Sprintf("reconcile.fluxcd.io/requestedAt=%d", time.Now().UnixNano()), "--overwrite")
	l.eventually("the provider has another key", func() bool {
		now, err := l.try("kubectl", "--context=admin@infra", "get", "cephclient", "-n", "rook-ceph", client, "-o", "jsonpath={.status.phase}")
		return err == nil && now == "Ready"
	})
}

// takeOverCephKey waits until the consumer has the provider's key of such a user; only the waits between the refreshes are cut short.
func (l *lab) takeOverCephKey(part string) {
	l.t.Helper()
	secret := "rook-csi-rbd-" + part
	key := func() string {
		return l.secret("kubectl", "--context=admin@apps", "get", "secret", "-n", "rook-ceph", secret, "-o", "jsonpath={.data.userKey}")
	}
	before := key()
	l.in("kubectl", "--context=admin@infra", "annotate", "pushsecret", "-n", "rook-ceph", "storage-rbd-"+part,
		fmt.Sprintf("again=%d", time.Now().UnixNano()), "--overwrite")
	l.eventually("the consumer has it, too", func() bool {
		l.in("kubectl", "--context=admin@apps", "annotate", "externalsecret", "-n", "rook-ceph", secret,
			fmt.Sprintf("force-sync=%d", time.Now().UnixNano()), "--overwrite")
		return key() != before
	})
}
