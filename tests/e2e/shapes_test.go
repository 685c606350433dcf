//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestShapes_OneNodeWithInlineCiliumIsAWholeCluster creates the smallest cluster, with Cilium in mode inline.
func TestShapes_OneNodeWithInlineCiliumIsAWholeCluster(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "alone", func(s settings) {
		oneNode(s)
		s.set("cilium", map[string]any{"mode": "inline"})
	})
	comesUp(l)
	require.NotContains(t, l.kubectl("get", "secrets", "-n", "kube-system", "-o", "name"), "sh.helm.release.v1.cilium",
		"there is no Helm release")
	require.Equal(t, "1", l.field("deployment/cilium-operator", "{.status.readyReplicas}"))

	switchesOnlyByHand(l)
	unprotectAndDestroy(l)
}

// switchesOnlyByHand switches Cilium from inline to helm: the first attempt is refused and changes nothing, the second one follows
// the steps in the refusal.
func switchesOnlyByHand(l *lab) {
	l.t.Helper()
	mode := func(mode string) {
		l.pulumi("config", "set", "--stack", "infra", "--path", "slipway:cilium.mode", mode)
	}
	mode("helm")
	var said string
	for _, how := range [][]string{{"preview"}, {"up", "--yes", "--skip-preview"}} {
		out, err := l.try(append([]string{"pulumi", "--non-interactive", "--color=never", "--stack", "infra"}, how...)...)
		require.Error(l.t, err, "%v switched a running cluster to another mode", how)
		require.Contains(l.t, out, "this cluster was brought up with inline")
		said = out
	}
	mode("inline")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")

	guard := regexp.MustCompile(`--replace '([^']+)'`).FindStringSubmatch(said)
	require.NotNil(l.t, guard, "the refusal names the steps")
	mode("helm")
	l.pulumi("up", "--yes", "--skip-preview", "--replace", guard[1], "--stack", "infra")
	require.Contains(l.t, l.kubectl("get", "secrets", "-n", "kube-system", "-o", "name"), "sh.helm.release.v1.cilium")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
}

// TestShapes_WorkersOfBothFamiliesJoinAHealthyControlPlane creates one control plane, and workers with data disks that join after
// its gate. All boot the image from one shared storage.
func TestShapes_WorkersOfBothFamiliesJoinAHealthyControlPlane(t *testing.T) {
	t.Parallel()
	families := 2
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
		t.Log("the kernel has IPv6 disabled: testing with IPv4 only")
		families = 1
	}
	l := labOfShape(t, "joining", func(s settings) {
		s.pool(0)["nodes"] = s.pool(0)["nodes"].([]any)[:1]
		s.pool(1)["dataDisks"] = append(s.pool(1)["dataDisks"].([]any), map[string]any{"name": "scratch", "size": "10GiB", "use": "volume"})
		s.set("workers", map[string]any{"join": "afterGate"})
		s.set("proxmox", map[string]any{"datastores": map[string]any{"iso": "nas", "isoShared": true}})
		if families == 2 {
			bothFamilies(s)
		}
	})
	comesUp(l)

	require.Equal(t, "2/2", l.field("deployment/cilium-operator", "{.spec.replicas}/{.status.readyReplicas}"),
		"the second replica starts once the workers have joined")
	ready := l.timeField("node/infra-cp-1", `{.status.conditions[?(@.type=="Ready")].lastTransitionTime}`)
	for worker, address := range map[string]string{"infra-worker-1": "10.25.11.21", "infra-worker-2": "10.25.11.22"} {
		require.False(t, l.timeField("node/"+worker, "{.metadata.creationTimestamp}").Before(ready),
			"%s joined before the control plane was Ready", worker)
		require.Contains(t, l.in("talosctl", "--context=infra", "--nodes="+address, "get", "volumestatus", "u-scratch"), "ready")
	}
	for _, node := range strings.Fields(l.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")) {
		require.Len(t, list(l, "node/"+node, "{.spec.podCIDRs}"), families, node)
	}
	require.Len(t, list(l, "service/kube-dns", "{.spec.clusterIPs}"), families)
	if families == 2 {
		require.Equal(t, "10.25.11.100 fd25:11::100",
			l.field("ciliumloadbalancerippool/infra", "{.spec.blocks[0].start} {.spec.blocks[1].start}"))
		require.Equal(t, "64512 10.25.11.1 64513", l.field("ciliumbgpclusterconfig/infra",
			"{.spec.bgpInstances[0].localASN} {.spec.bgpInstances[0].peers[0].peerAddress} {.spec.bgpInstances[0].peers[0].peerASN}"))
	}
	movesWithASharedImage(l)
	unprotectAndDestroy(l)
	require.Len(t, l.tasks("imgdel"), 1, "the image is deleted once")
	require.Empty(t, l.status().Volumes)
}

