package observe

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health/gate"
)

func TestMachineOf_SaysThatANodeHasNoInternalIP(t *testing.T) {
	_, err := machineOf(object(t, `
apiVersion: v1
kind: Node
metadata: {name: infra-worker-1}
status: {addresses: [{type: Hostname, address: infra-worker-1}]}
`))
	assert.EqualError(t, err, "has no InternalIP; look whether its kubelet runs, or delete the Node if its machine is gone")
}

func TestMachineOf_TakesRoleAndAddressesFromTheNode(t *testing.T) {
	machine, err := machineOf(object(t, `
apiVersion: v1
kind: Node
metadata: {name: infra-cp-1, labels: {node-role.kubernetes.io/control-plane: ""}}
status: {addresses: [{type: InternalIP, address: 10.25.11.11}, {type: InternalIP, address: "fd00::11"}]}
`))
	require.NoError(t, err)
	assert.Equal(t, gate.Machine{Name: "infra-cp-1", Role: cluster.ControlPlane,
		Address: netip.MustParseAddr("10.25.11.11"), Address6: netip.MustParseAddr("fd00::11")}, machine)
}
