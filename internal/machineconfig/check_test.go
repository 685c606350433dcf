package machineconfig

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// complete is a cluster and a control plane that have all that a patch could take away.
func complete() (Cluster, Node) {
	c, n := dualStack(coreServices()), sixth(disks(controlPlane()))
	c.DiskEncryption = EncryptNodeID
	c.Sysctls = map[string]string{"vm.max_map_count": "262144"}
	c.RegistryMirrors = map[string][]string{"docker.io": {"https://mirror.home.arpa"}}
	c.NTP = []string{"ntp.home.arpa"}
	c.InlineManifests = []string{"cilium"}
	n.Labels = map[string]string{"example.org/rack": "1"}
	n.Taints = map[string]string{"dedicated": "storage:NoSchedule"}
	return c, n
}

// document writes a document of Talos's.
func document(kind, rest string) string {
	return "apiVersion: v1alpha1\nkind: " + kind + "\n" + rest
}

// patchesIn reads a file of patches by name.
func patchesIn(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	var patches map[string]string
	require.NoError(t, yaml.Unmarshal(text, &patches))
	require.Greater(t, len(patches), 20)
	return patches
}

// said is what CheckPatches says about one patch that may hold secrets.
func said(t *testing.T, c Cluster, n Node, patch string) []string {
	t.Helper()
	c.SecretPatches.All = []string{patch}
	var lines []string
	for _, violation := range CheckPatches(c, []Node{n}) {
		require.Equal(t, "talosSecretPatches.all[0]", violation.Patch)
		require.NotEmpty(t, violation.Problem)
		require.NotEmpty(t, violation.Remedy)
		lines = append(lines, strings.TrimPrefix(violation.Error(), "talosSecretPatches.all[0]: "))
	}
	return lines
}

func TestCheckPatches_RefusesEveryWayToSetWhatSlipwayOwns(t *testing.T) {
	patches := patchesIn(t, "refused-patches.yaml")
	c, n := complete()
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(patches)) {
		lines := said(t, c, n, patches[name])
		assert.NotEmpty(t, lines, name)
		for _, line := range lines {
			fmt.Fprintf(&all, "%s: %s\n", name, line)
		}
	}
	golden(t, "refused-patches.txt", []byte(all.String()))
}

func TestCheckPatches_AllowsWhatAddsToTheConfiguration(t *testing.T) {
	for name, patch := range patchesIn(t, "allowed-patches.yaml") {
		c, n := complete()
		assert.Empty(t, said(t, c, n, patch), name)
		if name != "further URL of a declared mirror" { // a small cluster declares no mirror
			assert.Empty(t, said(t, sample(), controlPlane(), patch), name+", on a small cluster")
		}
		controlPlanesOnly := strings.Contains(patch, "cluster:") || strings.Contains(name, "balancers") || strings.Contains(name, "API of Talos")
		if !controlPlanesOnly {
			assert.Empty(t, said(t, sample(), worker(), patch), name+", on a worker")
		}
	}
}

// fleet is a cluster of 3 control planes and 97 workers, with patches at every level.
func fleet() (Cluster, []Node) {
	c := sample()
	c.Patches.All = []string{"machine: {sysctls: {a.b: '1'}}", "machine: {kubelet: {extraArgs: {v: '2'}}}", "machine: {udev: {rules: [x]}}"}
	c.Patches.ControlPlanes = []string{"cluster: {etcd: {extraArgs: {snapshot-count: '20000'}}}"}
	c.Patches.Workers = []string{"machine: {nodeAnnotations: {example.org/x: y}}"}
	var nodes []Node
	for i := range 100 {
		n := worker()
		if i < 3 {
			n = controlPlane()
		}
		n.Name = fmt.Sprintf("node-%d", i)
		n.Labels = map[string]string{"example.org/number": fmt.Sprint(i)}
		nodes = append(nodes, n)
	}
	return c, nodes
}