// movesWithASharedImage moves the first machine, whose host has downloaded the image. The image stays where it is.
func movesWithASharedImage(l *lab) {
	l.t.Helper()
	before, images := l.machines(), l.images()
	require.Len(l.t, images, 1)
	hosts := map[string]bool{}
	for name, machine := range before {
		hosts[machine.Host] = true
		require.Equal(l.t, images[0], machine.Drive, name)
	}
	require.Greater(l.t, len(hosts), 1)
	require.Len(l.t, l.tasks("download"), 1, "the image is downloaded once for all hosts")
	movesTo(l.t, l, before, map[string]string{"infra-cp-1": "pve3"})
	require.Equal(l.t, images, l.images())
	require.Len(l.t, l.tasks("download"), 1)
	require.Empty(l.t, l.tasks("imgdel"))
}

// TestShapes_TheOnlyControlPlaneIsRebuilt creates one control plane and a tainted worker, and replaces the control plane's VM: etcd and
// everything in the cluster is gone with it. What was sealed before there was a cluster is decrypted in both, with a key that was handed in.
func TestShapes_TheOnlyControlPlaneIsRebuilt(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "rebuilt", func(s settings) {
		s.pool(0)["nodes"] = s.pool(0)["nodes"].([]any)[:1]
		s.pool(1)["nodes"].([]any)[1].(map[string]any)["taints"] = map[string]any{"dedicated": "storage:NoSchedule"}
		s["slipway:accepted"] = []any{map[string]any{"path": "storage.role", "reason": "nothing uses the disk of the tainted worker"}}
	})
	key, certificate := newSealingPair(t, time.Minute)
	l.setSecret("infra", "sealedSecretsKey", key)
	l.setSecret("infra", "sealedSecretsCert", certificate)
	object := sealed(t, certificate, "default", "sealed-before", "value", "works")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, strings.TrimSpace(certificate), strings.TrimSpace(l.sealingCertificate("infra")))
	l.unseals("infra", object, "works")
	taints := func() string { return l.field("node/infra-worker-2", "{.spec.taints[*].key}") }
	require.Equal(t, "dedicated", taints())
	uid := l.field("namespace/kube-system", "{.metadata.uid}")

	vms := slices.DeleteFunc(urns(t, l, "infra"), func(urn string) bool { return !strings.HasSuffix(urn, "infra-cp-1-vm") })
	require.Len(t, vms, 1)
	l.pulumi("state", "unprotect", vms[0], "--yes", "--stack", "infra")
	l.declare("lifecycle", map[string]any{"snapshots": map[string]any{"recoverFrom": "none"}})
	l.pulumiSays(remindsOfRecovery, "up", "--yes", "--skip-preview", "--replace", vms[0], "--stack", "infra")

	require.NotEqual(t, uid, l.field("namespace/kube-system", "{.metadata.uid}"), "it is another cluster")
	require.Equal(t, "dedicated", taints())
	l.unseals("infra", object, "works")
	require.Equal(t, "True", l.kubectl("get", "--namespace=flux-system", "kustomization/flux-system",
		`--output=jsonpath={.status.conditions[?(@.type=="Ready")].status}`))
	editStackFile(t, l.stackFile("infra"), func(s settings) { delete(s, "slipway:lifecycle") })
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	unprotectAndDestroy(l)
}

