package live

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

const withVIP = `version: v1alpha1
machine:
  type: controlplane
  network: {interfaces: [{deviceSelector: {hardwareAddr: "bc:24:11:00:01:11"}, vip: {ip: 10.25.11.10}}]}
cluster: {apiServer: {image: "registry.k8s.io/kube-apiserver:v1.35.8"}}
---
apiVersion: v1alpha1
kind: HostnameConfig
hostname: cp-1
`

// activate makes a node run a configuration, and keep it unless it tries it.
func (s *talos) activate(in *machine.ApplyConfigurationRequest) (*machine.ApplyConfigurationResponse, error) {
	s.did = append(s.did, in.GetMode().String()+" "+in.GetTryModeTimeout().AsDuration().String())
	err := s.put(config.ActiveID, string(in.GetData()))
	if err == nil && in.GetMode() != machine.ApplyConfigurationRequest_TRY {
		err = s.put(config.PersistentID, string(in.GetData()))
	}
	return &machine.ApplyConfigurationResponse{}, err
}

func (s *talos) put(id, text string) error {
	parsed, err := configloader.NewFromBytes([]byte(text))
	if err != nil {
		return err
	}
	one := config.NewMachineConfigWithID(parsed, id)
	_ = s.resources.Destroy(context.Background(), one.Metadata())
	return s.resources.Create(context.Background(), one)
}

// names returns the virtual IPs that the configurations of a node name: of the one that it runs, and of the one that it keeps.
func (s *talos) names(t *testing.T) (active, kept netip.Addr) {
	t.Helper()
	var all [2]netip.Addr
	for i, id := range []string{config.ActiveID, config.PersistentID} {
		one, err := safe.StateGetByID[*config.MachineConfig](t.Context(), s.resources, id)
		require.NoError(t, err)
		all[i] = virtualIP(one.Provider())
	}
	return all[0], all[1]
}

// holder is a cluster with a control plane that has the virtual IP.
func holder(t *testing.T) (*Cluster, turn.Node, *talos) {
	t.Helper()
	live, node, _, talos := rigOf(t, "v1.14.6")
	talos.applies = true
	require.NoError(t, talos.put(config.ActiveID, withVIP))
	require.NoError(t, talos.put(config.PersistentID, withVIP))
	addresses := network.NewNodeAddress(network.NamespaceName, network.NodeAddressCurrentID)
	addresses.TypedSpec().Addresses = []netip.Prefix{netip.MustParsePrefix("10.25.11.10/32"), netip.MustParsePrefix("10.25.11.11/24")}
	require.NoError(t, talos.resources.Create(t.Context(), addresses))
	return live, node, talos
}

func TestStepAside_LeavesTheVirtualIPUntilTheNextConfiguration(t *testing.T) {
	vip := netip.MustParseAddr("10.25.11.10")
	live, node, talos := holder(t)
	address, err := live.StepAside(t.Context(), node)
	require.NoError(t, err)
	assert.Equal(t, vip, address)
	active, kept := talos.names(t)
	assert.False(t, active.IsValid())
	assert.Equal(t, vip, kept, "Talos takes it back after a while")

	change := func(in *v1alpha1.Config) error {
		in.ClusterConfig.APIServerConfig.ContainerImage = "registry.k8s.io/kube-apiserver:v1.36.4"
		return nil
	}
	require.NoError(t, ChangeConfiguration(t.Context(), live.Talos(node), machine.ApplyConfigurationRequest_NO_REBOOT, change))
	active, kept = talos.names(t)
	assert.Equal(t, []netip.Addr{vip, vip}, []netip.Addr{active, kept}, "it takes part in the election again")
	assert.Equal(t, []string{"TRY 2m0s", "NO_REBOOT 0s"}, talos.did)
}

// A killed run may have given the node a configuration for its next boot.
func TestChangeConfiguration_AppliesNothingThatWasLeftForTheNextBoot(t *testing.T) {
	live, node, talos := holder(t)
	_, err := live.StepAside(t.Context(), node)
	require.NoError(t, err)
	require.NoError(t, talos.put(config.PersistentID, strings.Replace(withVIP, "v1.35.8", "v1.36.4", 1)))
	change := func(in *v1alpha1.Config) error {
		assert.Equal(t, "registry.k8s.io/kube-apiserver:v1.35.8", in.ClusterConfig.APIServerConfig.ContainerImage)
		return nil
	}
	require.NoError(t, ChangeConfiguration(t.Context(), live.Talos(node), machine.ApplyConfigurationRequest_NO_REBOOT, change))
	active, _ := talos.names(t)
	assert.True(t, active.IsValid(), "it takes part in the election again")
}

func TestStepAside_ChangesNothingWhereTheVirtualIPIsElsewhere(t *testing.T) {
	live, node, talos := holder(t)
	_, err := safe.StateUpdateWithConflicts(t.Context(), talos.resources, network.NewNodeAddress(network.NamespaceName,
		network.NodeAddressCurrentID).Metadata(), func(a *network.NodeAddress) error {
		a.TypedSpec().Addresses = a.TypedSpec().Addresses[1:]
		return nil
	}, state.WithExpectedPhaseAny())
	require.NoError(t, err)
	address, err := live.StepAside(t.Context(), node)
	require.NoError(t, err)
	assert.False(t, address.IsValid())
	assert.Empty(t, talos.did)
}
