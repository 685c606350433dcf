package machineconfig

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/golden"
)

// sample is a small cluster of one control plane and one worker, after the changes.
func sample(t testing.TB, changes ...func(*cluster.Cluster)) *cluster.Cluster {
	t.Helper()
	c := cluster.New("infra")
	c.Identity = cluster.Identity{Name: "infra", ID: 1}
	c.Proxmox.Endpoint, c.Proxmox.Nodes = "https://pve.home.arpa:8006/", []string{"pve1"}
	c.Network = cluster.Network{
		NodeCIDR:    netip.MustParsePrefix("10.25.11.0/24"),
		Gateway:     netip.MustParseAddr("10.25.11.1"),
		VIP:         netip.MustParseAddr("10.25.11.10"),
		PodCIDR:     netip.MustParsePrefix("10.244.0.0/16"),
		ServiceCIDR: netip.MustParsePrefix("10.245.0.0/16"),
	}
	c.Talos.Version, c.Kubernetes.Version = "v1.12.7", "v1.35.8"
	c.GitOps.URL = "https://git.home.arpa/platform/slipway.git"
	c.NodePools = []cluster.NodePool{
		pool(cluster.ControlPlane, cluster.Node{
			Name: "infra-cp-1", VMID: 1111, Address: netip.MustParseAddr("10.25.11.11"), MAC: "BC:24:11:00:01:0B",
		}),
		pool(cluster.Worker, cluster.Node{
			Name: "infra-worker-1", VMID: 1121, Address: netip.MustParseAddr("10.25.11.21"), MAC: "BC:24:11:00:01:15",
		}),
	}
	for _, change := range changes {
		change(c)
	}
	var findings cluster.Findings
	c.Complete(&findings)
	require.NoError(t, findings.Err())
	return c
}

func pool(role cluster.Role, node cluster.Node) cluster.NodePool {
	return cluster.NodePool{
		Name: node.Name, Role: role, Cores: 4, Memory: 4 * cluster.GiB, Disk: 40 * cluster.GiB, Nodes: []cluster.Node{node},
	}
}

// controlPlane and worker are the declared nodes of a sample.
func controlPlane(c *cluster.Cluster) *cluster.Node { return &c.NodePools[0].Nodes[0] }
func worker(c *cluster.Cluster) *cluster.Node       { return &c.NodePools[1].Nodes[0] }

// machineOf is the first machine of a role.
func machineOf(c *cluster.Cluster, role cluster.Role) cluster.Machine {
	if role == cluster.ControlPlane {
		return c.ControlPlanes()[0]
	}
	return c.WorkerMachines()[0]
}

// patches are patches as the model holds them. The text may be YAML, too, and anything that is no patch.
func patches(texts ...string) []cluster.Patch {
	list := make([]cluster.Patch, len(texts))
	for i, text := range texts {
		list[i] = cluster.Patch(text)
	}
	return list
}

// everything uses each optional field of a worker.
func everything(c *cluster.Cluster) {
	c.Network.NTP = []string{"ntp.home.arpa"}
	c.Talos.InstallDisk = "/dev/disk/by-path/pci-0000:00:05.0-scsi-0:0:0:0"
	c.Talos.Sysctls = map[string]string{"vm.max_map_count": "262144"}
	c.Talos.RegistryMirrors = map[string][]string{"docker.io": {"https://mirror.home.arpa"}}
	c.Talos.Patches.All = patches("machine:\n  env:\n    ORDER: all\n")
	c.Talos.Patches.Workers = patches(`{"machine":{"env":{"ORDER":"workers"}}}`)
	schedulable(c) // the one worker is tainted
	n := worker(c)
	n.Labels = map[string]string{"topology.kubernetes.io/zone": "rack-1", "example.org/empty": ""}
	n.Taints = map[string]string{"dedicated": "storage:NoSchedule"}
	n.Patches = patches("apiVersion: v1alpha1\nkind: WatchdogTimerConfig\ndevice: /dev/watchdog0\ntimeout: 1m0s\n")
}

func TestRender_GivesTheConfigurationThatTheGoldenFilesShow(t *testing.T) {
	for file, in := range map[string]struct {
		cluster *cluster.Cluster
		role    cluster.Role
	}{
		"controlplane.yaml": {sample(t), cluster.ControlPlane},
		"worker.yaml":       {sample(t), cluster.Worker},
		"everything.yaml":   {sample(t, everything), cluster.Worker},
		// The shapes of a cluster.
		"single.yaml":                  {sample(t, schedulable), cluster.ControlPlane},
		"dual-stack-controlplane.yaml": {sample(t, dualStack), cluster.ControlPlane},
		"dual-stack-worker.yaml":       {sample(t, dualStack), cluster.Worker},
		"data-disks.yaml":              {sample(t, encrypted(cluster.DiskEncryptionNodeID), disks), cluster.Worker},
		"tpm.yaml":                     {sample(t, encrypted(cluster.DiskEncryptionTPM), disks), cluster.ControlPlane},
		"kubelet-and-extensions.yaml":  {sample(t, kubeletAndExtensions), cluster.ControlPlane},
	} {
		t.Run(file, func(t *testing.T) {
			require.NoError(t, Validate(in.cluster))
			cfg, err := assemble(model{*in.cluster}, machineOf(in.cluster, in.role))
			require.NoError(t, err)
			got, err := cfg.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
			require.NoError(t, err)
			golden.File(t, "testdata/"+file, string(got))
		})
	}
}

