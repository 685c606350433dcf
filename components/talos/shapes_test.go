package talos

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/nodes/retire"
	"github.com/slipway-platform/slipway/internal/nodes/upgrade"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// dualStack adds IPv6 to the cluster.
func dualStack(c *cluster.Cluster) {
	c.Network.IPv6 = &cluster.IPv6{
		NodeCIDR:    netip.MustParsePrefix("fd00:25:11::/64"),
		Gateway:     netip.MustParseAddr("fe80::1"),
		PodCIDR:     netip.MustParsePrefix("fd00:244::/48"),
		ServiceCIDR: netip.MustParsePrefix("fd00:245::/108"),
		Nameservers: []netip.Addr{netip.MustParseAddr("fd00:25:11::53")},
	}
	next := 11
	for i := range c.NodePools {
		for j := range c.NodePools[i].Nodes {
			c.NodePools[i].Nodes[j].Address6 = netip.MustParseAddr(fmt.Sprintf("fd00:25:11::%d", next))
			next++
		}
	}
}

// patchesOf returns the patches that a node's configuration is generated with.
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
	for i, node := range allMachines(t) {
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

func TestTalosCluster_AddsDataDisksAndIgnoresTheSpeedOfEach(t *testing.T) {
	r := up(t, func(c *cluster.Cluster) {
		workers(c).Datastore = "fast"
		workers(c).DataDisks = []cluster.DataDisk{
			{Name: "osd", Size: 500 * cluster.GiB, Datastore: "slow"}, {Name: "scratch", Size: 20 * cluster.GiB, Use: cluster.DiskVolume},
		}
	})
	vm := r.Resource(t, "infra-infra-worker-1-vm")
	require.Len(t, vm.Input("disks"), 3)
	for i, want := range []struct {
		device, datastore string
		size              float64
	}{{"scsi0", "fast", 100}, {"scsi1", "slow", 500}, {"scsi2", "fast", 20}} {
		at := fmt.Sprintf("disks[%d].", i)
		assert.Equal(t, want.device, vm.Input(at+"interface"))
		assert.Equal(t, want.datastore, vm.Input(at+"datastoreId"))
		assert.EqualValues(t, want.size, vm.Input(at+"size"))
		assert.Contains(t, vm.IgnoreChanges, at+"speed")
	}
	assert.Contains(t, patchesOf(t, r, "infra-worker-1")[0], "drive-scsi2")
	assert.NotContains(t, vm.IgnoreChanges, "disks[3].speed")
	assert.NotContains(t, r.Resource(t, "infra-infra-cp-1-vm").IgnoreChanges, "disks[1].speed")
}

func TestTalosCluster_SealsKeysInATPMOfMachinesThatBootSignedImages(t *testing.T) {
	r := up(t, func(c *cluster.Cluster) { c.Talos.DiskEncryption = cluster.DiskEncryptionTPM })
	for _, vm := range r.OfType(typeVM) {
		assert.Equal(t, "v2.0", vm.Input("tpmState.version"))
		assert.Equal(t, "local-lvm", vm.Input("tpmState.datastoreId"))
		assert.NotEqual(t, true, vm.Input("efiDisk.preEnrolledKeys"), "the image contains its keys")
	}
	for _, image := range r.OfType(typeISO) {
		assert.Equal(t, "https://factory.talos.dev/image/"+schematicID+"/v1.14.6/nocloud-amd64-secureboot.iso", image.Input("url"))
		name := fmt.Sprintf("talos-infra-schema-v1.14.6-infra-%s-nocloud-amd64-secureboot.iso", image.Input("nodeName"))
		assert.Equal(t, name, image.Input("fileName"))
	}
	assert.Contains(t, patchesOf(t, r, "infra-cp-1")[1], "factory.talos.dev/nocloud-installer-secureboot/"+schematicID+":v1.14.6")
	for _, vm := range up(t, func(c *cluster.Cluster) { c.Talos.DiskEncryption = cluster.DiskEncryptionNodeID }).OfType(typeVM) {
		assert.Nil(t, vm.Input("tpmState"))
	}
}

// A disk is encrypted when it is made. So a machine that is not replaced yet keeps the encryption that it has, its boot and its installer.
func TestTalosCluster_AMachineKeepsTheDiskEncryptionThatItDeclares(t *testing.T) {
	r := up(t, func(c *cluster.Cluster) {
		c.Talos.DiskEncryption = cluster.DiskEncryptionTPM
		for i := range c.NodePools[0].Nodes[1:] {
			c.NodePools[0].Nodes[1+i].DiskEncryption = cluster.DiskEncryptionNone
		}
	})
	for node, kind := range map[string]string{"infra-cp-1": "-secureboot", "infra-cp-2": "", "infra-worker-1": "-secureboot"} {
		patches := patchesOf(t, r, node)
		assert.Equal(t, kind != "", strings.Contains(patches[0].(string), "kind: VolumeConfig"), node)
		assert.Equal(t, kind != "", r.Resource(t, "infra-"+node+"-vm").Input("tpmState") != nil, node)
		assert.Contains(t, patches[1], "/nocloud-installer"+kind+"/", node)
		var spec upgrade.Spec
		require.NoError(t, json.Unmarshal([]byte(r.Resource(t, "infra-upgrade").Input("stdin").(string)), &spec))
		assert.Contains(t, spec.Installers[node], "/nocloud-installer"+kind+"/", node)
	}
	var record retire.Record
	require.NoError(t, json.Unmarshal([]byte(r.Resource(t, "infra-retire").Input("environment."+step.RecordVariable).(string)), &record))
	assert.Equal(t, cluster.DiskEncryptionTPM, record.Nodes["infra-cp-1"].DiskEncryption)
	assert.Equal(t, cluster.DiskEncryptionNone, record.Nodes["infra-cp-2"].DiskEncryption)
}

func TestTalosCluster_PutsInlineManifestsIntoControlPlanesOnly(t *testing.T) {
	args := arguments(t, func(c *cluster.Cluster) { c.Talos.Patches.All = patch(`{"machine":{"sysctls":{"vm.swappiness":"1"}}}`) })
	args.InlineManifests = []InlineManifest{
		{Name: "cilium", Contents: pulumi.String("kind: Secret # " + keyMaterial)},
		{Name: "other", Contents: pulumi.String("kind: ConfigMap")},
	}
	r := answers(&mocks.Recorder{})
	require.NoError(t, r.Run(program(args, nil)))
	for _, node := range allMachines(t) {
		patches := patchesOf(t, r, node.Name)
		shown := r.Resource(t, "infra-"+node.Name+"-configuration")
		assert.Empty(t, shown.PlainPaths("kind: "), "manifests hold certificates")
		if node.Role != cluster.ControlPlane {
			assert.Len(t, patches, 3)
			assert.NotContains(t, fmt.Sprint(patches), "inlineManifests")
			assert.Empty(t, shown.Input("secrets"))
			continue
		}
		require.Len(t, patches, 5)
		assert.Contains(t, patches[2], "name: cilium")
		assert.Contains(t, patches[3], "name: other")
		assert.Contains(t, patches[4], `"vm.swappiness":"1"`, "the user's patches override all others")
		sums := shown.Input("secrets").(map[string]any)
		assert.Len(t, sums, 2)
		assert.Len(t, sums["cluster.inlineManifests.cilium"], 64, "a checksum")
	}
	for _, reg := range r.Resources() {
		assert.Empty(t, reg.PlainPaths(keyMaterial), reg.Name)
	}
}

func TestTalosCluster_RegistersClustersOfEveryShape(t *testing.T) {
	alone := func(c *cluster.Cluster) {
		c.NodePools, c.Kubernetes.AllowSchedulingOnControlPlanes = c.NodePools[:1], true
		c.Storage = cluster.Storage{} // no disk is left for it
	}
	one := func(c *cluster.Cluster) { c.NodePools[0].Nodes = c.NodePools[0].Nodes[:1] }
	for name, changes := range map[string][]func(*cluster.Cluster){
		"single node":                   {alone, one},
		"one control plane and workers": {one},
		"control planes that run pods":  {alone},
		"dual-stack":                    {dualStack},
		"all extensions": {func(c *cluster.Cluster) {
			c.Talos.Extensions = []string{"siderolabs/lldpd", "siderolabs/qemu-guest-agent", "siderolabs/iscsi-tools"}
			c.Talos.LLDPD.Config = "configure lldp tx-interval 30\n"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			declared := arguments(t, changes...).Cluster
			r := up(t, changes...)
			assert.Len(t, r.OfType(typeVM), len(declared.Machines()))
			assert.Len(t, r.OfType(typeMachineConfiguration), len(declared.Machines()))
			boot := r.Resource(t, "infra-bootstrap")
			for _, apply := range r.OfType(typeApply) {
				assert.True(t, r.After(boot, apply))
			}
			for _, node := range declared.Machines() {
				scheduled := strings.Contains(patchesOf(t, r, node.Name)[0].(string), "allowSchedulingOnControlPlanes: true")
				assert.Equal(t, declared.Kubernetes.AllowSchedulingOnControlPlanes && node.Role == cluster.ControlPlane, scheduled)
			}
		})
	}
}
