package talos

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/machineconfig"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// dualStack gives the cluster its second family.
func dualStack(args *TalosClusterArgs) {
	args.IPv6 = &IPv6{
		NodeCIDR:    prefix("fd00:25:11::/64"),
		Gateway:     netip.MustParseAddr("fe80::1"),
		PodCIDR:     prefix("fd00:244::/48"),
		ServiceCIDR: prefix("fd00:245::/108"),
		Nameservers: []netip.Addr{netip.MustParseAddr("fd00:25:11::53")},
	}
	for i := range args.Nodes {
		args.Nodes[i].Address6 = netip.MustParseAddr(fmt.Sprintf("fd00:25:11::%d", 11+i))
	}
}

// patchesOf are the patches that a node's configuration is generated with.
func patchesOf(t *testing.T, r *mocks.Recorder, node string) []any {
	t.Helper()
	for _, call := range r.Calls() {
		if call.Token != callConfiguration {
			continue
		}
		if patches := call.Args.Mappable()["configPatches"].([]any); strings.Contains(patches[0].(string), "hostname: "+node+"\n") {
			return patches
		}
	}
	t.Fatalf("no configuration was generated for %s", node)
	return nil
}

func TestTalosCluster_GivesMachinesBothFamilies(t *testing.T) {
	r := up(t, dualStack)
	for i, node := range arguments().Nodes {
		vm := r.Resource(t, "infra-"+node.Name+"-vm")
		assert.Len(t, vm.Input("initialization.ipConfigs"), 1, "one network device")
		assert.Equal(t, node.Address.String()+"/24", vm.Input("initialization.ipConfigs[0].ipv4.address"))
		assert.Equal(t, "10.25.11.1", vm.Input("initialization.ipConfigs[0].ipv4.gateway"))
		assert.Equal(t, fmt.Sprintf("fd00:25:11::%d/64", 11+i), vm.Input("initialization.ipConfigs[0].ipv6.address"))
		assert.Equal(t, "fe80::1", vm.Input("initialization.ipConfigs[0].ipv6.gateway"))
		assert.Equal(t, []any{"10.25.11.1", "fd00:25:11::53"}, vm.Input("initialization.dns.servers"))

		apply := r.Resource(t, "infra-"+node.Name+"-apply")
		assert.Equal(t, node.Address.String(), apply.Input("node"), "machines are reached by IPv4")
		assert.Contains(t, patchesOf(t, r, node.Name)[0], fmt.Sprintf("fd00:25:11::%d/128", 11+i))
	}
}

func TestTalosCluster_GivesNodesWhatTheyDeclare(t *testing.T) {
	r := up(t, func(args *TalosClusterArgs) {
		args.VLAN = 30
		args.Nodes[0].Datastore, args.Nodes[0].Bridge, args.Nodes[0].VLAN, args.Nodes[0].Tags = "ceph", "vmbr1", 40, []string{"zz", "gpu"}
	})
	own, other := r.Resource(t, "infra-infra-worker-1-vm"), r.Resource(t, "infra-infra-worker-2-vm")
	for path, want := range map[string][2]any{
		"disks[0].datastoreId":       {"ceph", DefaultDiskDatastore},
		"efiDisk.datastoreId":        {"ceph", DefaultDiskDatastore},
		"initialization.datastoreId": {"ceph", DefaultDiskDatastore},
		"networkDevices[0].bridge":   {"vmbr1", DefaultBridge},
		"networkDevices[0].vlanId":   {40.0, 30.0},
		"tags":                       {[]any{"gpu", "homelab", "infra", "slipway", "talos", "worker", "zz"}, []any{"homelab", "infra", "slipway", "talos", "worker"}},
	} {
		assert.EqualValues(t, want[0], own.Input(path), path)
		assert.EqualValues(t, want[1], other.Input(path), path)
	}
	assert.Nil(t, own.Input("tpmState"))
}

func TestTalosCluster_AddsDataDisksAndIgnoresTheSpeedOfEach(t *testing.T) {
	r := up(t, func(args *TalosClusterArgs) {
		args.Nodes[0].Datastore = "fast"
		args.Nodes[0].DataDisks = []DataDisk{{Name: "osd", SizeGiB: 500, Datastore: "slow"}, {Name: "scratch", SizeGiB: 20, Use: machineconfig.VolumeDisk}}
	})
	vm := r.Resource(t, "infra-infra-worker-1-vm")
	require.Len(t, vm.Input("disks"), 3)
	for i, want := range []struct {
		device, datastore string
		size              float64
	}{{"scsi0", "fast", 40}, {"scsi1", "slow", 500}, {"scsi2", "fast", 20}} {
		at := fmt.Sprintf("disks[%d].", i)
		assert.Equal(t, want.device, vm.Input(at+"interface"))
		assert.Equal(t, want.datastore, vm.Input(at+"datastoreId"))
		assert.EqualValues(t, want.size, vm.Input(at+"size"))
		assert.Contains(t, vm.IgnoreChanges, at+"speed")
	}
	assert.Len(t, vm.IgnoreChanges, 3)
	assert.Contains(t, patchesOf(t, r, "infra-worker-1")[0], "drive-scsi2")
	assert.Equal(t, []string{"disks[0].speed"}, r.Resource(t, "infra-infra-worker-2-vm").IgnoreChanges)
}

