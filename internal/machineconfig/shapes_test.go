package machineconfig

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func schedulable() Cluster {
	c := sample()
	c.SchedulePodsOnControlPlanes = true
	return c
}

func dualStack(c Cluster) Cluster {
	c.IPv6 = &IPv6{
		NodeCIDR:    netip.MustParsePrefix("fd00:25:11::/64"),
		Gateway:     netip.MustParseAddr("fd00:25:11::1"),
		PodCIDR:     netip.MustParsePrefix("fd00:244::/48"),
		ServiceCIDR: netip.MustParsePrefix("fd00:245::/108"),
		Nameservers: []netip.Addr{netip.MustParseAddr("fd00:25:11::53")},
	}
	return c
}

// sixth gives a node the IPv6 address that ends like its IPv4 one.
func sixth(n Node) Node {
	n.Address6 = netip.MustParseAddr("fd00:25:11::" + n.Address.String()[strings.LastIndex(n.Address.String(), ".")+1:])
	return n
}

func encrypted(kind DiskEncryption) Cluster {
	c := sample()
	c.DiskEncryption = kind
	return c
}

func disks(n Node) Node {
	n.DataDisks = []DataDisk{{Name: "osd-0"}, {Name: "scratch", Use: VolumeDisk}, {Name: "osd-1", Use: RawDisk}}
	return n
}

// coreServices is what the services of the platform ask of the machines.
func coreServices() Cluster {
	c := sample()
	c.KeepImageLayers, c.DisableCoreDNS, c.Region = true, true, "pve"
	c.Extensions = Extensions{"siderolabs/iscsi-tools", lldpd}
	c.Kubelet = Kubelet{MaxPods: 200, ExtraArgs: map[string]string{"v": "4"}}
	return c
}

