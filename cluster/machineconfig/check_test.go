package machineconfig

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/golden"
)

// complete is a cluster whose control plane has all that a patch could take away.
func complete(t testing.TB) *cluster.Cluster {
	t.Helper()
	return sample(t, dualStack, kubeletAndExtensions, disks, encrypted(cluster.DiskEncryptionNodeID), inlineCilium, func(c *cluster.Cluster) {
		c.Talos.Sysctls = map[string]string{"vm.max_map_count": "262144"}
		c.Talos.RegistryMirrors = map[string][]string{"docker.io": {"https://mirror.home.arpa"}}
		c.Network.NTP = []string{"ntp.home.arpa"}
		controlPlane(c).Labels = map[string]string{"example.org/rack": "1"}
		controlPlane(c).Taints = map[string]string{"dedicated": "storage:NoSchedule"}
	})
}

func inlineCilium(c *cluster.Cluster) { c.Cilium.Mode = cluster.CiliumInline }

// document writes a document of Talos's.
func document(kind, rest string) string {
	return "apiVersion: v1alpha1\nkind: " + kind + "\n" + rest
}

// patchesIn reads a file of patches by name.
func patchesIn(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	var byName map[string]string
	require.NoError(t, yaml.Unmarshal(text, &byName))
	require.Greater(t, len(byName), 20)
	return byName
}

// said is what CheckPatches says about one patch, which may hold secrets, to the machines of a role.
func said(t *testing.T, declared *cluster.Cluster, role cluster.Role, patch string) []string {
	t.Helper()
	c := *declared
	path := cluster.SecretPatchesKey + ".workers[0]"
	if role == cluster.ControlPlane {
		path = cluster.SecretPatchesKey + ".controlPlanes[0]"
		c.SecretPatches.ControlPlanes = patches(patch)
	} else {
		c.SecretPatches.Workers = patches(patch)
	}
	var lines []string
	for _, violation := range CheckPatches(&c) {
		require.Equal(t, path, violation.Patch)
		require.NotEmpty(t, violation.Problem)
		require.NotEmpty(t, violation.Remedy)
		lines = append(lines, strings.TrimPrefix(violation.Error(), path+": "))
	}
	return lines
}

func TestCheckPatches_RefusesEveryWayToSetWhatSlipwayOwns(t *testing.T) {
	refused := patchesIn(t, "refused-patches.yaml")
	c := complete(t)
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		lines := said(t, c, cluster.ControlPlane, refused[name])
		assert.NotEmpty(t, lines, name)
		for _, line := range lines {
			fmt.Fprintf(&all, "%s: %s\n", name, line)
		}
	}
	golden.File(t, "testdata/refused-patches.txt", all.String())
}

func TestCheckPatches_SaysOncePerPartWhatIsWrongForBothRoles(t *testing.T) {
	for patch, part := range map[string]string{
		"cluster: {apiServer: {image: x/y}}":                   "cluster.apiServer.image",
		"cluster: {proxy: {disabled: false}}":                  "cluster.proxy.disabled",
		"cluster: {etcd: {ca: {$patch: delete}}}":              "cluster.etcd.ca",
		"cluster: {allowSchedulingOnControlPlanes: true}":      "cluster.allowSchedulingOnControlPlanes",
		"cluster: {etcd: {advertisedSubnets: [192.0.2.0/24]}}": "cluster.etcd.advertisedSubnets",
	} {
		c := sample(t)
		c.Talos.Patches.All = patches(patch)
		violations := CheckPatches(c)
		require.Len(t, violations, 1, patch)
		assert.Equal(t, part, violations[0].Part)
	}
}

func TestCheckPatches_AllowsWhatAddsToTheConfiguration(t *testing.T) {
	full, small := complete(t), sample(t)
	for name, patch := range patchesIn(t, "allowed-patches.yaml") {
		assert.Empty(t, said(t, full, cluster.ControlPlane, patch), name)
		if name != "further URL of a declared mirror" { // a small cluster declares no mirror
			assert.Empty(t, said(t, small, cluster.ControlPlane, patch), name+", on a small cluster")
		}
		controlPlanesOnly := strings.Contains(patch, "cluster:") || name == "further taint" ||
			strings.Contains(name, "balancers") || strings.Contains(name, "API of Talos")
		if !controlPlanesOnly {
			assert.Empty(t, said(t, small, cluster.Worker, patch), name+", on a worker")
		}
	}
}

