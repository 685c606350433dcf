package cilium

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReserve_RefusesIDsThatCiliumRefuses(t *testing.T) {
	m := &mesh{used: map[uint32]string{}}
	for _, c := range []struct {
		id   uint32
		name string
		want string
	}{
		{0, "apps", "ClusterID 0 is reserved"},
		{1, "apps", "clusterID 1 is assigned to the local cluster"},
		{256, "apps", "ClusterID > 255 is not supported"},
		{2, "apps", ""},
		{2, "apps", ""},
		{2, "edge", "clusterID 2 is already used"},
		{3, "apps", ""},
		{2, "edge", ""},
	} {
		assert.Equal(t, c.want, m.reserve(c.id, 1, c.name), "%d for %s", c.id, c.name)
	}
}

func TestPeer_ReportsWhatItHasSeenInCiliumsJSON(t *testing.T) {
	p := &peer{name: "apps"}
	shown := func() string {
		remote, _ := p.status()
		raw, err := json.Marshal(remote)
		require.NoError(t, err)
		return string(raw)
	}
	assert.JSONEq(t, `{"name": "apps", "status": "Waiting for initial connection to be established",
		"last-failure": "0001-01-01T00:00:00.000Z", "synced": {}}`, shown())

	p.connected, p.message, p.etcdID = true, "etcd: 1/1 connected", 0x3a
	p.config = &remoteClusterConfig{Required: true}
	p.looking = &controllerState{}
	p.looking.failed(errors.New("not found"))
	assert.JSONEq(t, `{"name": "apps", "connected": true, "status": "etcd: 1/1 connected, ID: 3a", "config": {"required": true},
		"last-failure": "0001-01-01T00:00:00.000Z", "synced": {}}`, shown())
	_, controllers := p.status()
	require.Len(t, controllers, 2)
	assert.Equal(t, "remote-etcd-apps-cluster-config", controllers[1].Name)
	assert.Equal(t, "not found", controllers[1].Status.LastFailureMsg)

	p.config = &remoteClusterConfig{ClusterID: 2, Required: true, Retrieved: true, Kvstoremesh: true, SyncCanaries: true}
	p.reads = map[string]*reading{}
	for _, kind := range []string{meshNodes, meshServices, meshAddresses, meshIdentities} {
		remote, _ := p.status()
		assert.False(t, remote.Ready, "before %s", kind)
		p.reads[kind] = &reading{keys: map[string][]byte{"x": nil}, synced: true}
	}
	remote, _ := p.status()
	assert.True(t, remote.Ready)
	assert.EqualValues(t, 1, remote.NumNodes)

	p.release(errLost{errors.New("not able to connect to any etcd endpoints")})
	remote, _ = p.status()
	assert.False(t, remote.Ready)
	assert.EqualValues(t, 1, remote.NumFailures)
	assert.EqualValues(t, 1, remote.NumNodes, "what was read stays until the next connection")
	assert.Zero(t, p.connecting.FailureCount)
	p.release(errors.New("clusterID 1 is assigned to the local cluster"))
	assert.EqualValues(t, 1, p.connecting.ConsecutiveFailureCount)
}

func TestHeartbeat_CountsFromTheConnectionOnUntilTheFirst(t *testing.T) {
	var h heartbeat
	h.start()
	assert.Less(t, h.age(), time.Minute)
	h.last = time.Now().Add(-3 * time.Minute)
	assert.Greater(t, h.age(), heartbeatEnds)
	h.beat()
	assert.Less(t, h.age(), time.Minute)
}

func TestRemoteNodes_AreThoseThatThePeersHaveWritten(t *testing.T) {
	a := &agent{}
	a.mesh.peers = map[string]*peer{"apps": {name: "apps", reads: map[string]*reading{meshNodes: {keys: map[string][]byte{
		"apps-cp-1": []byte(`{"Name": "apps-cp-1", "Cluster": "apps", "IPAddresses": [{"Type": "InternalIP", "IP": "10.25.12.11"},
			{"Type": "CiliumInternalIP", "IP": "10.246.0.1"}], "IPv4AllocCIDR": {"IP": "10.246.0.0", "Mask": "////AA=="},
			"IPv4HealthIP": "10.246.0.2"}`),
		"broken": []byte(`{`),
	}}}}, "edge": {name: "edge"}}
	list := a.remoteNodes()
	require.Len(t, list, 1)
	assert.Equal(t, "apps/apps-cp-1", fullName(list[0].Cluster, list[0].Name))
	assert.Equal(t, []string{"10.25.12.11"}, list[0].addresses("InternalIP"))
	assert.Equal(t, []string{"10.246.0.2"}, list[0].health())
}