func TestTalosCluster_SealsKeysInATPMOfMachinesThatBootSignedImages(t *testing.T) {
	r := up(t, func(args *TalosClusterArgs) { args.DiskEncryption = machineconfig.EncryptTPM })
	for _, vm := range r.OfType(typeVM) {
		assert.Equal(t, "v2.0", vm.Input("tpmState.version"))
		assert.Equal(t, DefaultDiskDatastore, vm.Input("tpmState.datastoreId"))
		assert.NotEqual(t, true, vm.Input("efiDisk.preEnrolledKeys"), "the image brings its keys")
	}
	for _, image := range r.OfType(typeISO) {
		assert.Equal(t, "https://factory.talos.dev/image/"+schematicID+"/v1.12.7/nocloud-amd64-secureboot.iso", image.Input("url"))
		assert.Equal(t, "talos-infra-schema-v1.12.7-infra-nocloud-amd64-secureboot.iso", image.Input("fileName"))
	}
	assert.Contains(t, patchesOf(t, r, "infra-cp-1")[1], "factory.talos.dev/nocloud-installer-secureboot/"+schematicID+":v1.12.7")
	for _, vm := range up(t, func(args *TalosClusterArgs) { args.DiskEncryption = machineconfig.EncryptNodeID }).OfType(typeVM) {
		assert.Nil(t, vm.Input("tpmState"))
	}
}

func TestTalosCluster_LetsControlPlanesAloneCarryInlineManifests(t *testing.T) {
	r := up(t, func(args *TalosClusterArgs) {
		args.InlineManifests = []InlineManifest{
			{Name: "cilium", Contents: pulumi.String("kind: Secret # " + keyMaterial)},
			{Name: "other", Contents: pulumi.String("kind: ConfigMap")},
		}
		args.Patches.All = []string{"machine: {sysctls: {x: y}}"}
	})
	for _, node := range arguments().Nodes {
		patches := patchesOf(t, r, node.Name)
		shown := r.Resource(t, "infra-"+node.Name+"-configuration")
		assert.Empty(t, shown.PlainPaths("kind: "), "manifests hold certificates")
		if node.Role != machineconfig.ControlPlane {
			assert.Len(t, patches, 3)
			assert.NotContains(t, fmt.Sprint(patches), "inlineManifests")
			assert.Empty(t, shown.Input("secrets"))
			continue
		}
		require.Len(t, patches, 5)
		assert.Contains(t, patches[2], "name: cilium")
		assert.Contains(t, patches[3], "name: other")
		assert.Contains(t, patches[4], "x: y", "the user has the last word")
		sums := shown.Input("secrets").(map[string]any)
		assert.Len(t, sums, 2)
		assert.Len(t, sums["cluster.inlineManifests.cilium"], 64, "a checksum")
	}
	for _, reg := range r.Resources() {
		assert.Empty(t, reg.PlainPaths(keyMaterial), reg.Name)
	}
}

func TestTalosCluster_ComesInEveryShape(t *testing.T) {
	for name, change := range map[string]func(*TalosClusterArgs){
		"single node": func(args *TalosClusterArgs) {
			args.Nodes, args.SchedulePodsOnControlPlanes = args.Nodes[1:2], true
		},
		"one control plane and workers": func(args *TalosClusterArgs) {
			args.Nodes = []Node{args.Nodes[1], args.Nodes[0], args.Nodes[4]}
		},
		"control planes that run pods": func(args *TalosClusterArgs) {
			args.Nodes, args.SchedulePodsOnControlPlanes = args.Nodes[1:4], true
		},
		"dual-stack": dualStack,
		"all extensions": func(args *TalosClusterArgs) {
			args.Extensions = []string{"siderolabs/lldpd", "siderolabs/qemu-guest-agent", "siderolabs/iscsi-tools"}
			args.LLDPD = "configure lldp tx-interval 30\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := arguments()
			change(args)
			r := up(t, change)
			assert.Len(t, r.OfType(typeVM), len(args.Nodes))
			assert.Len(t, r.OfType(typeMachineConfiguration), len(args.Nodes))
			boot := r.Only(t, typeCommand)
			for _, apply := range r.OfType(typeApply) {
				assert.True(t, r.After(boot, apply))
			}
			for _, node := range args.Nodes {
				scheduled := strings.Contains(patchesOf(t, r, node.Name)[0].(string), "allowSchedulingOnControlPlanes: true")
				assert.Equal(t, args.SchedulePodsOnControlPlanes && node.Role == machineconfig.ControlPlane, scheduled)
			}
		})
	}
}

