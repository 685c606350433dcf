//go:build matrix

package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/e2e/faults"
)

// TestMatrix_Storage makes every case of the storage between a provider and its consumer.
func TestMatrix_Storage(t *testing.T) {
	l := meshLab(t, "matrix-storage", nil)
	for _, stack := range []string{"infra", "apps"} {
		l.pulumi("up", "--yes", "--skip-preview", "--stack", stack)
	}
	kubectl := func(args ...string) {
		l.in(append([]string{"kubectl", "--context=admin@apps", "-n", "rook-ceph"}, args...)...)
	}
	scale := func(to string, names ...string) {
		for _, name := range names {
			kubectl("scale", "deployment", name, "--replicas="+to)
		}
	}
	l.storageCase(t, "the driver is missing on a node",
		func() { l.must("fault", "csi-driver-missing", "apps-worker-1") },
		func() { l.must("fault", "--off", "csi-driver-missing", "apps-worker-1") })
	l.storageCase(t, "the provisioner does not run",
		func() { scale("0", "ceph-csi-controller-manager", "rook-ceph.rbd.csi.ceph.com-ctrlplugin") },
		func() { scale("1", "ceph-csi-controller-manager") })
	l.storageCase(t, "the provider is gone",
		func() { l.must("fault", "ceph-gone", "infra") },
		func() { l.must("fault", "--off", "ceph-gone", "infra") })
	// A changed Secret of the consumer would be put right at once, by External Secrets Operator.
	l.storageCase(t, "the keys are not the provider's", func() { l.newCephKey("provisioner") }, func() { l.takeOverCephKey("provisioner") })
}

// storageCase makes a case, waits for the probe's message, and ends the case.
func (l *lab) storageCase(t *testing.T, name string, breaks, fixes func()) {
	t.Helper()
	at := slices.IndexFunc(faults.StorageCases, func(c faults.StorageCase) bool { return c.Name == name })
	require.GreaterOrEqual(t, at, 0, "%s is not in the table", name)
	t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
		defer func(outer *testing.T) { l.t = outer }(l.t)
		l.t = t
		breaks()
		says, began := regexp.MustCompile(faults.StorageCases[at].Says), time.Now()
		l.eventually(name, func() bool {
			out, err := l.probeStorage("apps", "--timeout", "30s")
			return err != nil && says.MatchString(out)
		})
		t.Logf("said after %.1f s", time.Since(began).Seconds())
		fixes()
		out, err := l.probeStorage("apps", "--timeout", "8m")
		require.NoError(t, err, "%s", end(out))
	})
}
