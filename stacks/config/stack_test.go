package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStack_ListsControlPlanesFirstInTheFilesOrder(t *testing.T) {
	stack := Stack{NodePools: []NodePool{
		{Name: "a", Role: RoleWorker, Nodes: []Node{{Name: "w2"}, {Name: "w1"}}},
		{Name: "b", Role: RoleControlPlane, Cores: 4, Nodes: []Node{{Name: "c2"}}},
		{Name: "c", Role: RoleControlPlane, Nodes: []Node{{Name: "c1"}}},
	}}
	assert.Equal(t, []string{"c2", "c1", "w2", "w1"}, namesOf(stack.Nodes()))
	assert.Equal(t, []string{"c2", "c1"}, namesOf(stack.ControlPlanes()))
	assert.Equal(t, []string{"w2", "w1"}, namesOf(stack.Workers()))
	assert.Equal(t, 4, stack.Nodes()[0].Pool.Cores)
}

func namesOf(nodes []PoolNode) []string {
	var names []string
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	return names
}

func TestMAC_IsWrittenAsProxmoxReadsItBack(t *testing.T) {
	stack, err := loadFixture("everything")
	require.NoError(t, err)
	assert.Equal(t, MAC("BC:24:11:00:07:0A"), stack.ControlPlanes()[0].MAC)
}

func TestStack_LooksNameserversUpAtTheGatewayUnlessTold(t *testing.T) {
	stack, err := loadFixture("minimal")
	require.NoError(t, err)
	assert.Equal(t, "10.25.11.1", stack.Network.Nameservers[0].String())
	assert.Equal(t, "kubernetes/clusters/home", stack.GitOps.Path)
}