func TestRender_StatesOnlyWhatIsSet(t *testing.T) {
	for file, role := range map[string]cluster.Role{"controlplane-patch.yaml": cluster.ControlPlane, "worker-patch.yaml": cluster.Worker} {
		t.Run(file, func(t *testing.T) {
			c := sample(t)
			rendered, err := Render(c, machineOf(c, role))
			require.NoError(t, err)
			require.Len(t, rendered, 1)
			golden.File(t, "testdata/"+file, rendered[0])
		})
	}
}

func TestRender_HoldsNothingSecret(t *testing.T) {
	c := sample(t)
	for _, machine := range c.Machines() {
		rendered, err := Render(c, machine)
		require.NoError(t, err)
		for _, word := range []string{"stand-in", "key:", "token", "secret"} {
			assert.NotContains(t, strings.ToLower(strings.Join(rendered, "\n")), word)
		}
	}
}

func TestRender_OrdersTheUsersPatchesFromTheGeneralToTheSpecific(t *testing.T) {
	c := sample(t, everything)
	cfg, err := assemble(model{*c}, machineOf(c, cluster.Worker))
	require.NoError(t, err)
	assert.Equal(t, "workers", cfg.Machine().Env()["ORDER"])
}

func TestValidate_AcceptsWhatRenderGives(t *testing.T) {
	require.NoError(t, Validate(sample(t)))
	require.NoError(t, Validate(sample(t, everything)))
}

func TestValidate_NamesTheNodeAndTheProblem(t *testing.T) {
	for name, test := range map[string]struct {
		break_ func(*cluster.Cluster)
		want   []string
	}{
		"patch that is no YAML": {
			func(c *cluster.Cluster) { c.Talos.Patches.All = patches("machine: [") },
			[]string{"talos.patches.all[0]: is not YAML"},
		},
		"key that Talos does not know": {
			func(c *cluster.Cluster) { c.Talos.Patches.Workers = patches("machine:\n  kubelett: {}\n") },
			[]string{"talos.patches.workers[0]:", "kubelett"},
		},
		"kind that Talos does not know": {
			func(c *cluster.Cluster) { worker(c).Patches = patches("apiVersion: v1alpha1\nkind: NoSuchConfig\n") },
			[]string{"nodePools[1].nodes[0].patches[0]:", "kind that Talos does not know"},
		},
		"host name in the old place": {
			func(c *cluster.Cluster) { c.Talos.Patches.All = patches("machine:\n  network:\n    hostname: other\n") },
			[]string{"talos.patches.all[0]: machine.network.hostname: ", "set nodePools[].nodes[].name instead"},
		},
		"host name that is too long": {
			func(c *cluster.Cluster) { worker(c).Name = strings.Repeat("n", 64) },
			[]string{"node nnnn", "invalid hostname"},
		},
		"malformed label": {
			func(c *cluster.Cluster) { worker(c).Labels = map[string]string{"not a label": "x"} },
			[]string{"node infra-worker-1:", "not a label"},
		},
		"malformed taint": {
			func(c *cluster.Cluster) { controlPlane(c).Taints = map[string]string{"dedicated": "storage:Never"} },
			[]string{"node infra-cp-1:", "Never"},
		},
		"volume that Talos cannot name": {
			func(c *cluster.Cluster) {
				c.NodePools[1].DataDisks = []cluster.DataDisk{{Name: "a_b", Use: cluster.DiskVolume}}
			},
			[]string{"node infra-worker-1: UserVolumeConfig/a_b: name can only contain"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := sample(t)
			test.break_(c)
			err := Validate(c)
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestValidate_ReportsEveryNode(t *testing.T) {
	c := sample(t)
	controlPlane(c).Taints = map[string]string{"dedicated": "storage:Never"}
	worker(c).Labels = map[string]string{"not a label": "x"}
	err := Validate(c)
	assert.ErrorContains(t, err, "node infra-cp-1: ")
	assert.ErrorContains(t, err, "node infra-worker-1: ")
}

// A worker's Talos has the kubelet's credentials, by which NodeRestriction allows no change of taints, and refuses labels in the same
// update.
func TestRender_AWorkerRegistersWithItsTaintsAndAControlPlanesTalosAppliesThem(t *testing.T) {
	c := sample(t, schedulable)
	controlPlane(c).Taints = map[string]string{"dedicated": "storage:NoSchedule"}
	worker(c).Taints = map[string]string{
		"dedicated": "storage:NoSchedule", "example.org/gpu": "NoExecute", "example.org/old": ":PreferNoSchedule",
	}
	config := func(role cluster.Role) *v1alpha1.MachineConfig {
		cfg, err := assemble(model{*c}, machineOf(c, role))
		require.NoError(t, err)
		return cfg.RawV1Alpha1().MachineConfig
	}
	assert.Equal(t, map[string]string{"dedicated": "storage:NoSchedule"}, config(cluster.ControlPlane).MachineNodeTaints)
	assert.NotContains(t, config(cluster.ControlPlane).MachineKubelet.KubeletExtraConfig.Object, "registerWithTaints")
	assert.Empty(t, config(cluster.Worker).MachineNodeTaints)
	assert.Equal(t, []any{
		map[string]any{"key": "dedicated", "value": "storage", "effect": "NoSchedule"},
		map[string]any{"key": "example.org/gpu", "effect": "NoExecute"},
		map[string]any{"key": "example.org/old", "effect": "PreferNoSchedule"},
	}, config(cluster.Worker).MachineKubelet.KubeletExtraConfig.Object["registerWithTaints"])
}
