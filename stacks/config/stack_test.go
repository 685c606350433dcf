package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// The golden files are what a stack file means once everything it leaves out is filled in.
func TestStack_MeansTheSameWithItsDefaultsWritten(t *testing.T) {
	for _, file := range fixtures(t, "valid", 4) {
		stack, err := loadFixture(file)
		require.NoError(t, err, file)
		text, err := yaml.Marshal(stack)
		require.NoError(t, err)
		golden(t, strings.TrimSuffix(file, ".yaml")+".golden", string(text))
	}
}

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
	stack, err := loadFixture("testdata/valid/everything.yaml")
	require.NoError(t, err)
	assert.Equal(t, MAC("BC:24:11:00:07:0A"), stack.ControlPlanes()[0].MAC)
}

func TestStack_LooksNameserversUpAtTheGatewayUnlessTold(t *testing.T) {
	stack, err := loadFixture("testdata/valid/minimal.yaml")
	require.NoError(t, err)
	assert.Equal(t, "10.25.11.1", stack.Network.Nameservers[0].String())
	assert.Equal(t, "kubernetes/clusters/home", stack.GitOps.Path)
}
