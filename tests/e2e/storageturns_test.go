//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStorage_NodesOfAProviderTakeTurnsWithCeph changes the nodes of a provider, while a volume is in use: the disks of either worker have
// the only other copy of it. The lab records whether the volume ever stalls.
func TestStorage_NodesOfAProviderTakeTurnsWithCeph(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "storage-turns", func(settings) {})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	load := startLoad(l)
	l.mountsVolume()
	load.during(l, []change{
		{"a reboot of all nodes", nodesOfStorageReboot(load)},
		{"a third worker with a disk", storageGrows},
		{"two copies, and a gate for volumes", fewerCopies.make(load)},
		{"a worker with a disk less", storageShrinks},
	})
}

// mountsVolume starts a pod with a volume of Ceph.
func (l *lab) mountsVolume() {
	l.t.Helper()
	l.apply("infra", map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"namespace": "default", "name": "kept"},
		"spec": map[string]any{
			"storageClassName": "ceph-block", "accessModes": []any{"ReadWriteOnce"},
			"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		},
	})
	l.apply("infra", map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"namespace": "default", "name": "writer"},
		"spec": map[string]any{
			"serviceName": "writer", "selector": map[string]any{"matchLabels": map[string]any{"app": "writer"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "writer"}},
				"spec": map[string]any{
					"containers": []any{map[string]any{
						"name": "writer", "image": "registry.k8s.io/pause:3.10",
						"volumeMounts": []any{map[string]any{"name": "data", "mountPath": "/data"}},
					}},
					"volumes": []any{map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "kept"}}},
				},
			},
		},
	})
	l.writes()
}

// writes waits until the pod with the volume is Ready.
func (l *lab) writes() {
	l.t.Helper()
	l.eventually("the pod has its volume", func() bool {
		return l.kubectl("get", "statefulset/writer", "--output=jsonpath={.status.readyReplicas}") == "1"
	})
}

// ceph returns a field of an object of the storage.
func (l *lab) ceph(object, path string) string {
	l.t.Helper()
	return l.kubectl("get", "--namespace=rook-ceph", object, "--output=jsonpath="+path)
}

// cephIsWell checks that Ceph has all copies, by a word of Rook from now on, and how many that are.
func (l *lab) cephIsWell(copies string) {
	l.t.Helper()
	l.writes()
	now := time.Now().UTC().Format(time.RFC3339)
	l.eventually("Ceph has all copies", func() bool {
		health, checked, _ := strings.Cut(l.ceph("cephcluster/rook-ceph", "{.status.ceph.health} {.status.ceph.lastChecked}"), " ")
		return health == "HEALTH_OK" && checked > now
	})
	require.Equal(l.t, copies, l.ceph("cephblockpool/block", "{.spec.replicated.size}"))
}

func nodesOfStorageReboot(load *load) func(*lab) {
	return func(l *lab) {
		before, began := l.boots(), time.Now()
		l.in("sh", "-c", `pulumi config set --stack infra --path slipway:lifecycle.bootedSince "$(date -u +%Y-%m-%dT%H:%M:%SZ)"`)
		l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
		l.allRebooted(before)
		load.oneAway(l.t, began)
		l.cephIsWell("2")
	}
}

func storageGrows(l *lab) {
	l.adds(1, "infra-worker-3", 23, "pve3")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.eventually("Ceph runs on the third worker", func() bool {
		return strings.Contains(l.ceph("deployments", "{.items[?(@.status.readyReplicas==1)].metadata.labels.topology-location-host}"),
			"infra-worker-3")
	})
	l.cephIsWell("3")
}

func storageShrinks(l *lab) {
	l.removes(1, "infra-worker-2")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.isGone("infra-worker-2")
	l.writes()
	l.eventually("Ceph keeps as many copies as there are workers", func() bool {
		return l.ceph("cephblockpool/block", "{.spec.replicated.size}") == "2"
	})
}
