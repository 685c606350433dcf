package tree

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A monitor's data is on the disk of its machine. Whoever restores etcd wipes control planes, and so would wipe the last monitor of Ceph.
func TestStorage_MonitorsPreferWorkersAndMayRunOnControlPlanes(t *testing.T) {
	known, err := schemas()
	require.NoError(t, err)
	ceph := named(t, clusters(t)["infra"], "CephCluster", "rook-ceph")
	require.NoError(t, known.Validate(ceph))
	placement, _, err := unstructured.NestedMap(ceph.Object, "spec", "placement", "mon")
	require.NoError(t, err)
	const role = "node-role.kubernetes.io/control-plane"
	assert.Equal(t, map[string]any{
		"nodeAffinity": map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
			"weight":     int64(100),
			"preference": map[string]any{"matchExpressions": []any{map[string]any{"key": role, "operator": "DoesNotExist"}}},
		}}},
		"tolerations": []any{map[string]any{"key": role, "operator": "Exists", "effect": "NoSchedule"}},
	}, placement)
}
