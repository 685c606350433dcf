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
		if onWorkers := !strings.Contains(patch, "cluster:") && !strings.Contains(name, "balancers") && !strings.Contains(name, "API of Talos"); onWorkers {
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