func TestCheckPatches_RefusesTaintsOfWorkers(t *testing.T) {
	assert.Equal(t, []string{
		"machine.nodeTaints.example.org/gpu: is a taint of a worker, which Talos may not change, nor labels together with it; " +
			"set nodePools[].taints instead",
	}, said(t, sample(t), cluster.Worker, "machine: {nodeTaints: {example.org/gpu: ':NoSchedule'}}"))
}

// fleet is a cluster of 3 control planes and 97 workers, with patches at every level. The own patch of each node is made of ownPatch,
// with the node's number.
func fleet(t testing.TB, ownPatch string) *cluster.Cluster {
	c := sample(t)
	c.Talos.Patches = cluster.Patches{
		All: patches(
			"machine: {sysctls: {a.b: '1'}}", "machine: {kubelet: {extraArgs: {v: '2'}}}", "machine: {udev: {rules: ['KERNEL==\"a\"']}}",
		),
		ControlPlanes: patches("cluster: {etcd: {extraArgs: {snapshot-count: '20000'}}}"),
		Workers:       patches("machine: {nodeAnnotations: {example.org/x: y}}"),
	}
	number := 0
	for i, size := range []int{3, 97} {
		nodes := slices.Repeat(c.NodePools[i].Nodes, size)
		for j := range nodes {
			nodes[j].Name = fmt.Sprintf("node-%d", number)
			nodes[j].Labels = map[string]string{"example.org/number": fmt.Sprint(number)}
			if ownPatch != "" {
				nodes[j].Patches = patches(strings.ReplaceAll(ownPatch, "NUMBER", fmt.Sprint(number)))
			}
			number++
		}
		c.NodePools[i].Nodes = nodes
	}
	return c
}

func BenchmarkCheckPatches(b *testing.B) {
	for name, ownPatch := range map[string]string{"shared": "", "of each node": "machine: {sysctls: {c.d: 'NUMBER'}}"} {
		b.Run(name, func(b *testing.B) {
			c := fleet(b, ownPatch)
			for b.Loop() {
				if violations := CheckPatches(c); len(violations) > 0 {
					b.Fatal(violations)
				}
			}
		})
	}
}

func BenchmarkValidate(b *testing.B) {
	c := fleet(b, "")
	for b.Loop() {
		if err := Validate(c); err != nil {
			b.Fatal(err)
		}
	}
}

func TestCheckPatches_NamesThePatchThatIsToBlame(t *testing.T) {
	harmless := "machine: {sysctls: {a.b: '1'}}"
	c := sample(t)
	c.Talos.Patches = cluster.Patches{
		All:           patches(harmless, "cluster: {network: {cni: {name: flannel}}}", harmless),
		ControlPlanes: patches("cluster: {etcd: {advertisedSubnets: [10.9.0.0/16]}}"),
		Workers:       patches("machine: {kubelet: {clusterDNS: [1.2.3.4]}}"),
	}
	c.SecretPatches.All = patches(harmless, "cluster: {clusterName: other}")
	controlPlane(c).Patches = patches(harmless, "machine: {install: {disk: /dev/sdb}}")
	worker(c).Patches = patches("machine: {type: controlplane}")
	var got []string
	for _, v := range CheckPatches(c) {
		got = append(got, v.Patch+" "+v.Part)
	}
	assert.Equal(t, []string{
		"talos.patches.all[1] cluster.network.cni.name",
		"talosSecretPatches.all[1] cluster.clusterName",
		"talos.patches.controlPlanes[0] cluster.etcd.advertisedSubnets",
		"talos.patches.workers[0] machine.kubelet.clusterDNS",
		"nodePools[0].nodes[0].patches[1] machine.install.disk",
		"nodePools[1].nodes[0].patches[0] machine.type",
	}, got)
}

func TestCheckPatches_SaysEachThingOnceForAllNodes(t *testing.T) {
	c := fleet(t, "machine: {install: {disk: /dev/sdb}}")
	c.Talos.Patches.All = append(c.Talos.Patches.All, patches("cluster: {clusterName: other}", "x: [")...)
	violations := CheckPatches(c)
	require.Len(t, violations, 4)
	assert.Equal(t, "talos.patches.all[3]: cluster.clusterName: is changed, but Slipway sets it to infra; set cluster.name instead",
		violations[0].Error())
	assert.Equal(t, "talos.patches.all[4]", violations[1].Patch)
	assert.Equal(t, "nodePools[0].nodes[0].patches[0]", violations[2].Patch, "the first control plane's, for all control planes")
	assert.Equal(t, "nodePools[1].nodes[0].patches[0]", violations[3].Patch, "the first worker's, for all workers")
}