// bothFamilies adds IPv6 addresses for a stack's machines, pods and Services, which BGP announces: by L2, Cilium announces IPv4 only
// before 1.19.
func bothFamilies(s settings) {
	network := s["slipway:network"].(map[string]any)
	network["ipv6"] = map[string]any{
		"nodeCIDR": "fd25:11::/64", "gateway": "fd25:11::1", "podCIDR": "fd25:11:1::/56", "serviceCIDR": "fd25:11:2::/112",
		"nameservers":   []any{"2620:fe::fe"},
		"loadBalancers": map[string]any{"start": "fd25:11::100", "stop": "fd25:11::150"},
	}
	services := network["loadBalancers"].(map[string]any)
	services["announce"] = "bgp"
	services["bgp"] = map[string]any{"asn": 64512, "peers": []any{map[string]any{"address": "10.25.11.1", "asn": 64513}}}
	for i := range 2 {
		for _, node := range s.pool(i)["nodes"].([]any) {
			node := node.(map[string]any)
			node["address6"] = strings.Replace(node["address"].(string), "10.25.11.", "fd25:11::", 1)
		}
	}
}

// oneNode makes a cluster of one control plane, on which workloads run.
func oneNode(s settings) {
	s["slipway:nodePools"] = []any{s.pool(0)}
	s.pool(0)["nodes"] = s.pool(0)["nodes"].([]any)[:1]
	s.set("kubernetes", map[string]any{"allowSchedulingOnControlPlanes": true})
	s.set("coreDNS", map[string]any{"replicas": 1})
	s["slipway:storage"] = map[string]any{"role": "none"} // its disks are in the other pool
}

// labOfShape starts a lab of a clone of this checkout whose only stack is infra, in another shape, with flags of `lab start`.
func labOfShape(t *testing.T, name string, shape func(settings), flags ...string) *lab {
	t.Helper()
	return labOfClone(t, cloneOf(t), name, shape, flags...)
}

// labOfClone does so of a clone with changes of its own.
func labOfClone(t *testing.T, clone, name string, shape func(settings), flags ...string) *lab {
	t.Helper()
	require.NoError(t, os.Remove(filepath.Join(clone, "Pulumi.apps.yaml")))
	editStackFile(t, filepath.Join(clone, "Pulumi.infra.yaml"), func(s settings) {
		delete(s, "slipway:mesh")
		shape(s)
	})
	commitAll(t, clone, name)
	return startLabOf(t, clone, name, flags...)
}

// comesUp creates infra, and checks that a second run changes nothing.
func comesUp(l *lab) {
	l.t.Helper()
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	l.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
}

// unprotectAndDestroy destroys infra.
func unprotectAndDestroy(l *lab) {
	l.t.Helper()
	l.pulumi("state", "unprotect", "--all", "--yes", "--stack", "infra")
	l.pulumi("destroy", "--yes", "--skip-preview", "--stack", "infra")
	require.Empty(l.t, l.status().VMs)
}

// kubectl runs kubectl against the infra cluster.
func (l *lab) kubectl(args ...string) string {
	l.t.Helper()
	return strings.TrimSpace(l.in(append([]string{"kubectl", "--context=admin@infra"}, args...)...))
}

// field returns a field of an object, in the API's form.
func (l *lab) field(object, path string) string {
	l.t.Helper()
	return l.kubectl("get", "--namespace=kube-system", object, "--output=jsonpath="+path)
}

// timeField returns a field whose value is a time.
func (l *lab) timeField(object, path string) time.Time {
	l.t.Helper()
	at, err := time.Parse(time.RFC3339, l.field(object, path))
	require.NoError(l.t, err)
	return at
}

// list returns a field whose value is a list.
func list(l *lab, object, path string) []string {
	l.t.Helper()
	var values []string
	require.NoError(l.t, json.Unmarshal([]byte(l.field(object, path)), &values))
	return values
}