func TestTalosCluster_ChecksWhatNodesDeclare(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*TalosClusterArgs)
		want   string
	}{
		"VLAN of a node":         {func(a *TalosClusterArgs) { a.Nodes[0].VLAN = 4095 }, "nodes[0] infra-worker-1: vlan: 4095 is out of range"},
		"disk of no size":        {func(a *TalosClusterArgs) { a.Nodes[0].DataDisks = []DataDisk{{Name: "osd"}} }, "nodes[0] infra-worker-1: dataDisks[0] osd: sizeGiB: 0"},
		"more disks than places": {func(a *TalosClusterArgs) { a.Nodes[0].DataDisks = make([]DataDisk, 31) }, "dataDisks: 31; a SCSI bus has places for 30"},
		"two disks of one name": {func(a *TalosClusterArgs) {
			a.Nodes[0].DataDisks = slices.Repeat([]DataDisk{{Name: "osd", SizeGiB: 1}}, 2)
		}, "node infra-worker-1: dataDisks[1]: name: osd is taken"},
		"IPv6 address without IPv6":   {func(a *TalosClusterArgs) { a.Nodes[0].Address6 = netip.MustParseAddr("fd00::1") }, "nodes[0] infra-worker-1: address6: fd00::1, but the cluster has no ipv6"},
		"no IPv6 address":             {func(a *TalosClusterArgs) { dualStack(a); a.Nodes[0].Address6 = netip.Addr{} }, "nodes[0] infra-worker-1: address6: invalid IP is no free address of ipv6.nodeCIDR"},
		"two nodes of one address":    {func(a *TalosClusterArgs) { dualStack(a); a.Nodes[1].Address6 = a.Nodes[0].Address6 }, "nodes[1] infra-cp-1: address6 fd00:25:11::11 is nodes[0] infra-worker-1's already"},
		"IPv6 networks that overlap":  {func(a *TalosClusterArgs) { dualStack(a); a.IPv6.ServiceCIDR = prefix("fd00:244::/108") }, "ipv6.serviceCIDR: fd00:244::/108 overlaps ipv6.podCIDR fd00:244::/48"},
		"IPv4 where IPv6 belongs":     {func(a *TalosClusterArgs) { dualStack(a); a.IPv6.PodCIDR = prefix("10.248.0.0/16") }, "ipv6.podCIDR: 10.248.0.0/16 is no IPv6 network"},
		"gateway of another network":  {func(a *TalosClusterArgs) { dualStack(a); a.IPv6.Gateway = netip.MustParseAddr("fd01::1") }, "ipv6.gateway: fd01::1 is neither in ipv6.nodeCIDR"},
		"lldpd without its extension": {func(a *TalosClusterArgs) { a.LLDPD = "x" }, "lldpd: configured without its extension"},
		"manifest without a name":     {func(a *TalosClusterArgs) { a.InlineManifests = []InlineManifest{{Contents: pulumi.String("x")}} }, "inlineManifests[0]: name: empty"},
		"manifest without contents":   {func(a *TalosClusterArgs) { a.InlineManifests = []InlineManifest{{Name: "x"}} }, "inlineManifests[0] x: contents: nil"},
		"control plane that joins":    {func(a *TalosClusterArgs) { a.Joining, a.Nodes = a.Nodes[3:4], a.Nodes[:2] }, "joining[0] infra-cp-3: role: controlplane; only a worker can join later"},
		"joiner of a taken address": {func(a *TalosClusterArgs) {
			a.Joining, a.Nodes = a.Nodes[4:], a.Nodes[:4]
			a.Joining = slices.Clone(a.Joining)
			a.Joining[0].Address = a.Nodes[0].Address
		}, "joining[0] infra-worker-2: address 10.25.11.21 is nodes[0] infra-worker-1's already"},
		"joiner that Talos refuses": {func(a *TalosClusterArgs) {
			a.Joining, a.Nodes = slices.Clone(a.Nodes[4:]), a.Nodes[:4]
			a.Joining[0].Patches = []string{"x: ["}
		}, "node infra-worker-2: node patches[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := answers(&mocks.Recorder{})
			require.ErrorContains(t, r.Run(program(test.change, nil)), test.want)
			assert.Empty(t, r.Find(func(reg mocks.Registration) bool { return !strings.HasPrefix(reg.Type, "pulumi:") }))
		})
	}
}