func BenchmarkCheckPatches(b *testing.B) {
	c, nodes := fleet()
	b.Run("shared", func(b *testing.B) {
		for b.Loop() {
			if violations := CheckPatches(c, nodes); len(violations) > 0 {
				b.Fatal(violations)
			}
		}
	})
	for i := range nodes {
		nodes[i].Patches = []string{fmt.Sprintf("machine: {sysctls: {c.d: '%d'}}", i)}
	}
	b.Run("of each node", func(b *testing.B) {
		for b.Loop() {
			if violations := CheckPatches(c, nodes); len(violations) > 0 {
				b.Fatal(violations)
			}
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	c, nodes := fleet()
	for b.Loop() {
		if err := Validate(c, nodes); err != nil {
			b.Fatal(err)
		}
	}
}

func TestCheckPatches_NamesThePatchThatIsToBlame(t *testing.T) {
	c, control, work := sample(), controlPlane(), worker()
	harmless := "machine: {sysctls: {a.b: '1'}}"
	c.Patches = Patches{
		All:           []string{harmless, "cluster: {network: {cni: {name: flannel}}}", harmless},
		ControlPlanes: []string{"cluster: {etcd: {advertisedSubnets: [10.9.0.0/16]}}"},
		Workers:       []string{"machine: {kubelet: {clusterDNS: [1.2.3.4]}}"},
	}
	c.SecretPatches.All = []string{harmless, "cluster: {clusterName: other}"}
	control.Patches = []string{harmless, "machine: {install: {disk: /dev/sdb}}"}
	work.Patches = []string{"machine: {type: controlplane}"}
	var got []string
	for _, v := range CheckPatches(c, []Node{control, work}) {
		got = append(got, fmt.Sprintf("%s %s %s", v.Node, v.Patch, v.Part))
	}
	assert.Equal(t, []string{
		" talos.patches.all[1] cluster.network.cni.name",
		" talosSecretPatches.all[1] cluster.clusterName",
		" talos.patches.controlPlanes[0] cluster.etcd.advertisedSubnets",
		" talos.patches.workers[0] machine.kubelet.clusterDNS",
		"infra-cp-1 node patches[1] machine.install.disk",
		"infra-worker-1 node patches[0] machine.type",
	}, got)
}

func TestCheckPatches_SaysEachThingOnceForAllNodes(t *testing.T) {
	c, nodes := fleet()
	c.Patches.All = append(c.Patches.All, "cluster: {clusterName: other}", "x: [")
	for i := range nodes {
		nodes[i].Patches = []string{"machine: {install: {disk: /dev/sdb}}"}
	}
	violations := CheckPatches(c, nodes)
	require.Len(t, violations, 4)
	assert.Equal(t, "talos.patches.all[3]: cluster.clusterName: is changed, but Slipway sets it; set cluster.name instead",
		violations[0].Error())
	assert.Equal(t, "talos.patches.all[4]", violations[1].Patch)
	assert.Equal(t, "node-0", violations[2].Node, "the first control plane's, for all control planes")
	assert.Equal(t, "node-3", violations[3].Node, "the first worker's, for all workers")
}

func TestCheckPatches_FindsWhatOnlyOneOfSeveralNodesHas(t *testing.T) {
	one, two := worker(), disks(worker())
	two.Name, two.Labels = "infra-worker-2", map[string]string{"example.org/rack": "2"}
	for name, patch := range map[string]string{
		"label":  "machine: {nodeLabels: {example.org/rack: '2'}}",
		"name":   "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: infra-worker-1\n",
		"volume": "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: scratch\nfilesystem: {type: ext4}\n",
		"disk": "apiVersion: v1alpha1\nkind: RawVolumeConfig\nname: x\nprovisioning:\n  minSize: 1GiB\n" +
			"  diskSelector: {match: '\"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi3\" in disk.symlinks'}\n",
	} {
		c := sample()
		c.Patches.Workers = []string{patch}
		one.Labels = map[string]string{"example.org/rack": "1"}
		assert.NotEmpty(t, CheckPatches(c, []Node{one, two}), name)
	}
}

func TestCheckPatches_BlamesNoPatchForWhatAnotherOneChanged(t *testing.T) {
	c := sample()
	c.Patches.All = []string{"cluster: {clusterName: other}", "cluster: {clusterName: infra}", "machine: {kubelet: {clusterDNS: [1.2.3.4]}}"}
	violations := CheckPatches(c, []Node{worker()})
	require.Len(t, violations, 2)
	assert.Equal(t, "talos.patches.all[0]", violations[0].Patch)
	assert.Equal(t, "talos.patches.all[2]", violations[1].Patch)

	c, n := complete()
	for first, second := range map[string]string{
		"machine: {kubelet: {extraMounts: [{destination: /etc/kubernetes}]}}": "machine: {kubelet: {extraMounts: [{destination: /var/x}]}}",
		"machine: {certSANs: {$patch: delete}}":                               "machine: {certSANs: [api.home.arpa]}",
		"machine: {network: {nameservers: [9.9.9.9]}}":                        "machine: {sysctls: {a.b: '1'}}",
		document("LinkConfig", "name: eth0\nmtu: 9000\n"):                     document("LinkConfig", "name: eth0\nmulticast: true\n"),
		document("HostnameConfig", "$patch: delete\n"):                        "machine: {sysctls: {a.b: '1'}}",
	} {
		c.SecretPatches.All = []string{first, second}
		violations := CheckPatches(c, []Node{n})
		require.Len(t, violations, 1, first)
		assert.Equal(t, "talosSecretPatches.all[0]", violations[0].Patch)
	}
}

func TestCheckPatches_RepeatsNoValueOfAPatch(t *testing.T) {
	for _, patch := range []string{
		"machine: {token: SENSITIVE}",
		"machine: {install: {wipe: SENSITIVE}}",
		"machine: {install: {disk: SENSITIVE}}",
		"machine: {time: {bootTimeout: SENSITIVE}}",
		"machine: {ca: {key: SENSITIVE}}",
		"machine: {type: SENSITIVE}",
		"machine: {kubelett: SENSITIVE}",
		"machine: {kubelett: [{x: SENSITIVE}]}",
		"machine: {nodeTaints: {x: 'SENSITIVE:SENSITIVE'}}",
		"machine: {nodeLabels: {x: 'SENSITIVE SENSITIVE'}}",
		"machine: SENSITIVE",
		"machine: [SENSITIVE",
		"SENSITIVE",
		"[SENSITIVE]",
		"op: add\npath: /x\nvalue: SENSITIVE",
		"apiVersion: SENSITIVE\nkind: SENSITIVE\n",
		"apiVersion: v1alpha1\nkind: SENSITIVE\nname: SENSITIVE\n$patch: delete\n",
		"apiVersion: v1alpha1\nkind: WatchdogTimerConfig\ntimeout: SENSITIVE\n",
		"apiVersion: v1alpha1\nkind: KmsgLogConfig\nname: x\nurl: 'https://x:SENSITIVE@logs'\n",
		"apiVersion: v1alpha1\nkind: WireguardConfig\nname: wg0\nprivateKey: SENSITIVE\n",
		"apiVersion: v1alpha1\nkind: DummyLinkConfig\nname: dummy0\naddresses: [{address: SENSITIVE}]\n",
		"apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: x\nprovisioning: {minSize: 1GiB, diskSelector: {match: SENSITIVE}}\n",
		"apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: x\nprovisioning: {minSize: SENSITIVE}\n",
		"cluster: {controlPlane: {endpoint: 'https://SENSITIVE:x'}}",
		"cluster: {network: {podSubnets: [SENSITIVE]}}",
		"cluster: {inlineManifests: [{name: SENSITIVE, contents: x}, {name: SENSITIVE, contents: y}]}",
		"machine: {files: [{path: x, permissions: SENSITIVE}]}",
		"machine: {pods: [SENSITIVE]}",
		"machine: {kubelet: {extraConfig: SENSITIVE}}",
		"machine: {network: {interfaces: [{interface: SENSITIVE, $patch: delete}]}}",
		"machine: {sysctls: {a: &x SENSITIVE, b: *y}}",
	} {
		for name, n := range map[string]Node{"control plane": controlPlane(), "worker": worker()} {
			lines := said(t, sample(), n, patch)
			assert.NotEmpty(t, lines, "%s, on a %s", patch, name)
			assert.NotContains(t, strings.Join(lines, "\n"), "SENSITIVE", patch)
		}
	}
}

func TestCheckPatches_RefusesHugePatches(t *testing.T) {
	lines := said(t, sample(), worker(), "machine: {env: {A: "+strings.Repeat("x", MaxPatchBytes)+"}}")
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "is larger than 1024 KiB")

	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 8 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	assert.NotEmpty(t, said(t, sample(), worker(), bomb), "aliases that grow")
	assert.NotEmpty(t, said(t, sample(), worker(), strings.Repeat("[", 100_000)), "lists in lists")
	assert.NotEmpty(t, said(t, sample(), worker(), strings.Repeat("{a: ", 9000)+"1"+strings.Repeat("}", 9000)), "mappings in mappings")
}

func TestCheckPatches_LeavesWhatIsWrongWithoutPatchesToValidate(t *testing.T) {
	c, n := sample(), worker()
	c.Patches.All = []string{"machine: {sysctls: {a.b: '1'}}"}
	n.Labels = map[string]string{"not a label": "x"}
	assert.Empty(t, CheckPatches(c, []Node{n}))
	require.ErrorContains(t, Validate(c, []Node{n}), "not a label")
	n.Role = "master"
	assert.Empty(t, CheckPatches(c, []Node{n}))
}

func TestCheckPatches_RefusesSecretsInPlainText(t *testing.T) {
	c := sample()
	patch := "machine: {registries: {config: {ghcr.io: {auth: {username: flux, password: SENSITIVE}}}}}"
	c.SecretPatches.All = []string{patch}
	require.Empty(t, CheckPatches(c, []Node{worker()}))
	require.NoError(t, Validate(c, []Node{worker()}))
	c.Patches.All = []string{patch}
	violations := CheckPatches(c, []Node{worker()})
	require.Len(t, violations, 2)
	for i, part := range []string{"password", "username"} {
		assert.Equal(t, "talos.patches.all[0]: machine.registries.config.ghcr.io.auth."+part+
			": may be a secret, and the patch is kept in plain text; move the patch to the secret slipway:talosSecretPatches", violations[i].Error())
	}
	require.NoError(t, Validate(c, []Node{worker()}), "what keeps the patch is not known here")

	c.Patches.All = []string{"machine: {token: SENSITIVE, ca: {key: U0VOU0lUSVZF}}"}
	for _, violation := range CheckPatches(c, []Node{worker()}) {
		assert.Equal(t, "remove it", violation.Remedy, "in no patch, not even in a secret one")
	}
}

// FuzzCheckPatches looks for patches that make Talos's machinery panic, or that change what Slipway owns without a word.
func FuzzCheckPatches(f *testing.F) {
	for _, file := range []string{"refused-patches.yaml", "allowed-patches.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		require.NoError(f, err)
		var patches map[string]string
		require.NoError(f, yaml.Unmarshal(text, &patches))
		for _, patch := range patches {
			f.Add(patch)
		}
	}
	c, n := complete()
	before, err := assemble(c, n)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, patch string) {
		c := c
		c.SecretPatches.All = []string{patch}
		_, _ = SecretsIn(patch)
		if len(CheckPatches(c, []Node{n})) > 0 {
			return
		}
		after, err := assemble(c, n)
		require.NoError(t, err)
		want, got := before.RawV1Alpha1(), after.RawV1Alpha1()
		assert.Equal(t, want.ClusterConfig.ClusterNetwork, got.ClusterConfig.ClusterNetwork)
		assert.Equal(t, want.ClusterConfig.ControlPlane, got.ClusterConfig.ControlPlane)
		assert.Equal(t, want.ClusterConfig.EtcdConfig.RootCA, got.ClusterConfig.EtcdConfig.RootCA)
		assert.Equal(t, want.MachineConfig.MachineFeatures.KubePrismSupport, got.MachineConfig.MachineFeatures.KubePrismSupport)
		assert.Equal(t, want.MachineConfig.MachineNetwork.NetworkInterfaces, got.MachineConfig.MachineNetwork.NetworkInterfaces)
	})
}