func TestCheckPatches_FindsWhatOnlyOneOfSeveralNodesHas(t *testing.T) {
	for name, patch := range map[string]string{
		"label":  "machine: {nodeLabels: {example.org/rack: '2'}}",
		"name":   "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: infra-worker-1\n",
		"volume": "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: scratch\nfilesystem: {type: ext4}\n",
	} {
		c := sample(t, disks, func(c *cluster.Cluster) {
			c.NodePools[0].DataDisks = nil
			second := pool(cluster.Worker, cluster.Node{
				Name: "infra-worker-2", VMID: 1122, Address: netip.MustParseAddr("10.25.11.22"), MAC: "BC:24:11:00:01:16",
				Labels: map[string]string{"example.org/rack": "1"},
			})
			worker(c).Labels = map[string]string{"example.org/rack": "2"}
			c.NodePools = append(c.NodePools, second)
			c.Talos.Patches.Workers = patches(patch)
		})
		assert.NotEmpty(t, CheckPatches(c), name)
	}
}

func TestCheckPatches_AcceptsWhatALaterPatchUndoes(t *testing.T) {
	c := sample(t)
	c.Talos.Patches.Workers = patches(
		"cluster: {clusterName: other}", "cluster: {clusterName: infra}", "machine: {kubelet: {clusterDNS: [1.2.3.4]}}",
	)
	violations := CheckPatches(c)
	require.Len(t, violations, 1)
	assert.Equal(t, "talos.patches.workers[2]", violations[0].Patch)

	c.Talos.Patches.Workers = patches("cluster: {network: {podSubnets: {$patch: delete}}}")
	worker(c).Patches = patches("cluster: {network: {podSubnets: [10.244.0.0/16]}}")
	assert.Empty(t, CheckPatches(c), "the result counts")

	worker(c).Patches = append(worker(c).Patches, patches("cluster: {network: {podSubnets: [10.9.0.0/16]}}")...)
	violations = CheckPatches(c)
	require.Len(t, violations, 1)
	assert.Equal(t, "nodePools[1].nodes[0].patches[1]: cluster.network.podSubnets: is changed, but Slipway sets it to 10.244.0.0/16; "+
		"set network.podCIDR instead", violations[0].Error())
}

func TestCheckPatches_BlamesNoPatchForWhatAnotherOneChanged(t *testing.T) {
	c := complete(t)
	for first, second := range map[string]string{
		"machine: {certSANs: {$patch: delete}}":           "machine: {certSANs: [api.home.arpa]}",
		"machine: {network: {nameservers: [9.9.9.9]}}":    "machine: {sysctls: {a.b: '1'}}",
		document("LinkConfig", "name: eth0\nmtu: 9000\n"): document("LinkConfig", "name: eth0\nmulticast: true\n"),
		document("HostnameConfig", "$patch: delete\n"):    "machine: {sysctls: {a.b: '1'}}",
	} {
		c.SecretPatches.ControlPlanes = patches(first, second)
		violations := CheckPatches(c)
		require.Len(t, violations, 1, first)
		assert.Equal(t, "talosSecretPatches.controlPlanes[0]", violations[0].Patch)
	}
}

func TestCheckPatches_RepeatsNoValueOfAPatch(t *testing.T) {
	c := sample(t)
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
		for _, role := range []cluster.Role{cluster.ControlPlane, cluster.Worker} {
			lines := said(t, c, role, patch)
			assert.NotEmpty(t, lines, "%s, on a %s", patch, role)
			assert.NotContains(t, strings.Join(lines, "\n"), "SENSITIVE", patch)
		}
	}
}

func TestCheckPatches_RefusesHugePatches(t *testing.T) {
	c := sample(t)
	lines := said(t, c, cluster.Worker, "machine: {env: {A: "+strings.Repeat("x", maxPatchBytes)+"}}")
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "is larger than 64 KiB")

	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 8 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	assert.NotEmpty(t, said(t, c, cluster.Worker, bomb), "aliases that grow")
	assert.NotEmpty(t, said(t, c, cluster.Worker, strings.Repeat("[", 100_000)), "lists in lists")
	assert.NotEmpty(t, said(t, c, cluster.Worker, strings.Repeat("{a: ", 9000)+"1"+strings.Repeat("}", 9000)), "mappings in mappings")
}

func TestCheckPatches_LeavesWhatIsWrongWithoutPatchesToValidate(t *testing.T) {
	c := sample(t)
	c.Talos.Patches.All = patches("machine: {sysctls: {a.b: '1'}}")
	worker(c).Labels = map[string]string{"not a label": "x"}
	assert.Empty(t, CheckPatches(c))
	require.ErrorContains(t, Validate(c), "not a label")
	c.Talos.Version = "1.x"
	assert.Empty(t, CheckPatches(c), "without a version, there is no configuration to patch")
	require.Error(t, Validate(c))
}

