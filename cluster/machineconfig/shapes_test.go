package machineconfig

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

func schedulable(c *cluster.Cluster) { c.Kubernetes.AllowSchedulingOnControlPlanes = true }

// dualStack adds IPv6. Each node gets the address that ends like its IPv4 one.
func dualStack(c *cluster.Cluster) {
	c.Network.IPv6 = &cluster.IPv6{
		NodeCIDR:    netip.MustParsePrefix("fd00:25:11::/64"),
		Gateway:     netip.MustParseAddr("fd00:25:11::1"),
		PodCIDR:     netip.MustParsePrefix("fd00:244::/48"),
		ServiceCIDR: netip.MustParsePrefix("fd00:245::/108"),
		Nameservers: []netip.Addr{netip.MustParseAddr("fd00:25:11::53")},
	}
	for _, n := range []*cluster.Node{controlPlane(c), worker(c)} {
		address := n.Address.String()
		n.Address6 = netip.MustParseAddr("fd00:25:11::" + address[strings.LastIndex(address, ".")+1:])
	}
}

func encrypted(kind cluster.DiskEncryption) func(*cluster.Cluster) {
	return func(c *cluster.Cluster) { c.Talos.DiskEncryption = kind }
}

// disks gives every machine data disks of both uses.
func disks(c *cluster.Cluster) {
	for i := range c.NodePools {
		c.NodePools[i].DataDisks = []cluster.DataDisk{
			{Name: "osd-0", Size: cluster.TiB, Use: cluster.DiskRaw},
			{Name: "scratch", Size: cluster.TiB, Use: cluster.DiskVolume},
			{Name: "osd-1", Size: cluster.TiB, Use: cluster.DiskRaw},
		}
	}
}

func kubeletAndExtensions(c *cluster.Cluster) {
	c.Talos.Extensions = []string{"siderolabs/iscsi-tools", cluster.LLDPDExtension}
	c.Talos.Kubelet = cluster.Kubelet{MaxPods: 200, ExtraArgs: map[string]string{"v": "4"}}
}

func TestRender_PutsIPv4FirstInADualStackCluster(t *testing.T) {
	c := sample(t, dualStack)
	cfg, err := assemble(model{*c}, machineOf(c, cluster.ControlPlane))
	require.NoError(t, err)
	assert.Equal(t, []string{"10.25.11.0/24", "fd00:25:11::11/128", "!10.25.11.10/32"}, cfg.Machine().Kubelet().NodeIP().ValidSubnets())
	assert.Equal(t, []string{"10.25.11.0/24", "!10.25.11.10/32"}, cfg.Cluster().Etcd().AdvertisedSubnets(), "etcd speaks IPv4")
	assert.Equal(t, []string{"10.244.0.0/16", "fd00:244::/48"}, cfg.Cluster().Network().PodCIDRs())
	assert.Equal(t, []string{"10.245.0.0/16", "fd00:245::/108"}, cfg.Cluster().Network().ServiceCIDRs())
	device := cfg.RawV1Alpha1().MachineConfig.MachineNetwork.NetworkInterfaces[0]
	assert.Equal(t, []string{"10.25.11.11/24", "fd00:25:11::11/64"}, device.DeviceAddresses)
	require.Len(t, device.DeviceRoutes, 2)
	assert.Equal(t, "0.0.0.0/0 10.25.11.1", device.DeviceRoutes[0].RouteNetwork+" "+device.DeviceRoutes[0].RouteGateway)
	assert.Equal(t, "::/0 fd00:25:11::1", device.DeviceRoutes[1].RouteNetwork+" "+device.DeviceRoutes[1].RouteGateway)
	assert.Equal(t, "10.25.11.10", device.DeviceVIPConfig.SharedIP)
}

// Talos keeps the routes of the cloud-init drive, which for IPv4 have the metric 1024, and the kernel takes no two routes of one metric.
func TestRender_TheDeclaredGatewayComesBeforeTheOneOfTheCloudInitDrive(t *testing.T) {
	c := sample(t, dualStack)
	for _, machine := range c.Machines() {
		cfg, err := assemble(model{*c}, machine)
		require.NoError(t, err)
		routes := cfg.RawV1Alpha1().MachineConfig.MachineNetwork.NetworkInterfaces[0].DeviceRoutes
		require.Len(t, routes, 2)
		for _, route := range routes {
			assert.NotZero(t, route.RouteMetric, "Talos's default is 1024")
			assert.Less(t, route.RouteMetric, uint32(1024), machine.Name)
		}
	}
}

