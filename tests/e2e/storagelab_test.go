//go:build e2e || matrix

package e2e

import (
	"cmp"
	"path/filepath"

	"github.com/stretchr/testify/require"
)

// probeStorage runs the storage's probe by hand for a stack's cluster, as docs/operations.md says.
func (l *lab) probeStorage(stack string, args ...string) (string, error) {
	l.t.Helper()
	const script = `set -e
cd "$0"
file=$SLIPWAY_LAB/storage-$1.json
(cd "$SLIPWAY_LAB/project" && pulumi stack output storageSpec --stack "$1") >"$file"
kubectl config view --minify --flatten --context="admin@$1" >"$file.kubeconfig"
shift
exec go run ./cmd/slipway-probe storage --kubeconfig "$file.kubeconfig" --spec "$file" "$@"`
	project, err := filepath.Abs(cmp.Or(l.project, filepath.Join("..", "..")))
	require.NoError(l.t, err)
	return l.try(append([]string{"sh", "-c", script, project, stack}, args...)...)
}

// probeObjects lists what is left of the storage's probe in a stack's cluster: jobs, pods, claims and volumes.
func (l *lab) probeObjects(stack string) string {
	l.t.Helper()
	return l.in("sh", "-c", `set -e
kubectl --context="admin@$0" get jobs,pods,persistentvolumeclaims -n kube-system -l app.kubernetes.io/name=slipway-storage-probe -o name
kubectl --context="admin@$0" get persistentvolumes -o name`, stack)
}