func TestRender_PutsIPv4FirstInADualStackCluster(t *testing.T) {
	cfg, err := assemble(dualStack(sample()), sixth(controlPlane()))
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

func TestIPv6_GivesEachNodeARangeWithinKubernetesLimits(t *testing.T) {
	for network, want := range map[string]int{
		"fd00::/40": 56, "fd00::/48": 64, "fd00::/56": 64, "fd00::/57": 73, "fd00::/64": 80, "fd00::/104": 120, "fd00::/112": 120,
	} {
		f := IPv6{PodCIDR: netip.MustParsePrefix(network), ServiceCIDR: netip.MustParsePrefix("fd01::/108")}
		got := f.nodeMask6()
		assert.Equal(t, want, got, network)
		assert.LessOrEqual(t, got-f.PodCIDR.Bits(), largestNodeBits, network)
		assert.GreaterOrEqual(t, got-f.PodCIDR.Bits(), smallestNodeBits, network)
		assert.Empty(t, f.validate(), network)
	}
}

func TestRender_ConfiguresAServiceExactlyWithItsExtension(t *testing.T) {
	for _, extensions := range []Extensions{nil, {"siderolabs/qemu-guest-agent"}, {"siderolabs/iscsi-tools", lldpd}} {
		c := sample()
		c.Extensions = extensions
		for _, n := range []Node{controlPlane(), worker()} {
			patches, err := Render(c, n)
			require.NoError(t, err)
			assert.Equal(t, slices.Contains(extensions, lldpd), strings.Contains(patches[0], "kind: ExtensionServiceConfig"), extensions)
		}
	}
	c := sample()
	c.Extensions, c.LLDPD = Extensions{lldpd}, "configure lldp tx-interval 10\n"
	patches, err := Render(c, worker())
	require.NoError(t, err)
	assert.Contains(t, patches[0], "configure lldp tx-interval 10")
	assert.NotContains(t, patches[0], "portidsubtype")
}

func TestExtensions_KnowWhetherAnAgentRuns(t *testing.T) {
	assert.True(t, Extensions{"siderolabs/iscsi-tools", "siderolabs/qemu-guest-agent"}.Agent())
	assert.False(t, Extensions{"siderolabs/iscsi-tools"}.Agent())
	assert.False(t, Extensions(nil).Agent())
}

func TestRender_FindsDisksByTheirPlaceOnTheBus(t *testing.T) {
	patches, err := Render(sample(), disks(worker()))
	require.NoError(t, err)
	assert.Contains(t, patches[0], "disk: /dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi0")
	assert.Contains(t, patches[0], `"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi2" in disk.symlinks`)
	assert.Equal(t, 1, strings.Count(patches[0], "kind: UserVolumeConfig"), "raw disks are left alone")

	c := sample()
	c.InstallDisk = "/dev/vda"
	patches, err = Render(c, disks(worker()))
	require.NoError(t, err)
	assert.Contains(t, patches[0], "disk: /dev/vda", "what is declared wins")
}

func TestRender_LabelsNodesWithTheirPlace(t *testing.T) {
	c, n := sample(), worker()
	c.Region, n.Zone = "pve", "pve1"
	n.Labels = map[string]string{"example.org/x": "y"}
	assert.Equal(t, map[string]string{
		"topology.kubernetes.io/region": "pve", "topology.kubernetes.io/zone": "pve1", "example.org/x": "y",
	}, c.labels(n))
	n.Labels["topology.kubernetes.io/zone"] = "rack-1"
	assert.Equal(t, "rack-1", c.labels(n)["topology.kubernetes.io/zone"], "the user's own labels win")
	assert.Len(t, n.Labels, 2, "what was handed over stays as it is")
}

func TestInlineManifest_IsValidOnTopOfOthers(t *testing.T) {
	for _, text := range []string{"kind: Namespace\nmetadata:\n  name: x\n", "# comment\n---\na: \"b\"\n---\nc: |\n  d\n"} {
		patch, err := InlineManifest("cilium", text)
		require.NoError(t, err)
		c := sample()
		c.Patches.ControlPlanes = []string{patch, strings.Replace(patch, "cilium", "other", 1)}
		cfg, err := assemble(c, controlPlane())
		require.NoError(t, err)
		require.NoError(t, Validate(c, []Node{controlPlane()}))
		require.Len(t, cfg.Cluster().InlineManifests(), 2)
		assert.Equal(t, text, cfg.Cluster().InlineManifests()[0].Contents())
	}
}

func TestValidate_NamesWhatTalosCannotSee(t *testing.T) {
	for name, test := range map[string]struct {
		break_ func(*Cluster, *Node)
		want   string
	}{
		"lldpd without its extension": {
			func(c *Cluster, _ *Node) { c.LLDPD = "x" },
			"lldpd: configured without its extension; add siderolabs/lldpd",
		},
		"extension without a maker": {
			func(c *Cluster, _ *Node) { c.Extensions = Extensions{"lldpd"} },
			`extensions[0]: "lldpd" is not the name of an extension`,
		},
		"extension listed twice": {
			func(c *Cluster, _ *Node) { c.Extensions = Extensions{lldpd, lldpd} },
			"extensions[1]: siderolabs/lldpd is listed twice",
		},
		"encryption of no kind": {
			func(c *Cluster, _ *Node) { c.DiskEncryption = "luks" },
			`diskEncryption: "luks" is unknown; use none, nodeID or tpm`,
		},
		"encryption before its document": {func(c *Cluster, _ *Node) {
			c.DiskEncryption, c.TalosVersion, c.KubernetesVersion = EncryptTPM, "v1.10.3", "v1.33.1"
		}, "diskEncryption: tpm needs Talos v1.11 or later"},
		"more pods than addresses": {
			func(c *Cluster, _ *Node) { c.Kubelet.MaxPods = 251 },
			"kubelet.maxPods: 251; a node has addresses for 250 pods",
		},
		"pod network too small": {
			func(c *Cluster, _ *Node) { *c = dualStack(*c); c.IPv6.PodCIDR = netip.MustParsePrefix("fd00::/113") },
			"ipv6.podCIDR: fd00::/113 leaves no /120 each for 256 nodes",
		},
		"service network too large": {
			func(c *Cluster, _ *Node) { *c = dualStack(*c); c.IPv6.ServiceCIDR = netip.MustParsePrefix("fd00::/64") },
			"ipv6.serviceCIDR: fd00::/64 is larger than Kubernetes takes; give a /108 or smaller",
		},
		"two disks of one name": {
			func(_ *Cluster, n *Node) { n.DataDisks = []DataDisk{{Name: "a"}, {Name: "a"}} },
			"node infra-worker-1: dataDisks[1]: name: a is taken",
		},
		"disk without a name": {
			func(_ *Cluster, n *Node) { n.DataDisks = []DataDisk{{}} },
			"node infra-worker-1: dataDisks[0]: name: empty",
		},
		"disk of no use": {
			func(_ *Cluster, n *Node) { n.DataDisks = []DataDisk{{Name: "a", Use: "swap"}} },
			`node infra-worker-1: dataDisks[0]: use: "swap" is unknown; use raw or volume`,
		},
		"volume that Talos cannot name": {
			func(_ *Cluster, n *Node) { n.DataDisks = []DataDisk{{Name: "a_b", Use: VolumeDisk}} },
			"node infra-worker-1: UserVolumeConfig/a_b: name can only contain",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, n := sample(), worker()
			test.break_(&c, &n)
			if c.IPv6 != nil {
				n = sixth(n)
			}
			require.ErrorContains(t, Validate(c, []Node{n}), test.want)
		})
	}
}