func TestCheckPatches_RefusesSecretsInPlainText(t *testing.T) {
	c := sample(t)
	patch := "machine: {registries: {config: {ghcr.io: {auth: {username: flux, password: SENSITIVE}}}}}"
	c.SecretPatches.All = patches(patch)
	require.Empty(t, CheckPatches(c))
	require.NoError(t, Validate(c))
	c.Talos.Patches.All = patches(patch)
	violations := CheckPatches(c)
	require.Len(t, violations, 2)
	for i, part := range []string{"password", "username"} {
		assert.Equal(t, "talos.patches.all[0]: machine.registries.config.ghcr.io.auth."+part+
			": may be a secret, and the patch is kept in plain text; move the patch to the secret slipway:talosSecretPatches", violations[i].Error())
	}
	require.NoError(t, Validate(c), "what keeps the patch is not known here")

	c.Talos.Patches.All = patches("machine: {token: SENSITIVE, ca: {key: U0VOU0lUSVZF}}")
	for _, violation := range CheckPatches(c) {
		assert.Equal(t, "remove it", violation.Remedy, "in no patch, not even in a secret one")
	}
}

func TestCheckPatches_JudgesKubeletFlagsAsThoseOfAPatch(t *testing.T) {
	flags := map[string]string{}
	for _, name := range []string{
		"node-labels", "Node_IP", "cloud-provider", "config-dir", "register-node", "provider-id", "root-dir", "cgroup-root",
	} {
		flags[name] = "SENSITIVE"
	}
	c := sample(t)
	c.Talos.Kubelet.ExtraArgs = flags
	c.Talos.Patches.All = patches("cluster: {clusterName: other}")
	var got []string
	for _, violation := range CheckPatches(c) {
		got = append(got, violation.Error())
	}
	const relied = ": is a setting that Slipway sets or relies on; "
	assert.Equal(t, []string{
		`talos.kubelet.extraArgs["Node_IP"]` + relied + "set network.nodeCIDR instead",
		`talos.kubelet.extraArgs["config-dir"]` + relied + "remove it",
		`talos.kubelet.extraArgs["node-labels"]` + relied + "set nodePools[].labels instead",
		`talos.kubelet.extraArgs["register-node"]` + relied + "remove it",
		"talos.patches.all[0]: cluster.clusterName: is changed, but Slipway sets it to infra; set cluster.name instead",
	}, got)
	assert.ErrorContains(t, Validate(c), got[0])

	for flag := range flags {
		c := sample(t)
		inPatch := said(t, c, cluster.Worker, "machine: {kubelet: {extraArgs: {"+flag+": SENSITIVE}}}")
		c.Talos.Kubelet.ExtraArgs = map[string]string{flag: "SENSITIVE"}
		assert.Len(t, CheckPatches(c), len(inPatch), "%s: the same as in a patch", flag)
	}
}

// FuzzCheckPatches looks for patches that make Talos's machinery panic, or that change what Slipway owns without a word.
func FuzzCheckPatches(f *testing.F) {
	for _, file := range []string{"refused-patches.yaml", "allowed-patches.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		require.NoError(f, err)
		var seeds map[string]string
		require.NoError(f, yaml.Unmarshal(text, &seeds))
		for _, patch := range seeds {
			f.Add(patch)
		}
	}
	complete := complete(f)
	before, err := assemble(model{*complete}, machineOf(complete, cluster.ControlPlane))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, patch string) {
		c := *complete
		c.SecretPatches.ControlPlanes = patches(patch)
		_, _ = secretsIn(patch)
		if len(CheckPatches(&c)) > 0 {
			return
		}
		after, err := assemble(model{c}, machineOf(&c, cluster.ControlPlane))
		require.NoError(t, err)
		want, got := before.RawV1Alpha1(), after.RawV1Alpha1()
		assert.Equal(t, want.ClusterConfig.ClusterNetwork, got.ClusterConfig.ClusterNetwork)
		assert.Equal(t, want.ClusterConfig.ControlPlane, got.ClusterConfig.ControlPlane)
		assert.Equal(t, want.ClusterConfig.EtcdConfig.RootCA, got.ClusterConfig.EtcdConfig.RootCA)
		assert.Equal(t, want.MachineConfig.MachineFeatures.KubePrismSupport, got.MachineConfig.MachineFeatures.KubePrismSupport)
		assert.Equal(t, want.MachineConfig.MachineNetwork.NetworkInterfaces, got.MachineConfig.MachineNetwork.NetworkInterfaces)
	})
}