func TestRender_ConfiguresAServiceExactlyWithItsExtension(t *testing.T) {
	for _, extensions := range [][]string{nil, {"siderolabs/qemu-guest-agent"}, {"siderolabs/iscsi-tools", cluster.LLDPDExtension}} {
		c := sample(t, func(c *cluster.Cluster) { c.Talos.Extensions = extensions })
		for _, machine := range c.Machines() {
			rendered, err := Render(c, machine)
			require.NoError(t, err)
			assert.Equal(t, slices.Contains(extensions, cluster.LLDPDExtension),
				strings.Contains(rendered[0], "kind: ExtensionServiceConfig"), extensions)
		}
	}
	c := sample(t, func(c *cluster.Cluster) {
		c.Talos.Extensions, c.Talos.LLDPD.Config = []string{cluster.LLDPDExtension}, "configure lldp tx-interval 10\n"
	})
	rendered, err := Render(c, machineOf(c, cluster.Worker))
	require.NoError(t, err)
	assert.Contains(t, rendered[0], "configure lldp tx-interval 10")
	assert.NotContains(t, rendered[0], "portidsubtype")
}

func TestRender_KeepsImageLayersExactlyForSpegel(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		c := sample(t, func(c *cluster.Cluster) { c.Spegel.Enabled = enabled })
		for _, machine := range c.Machines() {
			rendered, err := Render(c, machine)
			require.NoError(t, err)
			assert.Equal(t, enabled, strings.Contains(rendered[0], "discard_unpacked_layers = false"))
		}
	}
}

func TestRender_FindsDisksByTheirPlaceOnTheBus(t *testing.T) {
	c := sample(t, disks)
	rendered, err := Render(c, machineOf(c, cluster.Worker))
	require.NoError(t, err)
	assert.Contains(t, rendered[0], "disk: /dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi0")
	assert.Contains(t, rendered[0], `"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi2" in disk.symlinks`)
	assert.Equal(t, 1, strings.Count(rendered[0], "kind: UserVolumeConfig"), "raw disks are left alone")

	const declared = "/dev/disk/by-path/pci-0000:00:05.0-scsi-0:0:0:0"
	c = sample(t, disks, func(c *cluster.Cluster) { c.Talos.InstallDisk = declared })
	rendered, err = Render(c, machineOf(c, cluster.Worker))
	require.NoError(t, err)
	assert.Contains(t, rendered[0], "disk: "+declared, "what is declared wins")
}

func TestRender_LabelsNodesWithTheirPlace(t *testing.T) {
	c := sample(t, func(c *cluster.Cluster) { worker(c).Labels = map[string]string{"example.org/x": "y"} })
	cfg, err := assemble(model{*c}, machineOf(c, cluster.Worker))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{
		"topology.kubernetes.io/region": "pve", "topology.kubernetes.io/zone": "pve1", "example.org/x": "y",
	}, map[string]string(cfg.Machine().NodeLabels()))
}

func TestInlineManifest_IsValidOnTopOfOthers(t *testing.T) {
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: x\n"
	for _, text := range []string{namespace, "# comment\n---\n" + namespace + "---\n" + namespace + "  annotations:\n    c: |\n      d\n"} {
		patch, err := InlineManifest("cilium", text)
		require.NoError(t, err)
		c := sample(t)
		c.Talos.Patches.ControlPlanes = patches(patch, strings.Replace(patch, "cilium", "other", 1))
		cfg, err := assemble(model{*c}, machineOf(c, cluster.ControlPlane))
		require.NoError(t, err)
		require.NoError(t, Validate(c))
		require.Len(t, cfg.Cluster().InlineManifests(), 2)
		assert.Equal(t, text, cfg.Cluster().InlineManifests()[0].Contents())
	}
}

func TestRender_LetsPodsTakeSnapshotsOnlyWhereThatIsDeclared(t *testing.T) {
	access := func(c *cluster.Cluster, role cluster.Role) string {
		tree, err := Effective(c, machineOf(c, role))
		require.NoError(t, err)
		text, _ := Lines(tree)
		return text
	}
	declared := sample(t, func(c *cluster.Cluster) {
		c.Lifecycle.Snapshots.Scheduled = true
		c.Lifecycle.Snapshots.Recipients = []string{"age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z"}
		c.GitOps.Username, c.GitPassword = "flux", cluster.NewSecret("password")
	})
	text := access(declared, cluster.ControlPlane)
	require.Contains(t, text, "machine.features.kubernetesTalosAPIAccess.enabled = true")
	require.Contains(t, text, "machine.features.kubernetesTalosAPIAccess.allowedRoles[0] = os:etcd:backup")
	require.Contains(t, text, "machine.features.kubernetesTalosAPIAccess.allowedKubernetesNamespaces[0] = etcd-backup")
	require.NotContains(t, text, "allowedRoles[1]")
	require.NotContains(t, access(declared, cluster.Worker), "kubernetesTalosAPIAccess", "Talos refuses it there")
	require.NotContains(t, access(sample(t), cluster.ControlPlane), "kubernetesTalosAPIAccess")
}
