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
	l.mountsVolume("infra")
	load.during(l, []change{
		{"a reboot of all nodes", nodesOfStorageReboot(load)},
		{"a third worker with a disk", storageGrows},
		{"two copies, and a gate for volumes", fewerCopies.make(load)},
		{"a worker with a disk is made anew", storageIsReplaced},
		{"a worker with a disk less", storageShrinks},
	})
}

// mountsVolume starts a pod with a volume of Ceph in a stack's cluster.
func (l *lab) mountsVolume(stack string) {
	l.t.Helper()
	l.apply(stack, map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"namespace": "default", "name": "kept"},
		"spec": map[string]any{
			"storageClassName": "ceph-block", "accessModes": []any{"ReadWriteOnce"},
			"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		},
	})
	l.apply(stack, map[string]any{
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
	l.writes(stack)
}

// writes waits until the pod with the volume is Ready.
func (l *lab) writes(stack string) {
	l.t.Helper()
	l.eventually("the pod has its volume", func() bool {
		return l.in("kubectl", "--context=admin@"+stack, "get", "--namespace=default", "pods", "--selector=app=writer",
			`--output=jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`) == "True"
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
	l.writes("infra")
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

// osdsOf are the numbers of the OSDs of a node, by their Deployments.
func (l *lab) osdsOf(node string) []string {
	l.t.Helper()
	return strings.Fields(l.kubectl("get", "--namespace=rook-ceph", "deployments", "--selector=app=rook-ceph-osd,topology-location-host="+node,
		"--output=jsonpath={.items[*].metadata.labels.osd}"))
}

// inRook runs what Rook's plugin for kubectl runs in the operator's container.
func (l *lab) inRook(command ...string) string {
	l.t.Helper()
	return l.kubectl(append([]string{"exec", "--namespace=rook-ceph", "deployment/rook-ceph-operator", "--"}, command...)...)
}

// purges removes OSDs that do not run any more, which Rook begins once nothing depends on them.
func (l *lab) purges(osds []string) {
	l.t.Helper()
	for _, osd := range osds {
		said := l.inRook("rook", "ceph", "osd", "remove", "--osd-ids="+osd, "--force-osd-removal=false")
		require.Contains(l.t, said, "completed removal of OSD "+osd)
	}
}

// storageIsReplaced gives a worker another machine, whose disks are empty, as docs/nodes.md says. Rook has made another OSD already if the
// drain has moved its operator.
func storageIsReplaced(l *lab) {
	const name = "infra-worker-1"
	former := l.osdsOf(name)
	require.NotEmpty(l.t, former)
	l.generation(1, name, 2)
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.kubectl("rollout", "restart", "--namespace=rook-ceph", "deployment/rook-ceph-operator")
	l.eventually("Rook has made another OSD on the empty disk", func() bool { return len(l.osdsOf(name)) > len(former) })
	l.purges(former)
	require.NotContains(l.t, l.osdsOf(name), former[0])
	l.cephIsWell("2")
}

// storageShrinks empties the OSDs of a worker first, and purges them when it has gone, as docs/nodes.md says.
func storageShrinks(l *lab) {
	const name = "infra-worker-2"
	former := l.osdsOf(name)
	for _, osd := range former {
		l.inRook("ceph", "osd", "out", osd)
	}
	l.eventually("others have its copies", func() bool { return strings.Contains(l.inRook("ceph", "status"), "active+clean") })
	l.removes(1, name)
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.isGone(name)
	l.purges(former)
	require.Empty(l.t, l.osdsOf(name))
	l.cephIsWell("2")
}
