package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
)

func TestCluster_KeepsTheKernelParametersThatItsNetworkNeeds(t *testing.T) {
	ipv4, both := cluster.New("infra"), cluster.New("infra")
	both.Network.IPv6 = &cluster.IPv6{}
	for _, parameter := range []struct {
		name, value      string
		breaks4, breaks6 bool
	}{
		{"net.ipv4.ip_forward", "0", true, true},
		{"net.ipv4.ip_forward", " 1\n", false, false},
		{"net.ipv4.conf.default.forwarding", "0", true, true},
		{"net.ipv4.conf.eth1.forwarding", "0", false, false},
		{"net.ipv6.conf.all.forwarding", "0", false, true},
		{"net.ipv6.conf.all.disable_ipv6", "1", false, true},
		{"net.ipv6.conf.all.disable_ipv6", "0", false, false},
		{"net.core.somaxconn", "0", false, false},
	} {
		assert.Equal(t, parameter.breaks4, ipv4.BreaksNetwork(parameter.name, parameter.value), "IPv4: %v", parameter)
		assert.Equal(t, parameter.breaks6, both.BreaksNetwork(parameter.name, parameter.value), "both families: %v", parameter)
	}
}

func TestFirstDisk_IsTheDefaultOfTheInstallDisk(t *testing.T) {
	assert.Equal(t, cluster.FirstDisk, cluster.New("infra").Talos.InstallDisk)
}

// A file without the key keeps the contract that its machines were made with: a later default would rewrite the configuration of every
// machine at once, in a run that was for something else.
func TestTalos_TheContractOfAFileWithoutTheKeyIsTheFirstOneForEver(t *testing.T) {
	var talos cluster.Talos
	cluster.SetDefaults(&talos)
	assert.Equal(t, cluster.TalosContract("v1.12"), talos.Contract)
}
