package live

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

func TestCeph_IsWhatRookSaysOfHealthOSDsAndPools(t *testing.T) {
	live, _, kube := rig(t)
	seen, err := live.Ceph(t.Context())
	require.NoError(t, err)
	assert.Zero(t, seen, "a cluster without Rook")

	const health = "GET /apis/ceph.rook.io/v1/cephclusters"
	kube.answers[health] = `{"kind":"CephClusterList","apiVersion":"ceph.rook.io/v1","items":[
{"metadata":{"namespace":"rook-ceph","name":"rook-ceph"},"status":{"ceph":{"health":"HEALTH_WARN","details":{
"PG_DEGRADED":{"severity":"HEALTH_WARN","message":"Degraded data redundancy: 2 pgs degraded"},
"OSD_DOWN":{"severity":"HEALTH_WARN","message":"1 osds down"},
"AUTH_INSECURE_GLOBAL_ID_RECLAIM":{"severity":"HEALTH_WARN","message":"clients are using insecure global_id reclaim"}}}}},
{"metadata":{"namespace":"other","name":"other"},"status":{"ceph":{"details":{"OSD_DOWN":{"message":"9 osds down"}}}}}]}`
	const osds = "GET /apis/apps/v1/deployments"
	kube.answers[osds] = `{"kind":"DeploymentList","apiVersion":"apps/v1","items":[
{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"namespace":"rook-ceph","name":"rook-ceph-osd-0",
"labels":{"ceph_daemon_id":"0","topology-location-host":"infra-worker-1"}},"status":{"readyReplicas":1}},
{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"namespace":"rook-ceph","name":"rook-ceph-osd-10",
"labels":{"ceph_daemon_id":"10","topology-location-host":"infra-worker-2"}},"status":{}},
{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"namespace":"other","name":"rook-ceph-osd-1",
"labels":{"ceph_daemon_id":"1","topology-location-host":"infra-worker-2"}},"status":{}}]}`
	kube.answers["GET /apis/ceph.rook.io/v1/cephblockpools"] = `{"kind":"CephBlockPoolList","apiVersion":"ceph.rook.io/v1","items":[
{"metadata":{"namespace":"rook-ceph","name":"block"},"spec":{"replicated":{"size":2}}},
{"metadata":{"namespace":"rook-ceph","name":"kept"},"spec":{"replicated":{"size":3}}},
{"metadata":{"namespace":"rook-ceph","name":"erasure"},"spec":{"erasureCoded":{"dataChunks":2,"codingChunks":1}}}]}`
	seen, err = live.Ceph(t.Context())
	require.NoError(t, err)
	assert.Equal(t, turn.Ceph{
		Lacks:  []string{"1 osds down", "Degraded data redundancy: 2 pgs degraded"},
		OSDs:   []turn.OSD{{ID: "0", Host: "infra-worker-1", Runs: true}, {ID: "10", Host: "infra-worker-2"}},
		Copies: 3,
	}, seen)

	kube.codes[osds] = 403
	_, err = live.Ceph(t.Context())
	require.Error(t, err)
}
