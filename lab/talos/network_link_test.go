package talos_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/lab/talos"
)

var (
	address6 = netip.MustParsePrefix("fd00:25:11::11/64")
	gateway6 = netip.MustParseAddr("fd00:25:11::1")
)

// dualStack changes a configuration to what the stacks render for a dual-stack node.
func dualStack(w *world, host byte) func(*v1alpha1.Config) {
	return func(c *v1alpha1.Config) {
		device := c.MachineConfig.MachineNetwork.NetworkInterfaces[0] //nolint:staticcheck // what the stacks render
		device.DeviceAddresses = append(device.DeviceAddresses, address6.String())
		device.DeviceRoutes = []*v1alpha1.Route{
			{RouteNetwork: "0.0.0.0/0", RouteGateway: w.addr(1).String()},
			{RouteNetwork: "::/0", RouteGateway: gateway6.String()},
		}
		c.MachineConfig.MachineNetwork.NameServers = []string{w.addr(1).String(), "fd00:25:11::53"} //nolint:staticcheck // what the stacks render
		c.MachineConfig.MachineKubelet.KubeletNodeIP = &v1alpha1.KubeletNodeIPConfig{
			KubeletNodeIPValidSubnets: []string{netip.PrefixFrom(w.addr(0), 24).String(), address6.Masked().String(),
				"!" + w.vip().String() + "/32"},
		}
		c.ClusterConfig.ClusterNetwork.PodSubnet = []string{"10.244.0.0/16", "fd00:244::/56"}
		c.ClusterConfig.ClusterNetwork.ServiceSubnet = []string{"10.245.0.0/16", "fd00:245::/108"}
	}
}

func TestNetwork_ADualStackNodeHasBothFamiliesFromTheFirstBootOn(t *testing.T) {
	w := newWorld(t)
	hw := w.hardware(11)
	hw.CloudInit.Addresses = append([]netip.Prefix{address6}, hw.CloudInit.Addresses...)
	hw.CloudInit.Gateways = []netip.Addr{w.addr(1), gateway6}
	g := w.site.PowerOn(hw)
	w.stage(11, talos.StageMaintenance)
	require.True(t, w.links.has(address6.Addr()))
	want := []netip.Prefix{netip.PrefixFrom(w.addr(11), 24), address6}
	agent := func() []netip.Prefix {
		links, answers := g.Interfaces()
		require.True(t, answers)
		return links[1].Addresses
	}
	require.Equal(t, want, agent(), "IPv4 first")

	w.apply(11, w.config(configmachine.TypeControlPlane, 11, dualStack(w, 11)))
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	w.eventually("it holds the VIP", func() bool { return w.status(11).VIP })
	require.Equal(t, append(want, netip.PrefixFrom(w.vip(), 32)), agent())

	kubelet, runs := w.kube.kubelet(node(11))
	require.True(t, runs)
	require.Equal(t, []netip.Addr{w.addr(11), address6.Addr()}, kubelet.Addresses)
	require.Equal(t, kubelet.Addresses, resource[*k8s.NodeIP](w, 11, k8s.NamespaceName, k8s.KubeletID).TypedSpec().Addresses)
	require.Equal(t, append([]netip.Prefix{netip.PrefixFrom(w.vip(), 32)}, want...),
		resource[*network.NodeAddress](w, 11, network.NamespaceName, network.NodeAddressRoutedID).TypedSpec().Addresses)
	require.Equal(t, []netip.Addr{w.addr(1), netip.MustParseAddr("fd00:25:11::53")},
		resource[*network.ResolverStatus](w, 11, network.NamespaceName, network.ResolverID).TypedSpec().DNSServers)
	manager := resource[*k8s.ControllerManagerConfig](w, 11, k8s.ControlPlaneNamespaceName, k8s.ControllerManagerConfigID).TypedSpec()
	require.Equal(t, []string{"10.244.0.0/16", "fd00:244::/56"}, manager.PodCIDRs)
	require.Equal(t, []string{"10.245.0.0/16", "fd00:245::/108"}, manager.ServiceCIDRs)

	networks, gateways := w.routes(11)
	require.ElementsMatch(t, []netip.Prefix{netip.PrefixFrom(w.addr(0), 24), address6.Masked()}, networks)
	require.ElementsMatch(t, []string{w.addr(1).String() + " 1024", gateway6.String() + " 1024", gateway6.String() + " 2048"}, gateways)
	require.Equal(t, "bc:24:11:00:01:0b", resource[*network.LinkStatus](w, 11, network.NamespaceName,
		"eth0").TypedSpec().HardwareAddr.String())

	g.PowerOff()
	require.Empty(t, w.links.up, "both families go with the power")
}

