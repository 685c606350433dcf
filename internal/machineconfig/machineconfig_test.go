package machineconfig

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// sample is a small cluster.
func sample() Cluster {
	return Cluster{
		Name:              "infra",
		TalosVersion:      "v1.12.7",
		KubernetesVersion: "v1.35.8",
		VIP:               netip.MustParseAddr("10.25.11.10"),
		NodeCIDR:          netip.MustParsePrefix("10.25.11.0/24"),
		Gateway:           netip.MustParseAddr("10.25.11.1"),
		PodCIDR:           netip.MustParsePrefix("10.244.0.0/16"),
		ServiceCIDR:       netip.MustParsePrefix("10.245.0.0/16"),
		Nameservers:       []netip.Addr{netip.MustParseAddr("10.25.11.1")},
	}
}

func controlPlane() Node {
	return Node{Name: "infra-cp-1", Role: ControlPlane, Address: netip.MustParseAddr("10.25.11.11"), MAC: "BC:24:11:00:01:0B"}
}

func worker() Node {
	return Node{Name: "infra-worker-1", Role: Worker, Address: netip.MustParseAddr("10.25.11.21"), MAC: "BC:24:11:00:01:15"}
}

// everything uses each optional field.
func everything() (Cluster, Node) {
	c, n := sample(), worker()
	c.NTP = []string{"ntp.home.arpa"}
	c.InstallDisk = "/dev/vda"
	c.Sysctls = map[string]string{"vm.max_map_count": "262144"}
	c.RegistryMirrors = map[string][]string{"docker.io": {"https://mirror.home.arpa"}}
	c.Patches.All = []string{"machine:\n  env:\n    ORDER: all\n"}
	c.Patches.Workers = []string{`{"machine":{"env":{"ORDER":"workers"}}}`}
	n.Labels = map[string]string{"topology.kubernetes.io/zone": "rack-1", "example.org/empty": ""}
	n.Taints = map[string]string{"dedicated": "storage:NoSchedule"}
	n.Patches = []string{"apiVersion: v1alpha1\nkind: WatchdogTimerConfig\ndevice: /dev/watchdog0\ntimeout: 1m0s\n"}
	return c, n
}

func TestRender_GivesTheConfigurationThatTheGoldenFilesShow(t *testing.T) {
	full, fullNode := everything()
	for file, in := range map[string]struct {
		cluster Cluster
		node    Node
	}{
		"controlplane.yaml": {sample(), controlPlane()},
		"worker.yaml":       {sample(), worker()},
		"everything.yaml":   {full, fullNode},
		// The shapes of a cluster.
		"single.yaml":                  {schedulable(), controlPlane()},
		"dual-stack-controlplane.yaml": {dualStack(sample()), sixth(controlPlane())},
		"dual-stack-worker.yaml":       {dualStack(sample()), sixth(worker())},
		"data-disks.yaml":              {encrypted(EncryptNodeID), disks(worker())},
		"tpm.yaml":                     {encrypted(EncryptTPM), disks(controlPlane())},
		"core-services.yaml":           {coreServices(), controlPlane()},
	} {
		t.Run(file, func(t *testing.T) {
			require.NoError(t, Validate(in.cluster, []Node{in.node}))
			cfg, err := assemble(in.cluster, in.node)
			require.NoError(t, err)
			got, err := cfg.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
			require.NoError(t, err)
			golden(t, file, got)
		})
	}
}

func TestRender_StatesOnlyWhatIsSet(t *testing.T) {
	for file, node := range map[string]Node{"controlplane-patch.yaml": controlPlane(), "worker-patch.yaml": worker()} {
		t.Run(file, func(t *testing.T) {
			patches, err := Render(sample(), node)
			require.NoError(t, err)
			require.Len(t, patches, 1)
			golden(t, file, []byte(patches[0]))
		})
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}

func TestRender_HoldsNothingSecret(t *testing.T) {
	for _, node := range []Node{controlPlane(), worker()} {
		patches, err := Render(sample(), node)
		require.NoError(t, err)
		for _, word := range []string{"stand-in", "key:", "token", "secret"} {
			assert.NotContains(t, strings.ToLower(strings.Join(patches, "\n")), word)
		}
	}
}

func TestRender_OrdersTheUsersPatchesFromTheGeneralToTheSpecific(t *testing.T) {
	c, n := everything()
	cfg, err := assemble(c, n)
	require.NoError(t, err)
	assert.Equal(t, "workers", cfg.Machine().Env()["ORDER"])
}

func TestValidate_AcceptsWhatRenderGives(t *testing.T) {
	full, fullNode := everything()
	require.NoError(t, Validate(sample(), []Node{controlPlane(), worker()}))
	require.NoError(t, Validate(full, []Node{fullNode}))
}

func TestValidate_NamesTheNodeAndTheProblem(t *testing.T) {
	for name, test := range map[string]struct {
		break_ func(*Cluster, *Node)
		want   []string
	}{
		"patch that is no YAML": {
			func(c *Cluster, _ *Node) { c.Patches.All = []string{"machine: ["} },
			[]string{"talos.patches.all[0]: is not YAML"},
		},
		"key that Talos does not know": {
			func(c *Cluster, _ *Node) { c.Patches.Workers = []string{"machine:\n  kubelett: {}\n"} },
			[]string{"talos.patches.workers[0]:", "kubelett"},
		},
		"kind that Talos does not know": {
			func(_ *Cluster, n *Node) { n.Patches = []string{"apiVersion: v1alpha1\nkind: NoSuchConfig\n"} },
			[]string{"node infra-worker-1: node patches[0]:", "kind that Talos does not know"},
		},
		"host name in the old place": {
			func(c *Cluster, _ *Node) { c.Patches.All = []string{"machine:\n  network:\n    hostname: other\n"} },
			[]string{"talos.patches.all[0]: machine.network.hostname: ", "set nodePools[].nodes[].name instead"},
		},
		"host name that is too long": {
			func(_ *Cluster, n *Node) { n.Name = strings.Repeat("n", 64) },
			[]string{"node nnnn", "invalid hostname"},
		},
		"label of Kubernetes' own": {
			func(_ *Cluster, n *Node) { n.Labels = map[string]string{"not a label": "x"} },
			[]string{"node infra-worker-1:", "not a label"},
		},
		"malformed taint": {
			func(_ *Cluster, n *Node) { n.Taints = map[string]string{"dedicated": "storage:Never"} },
			[]string{"node infra-worker-1:", "Never"},
		},
		"role": {
			func(_ *Cluster, n *Node) { n.Role = "master" },
			[]string{`node infra-worker-1: role "master"`},
		},
		"Talos version": {
			func(c *Cluster, _ *Node) { c.TalosVersion = "1.12" },
			[]string{`talos version "1.12"`, "v1.12.7"},
		},
		"Kubernetes that this Talos does not run": {
			func(c *Cluster, _ *Node) { c.KubernetesVersion = "v1.36.0" },
			[]string{"kubernetes version v1.36.0", "v1.12.7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, n := sample(), worker()
			test.break_(&c, &n)
			err := Validate(c, []Node{n})
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestValidate_ReportsEveryNode(t *testing.T) {
	one, two := controlPlane(), worker()
	one.Labels = map[string]string{"not a label": "x"}
	two.Taints = map[string]string{"dedicated": "storage:Never"}
	err := Validate(sample(), []Node{one, two})
	assert.ErrorContains(t, err, "node infra-cp-1: ")
	assert.ErrorContains(t, err, "node infra-worker-1: ")
}