// routes returns the networks that a node has routes to, and the gateways of its default routes with their metrics.
func (w *world) routes(host byte) (networks []netip.Prefix, gateways []string) {
	w.t.Helper()
	list, err := safe.StateListAll[*network.RouteStatus](w.ctx, w.admin(host).COSI)
	require.NoError(w.t, err)
	for r := range list.All() {
		if to := r.TypedSpec().Destination; to.IsValid() { // default routes have none in Talos
			networks = append(networks, to)
		} else {
			gateways = append(gateways, fmt.Sprint(r.TypedSpec().Gateway, " ", r.TypedSpec().Priority))
		}
	}
	return networks, gateways
}

func TestNetwork_AGatewayOfTheConfigurationStandsBesideTheOneOfTheCloudInitDrive(t *testing.T) {
	w := newWorld(t)
	hw := w.hardware(11)
	hw.CloudInit.Gateways = []netip.Addr{w.addr(1)}
	w.site.PowerOn(hw)
	w.stage(11, talos.StageMaintenance)
	through := func(router byte) []byte {
		return w.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
			c.MachineConfig.MachineNetwork.NetworkInterfaces[0].DeviceRoutes = []*v1alpha1.Route{ //nolint:staticcheck // what the stacks render
				{RouteNetwork: "0.0.0.0/0", RouteGateway: w.addr(router).String(), RouteMetric: 512},
			}
		})
	}
	w.apply(11, through(254))
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	_, gateways := w.routes(11)
	require.ElementsMatch(t, []string{w.addr(254).String() + " 512", w.addr(1).String() + " 1024"}, gateways)

	_, err := w.admin(11).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
		Data: through(253), Mode: machine.ApplyConfigurationRequest_NO_REBOOT,
	})
	require.NoError(t, err)
	_, gateways = w.routes(11)
	require.ElementsMatch(t, []string{w.addr(253).String() + " 512", w.addr(1).String() + " 1024"}, gateways, "at once")
}

// A VM boots with its new cloud-init drive before its node gets the machine configuration that has the same prefix.
func TestNetwork_ANodeServesAnAddressThatItHasWithTwoPrefixes(t *testing.T) {
	w := newWorld(t)
	hw := w.hardware(11)
	hw.CloudInit.Addresses = []netip.Prefix{netip.PrefixFrom(w.addr(11), 23)}
	w.site.PowerOn(hw)
	w.stage(11, talos.StageMaintenance)
	w.apply(11, w.config(configmachine.TypeControlPlane, 11))
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
}

func TestNetwork_ASubnetThatNoAddressIsInKeepsTheKubeletDown(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
		c.MachineConfig.MachineKubelet.KubeletNodeIP = &v1alpha1.KubeletNodeIPConfig{KubeletNodeIPValidSubnets: []string{"192.0.2.0/24"}}
	})
	w.bootstrap(11)
	w.eventually("the status shows the reason", func() bool {
		return w.service(11, "kubelet").Message == "Failed running service: no suitable node IP found, please make sure .machine.kubelet.nodeIP filters and pod/service subnets are set up correctly"
	})
}

func TestKubelet_GetsWhatTheMachineConfigurationSays(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
		c.MachineConfig.MachineKubelet.KubeletExtraArgs = v1alpha1.Args{"v": v1alpha1.NewArgValue("4", nil)}
		c.MachineConfig.MachineKubelet.KubeletExtraConfig = v1alpha1.Unstructured{Object: map[string]any{
			"maxPods": 200, "registerWithTaints": []any{map[string]any{"key": "example.com/gpu", "effect": "NoExecute"}},
		}}
		c.MachineConfig.MachineNodeLabels = map[string]string{"topology.kubernetes.io/zone": "pve1"}
		c.MachineConfig.MachineNodeTaints = map[string]string{"dedicated": "db:NoSchedule"}
	})
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	k, runs := w.kube.kubelet(node(11))
	require.True(t, runs)
	require.Equal(t, 200, k.MaxPods)
	require.Equal(t, map[string]string{"v": "4"}, k.ExtraArgs)
	require.Equal(t, 2, k.Cores)
	require.Equal(t, 4096, k.MemoryMiB)
	disk := uint64(w.hardware(11).Disks["scsi0"].Size)
	require.Less(t, k.EphemeralBytes, disk-2<<30, "the boot partition, META and STATE are on the same disk")
	require.Greater(t, k.EphemeralBytes, disk-5<<29)
	require.Equal(t, "pve1", k.Labels["topology.kubernetes.io/zone"])
	require.Contains(t, k.Taints, corev1.Taint{Key: "dedicated", Value: "db", Effect: "NoSchedule"})
	require.Equal(t, []corev1.Taint{
		{Key: "example.com/gpu", Effect: "NoExecute"}, {Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"},
	}, k.RegisterTaints)
}
