package fakecluster

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/stretchr/testify/require"
)

// Resource paths of objects.
const (
	Namespaces   = "api/v1/namespaces"
	Nodes        = "api/v1/nodes"
	Pods         = "api/v1/pods"
	Services     = "api/v1/services"
	Events       = "api/v1/events"
	ConfigMaps   = "api/v1/configmaps"
	DaemonSets   = "apis/apps/v1/daemonsets"
	Deployments  = "apis/apps/v1/deployments"
	StatefulSets = "apis/apps/v1/statefulsets"
	ServiceCIDRs = "apis/networking.k8s.io/v1/servicecidrs"
	CiliumNodes  = "apis/cilium.io/v2/ciliumnodes"
)

// The ranges of a healthy cluster.
const (
	PodCIDR     = "10.244.0.0/16"
	ServiceCIDR = "10.245.0.0/16"
)

// ClusterUID is the UID of the namespace kube-system.
const ClusterUID = "0a1b2c3d-0000-4000-8000-000000000001"

// Member is a machine of a fake cluster.
type Member struct {
	Name, Address string
	ControlPlane  bool
}

// podCIDR returns the member's part of PodCIDR, from the last two bytes of its address.
func (m Member) podCIDR() string {
	address := netip.MustParseAddr(m.Address).As4()
	return fmt.Sprintf("10.244.%d.0/24", (int(address[2])*100+int(address[3]))%256)
}

// Healthy fills both APIs with the objects of a healthy cluster with Cilium 1.18.7.
func Healthy(t testing.TB, kube *Kube, talos *Talos, members []Member) {
	t.Helper()
	var etcd []*machineapi.EtcdMember
	for i, member := range members {
		if member.ControlPlane {
			etcd = append(etcd, &machineapi.EtcdMember{Id: uint64(i + 1), Hostname: member.Name,
				PeerUrls: []string{"https://" + member.Address + ":2380"}})
		}
	}
	for _, member := range members {
		PutNode(t, kube, member, "True")
		PutAgent(t, kube, member, true)
		PutEnvoy(t, kube, member, true)
		PutCiliumNode(t, kube, member, member.podCIDR())
		talos.Change(member.Address, func(node *TalosNode) {
			for _, id := range []string{"apid", "machined", "kubelet"} {
				node.Services[id] = Running(id)
			}
			if member.ControlPlane {
				node.Services["etcd"], node.Services["trustd"] = Running("etcd"), Running("trustd")
				node.Members, node.Leader = etcd, 1
				node.PodCIDRs, node.ServiceCIDRs = []string{PodCIDR}, []string{ServiceCIDR}
			}
		})
	}
	rollout := func(kind, name, label string, spec, status map[string]any) string {
		text, err := json.Marshal(map[string]any{"apiVersion": "apps/v1", "kind": kind, "spec": spec, "status": status,
			"metadata": map[string]any{
				"name": name, "namespace": "kube-system", "generation": 1, "annotations": map[string]any{"meta.helm.sh/release-name": "cilium"},
				"labels": map[string]any{strings.Split(label, "=")[0]: strings.Split(label, "=")[1]}}})
		require.NoError(t, err)
		return string(text)
	}
	for _, name := range []string{"cilium", "cilium-envoy"} {
		kube.Put(t, DaemonSets, rollout("DaemonSet", name, "k8s-app="+name, nil,
			map[string]any{"observedGeneration": 1, "desiredNumberScheduled": len(members), "updatedNumberScheduled": len(members)}))
	}
	kube.Put(t, Deployments, rollout("Deployment", "cilium-operator", "name=cilium-operator", map[string]any{"replicas": 2},
		map[string]any{"observedGeneration": 1, "updatedReplicas": 2}))
	for i := range 2 {
		kube.Put(t, Pods, fmt.Sprintf(`{apiVersion: v1, kind: Pod,
  metadata: {name: cilium-operator-%d, namespace: kube-system, labels: {name: cilium-operator}},
  spec: {nodeName: %s}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, i, members[0].Name))
	}
	kube.Put(t, ConfigMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cilium-config, namespace: kube-system},
  data: {cluster-name: infra, cluster-id: "1", external-envoy-proxy: "true",
  routing-mode: tunnel, enable-ipv4: "true", enable-ipv6: "false", ipv4-native-routing-cidr: `+PodCIDR+`}}`)
	kube.Put(t, ServiceCIDRs,
		`{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: kubernetes}, spec: {cidrs: [`+ServiceCIDR+`]}}`)
	kube.Put(t, Namespaces, `{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: `+ClusterUID+`}}`)
	kube.Serves(Events)
	kube.OnExec(Agents(members, ""))
}

// Agents returns the answers of every agent to the status commands; problem is the status of every path to a node's endpoint.
func Agents(members []Member, problem string) func(pod string, command []string) (string, error) {
	reach, err := CiliumHealth(members, problem)
	byPod := map[string]Member{}
	for _, member := range members {
		byPod["cilium-"+member.Name] = member
	}
	return func(pod string, command []string) (string, error) {
		if command[0] == "cilium-health" {
			return reach, err
		}
		return CiliumStatus(byPod[pod].podCIDR()), nil
	}
}

// PutNode registers a node. ready is the status of its Ready condition.
func PutNode(t testing.TB, kube *Kube, member Member, ready string) {
	t.Helper()
	role := "{}"
	if member.ControlPlane {
		role = `{node-role.kubernetes.io/control-plane: ""}`
	}
	kube.Put(t, Nodes, fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s, labels: %s}, spec: {podCIDRs: [%s]},
  status: {nodeInfo: {kubeletVersion: %s}, addresses: [{type: InternalIP, address: %s}],
    conditions: [{type: Ready, status: %q, reason: KubeletNotReady, message: "cni plugin not initialized"}]}}`,
		member.Name, role, member.podCIDR(), KubernetesVersion, member.Address, ready))
}

// PutCiliumNode adds the CiliumNode of a member, with its pod range.
func PutCiliumNode(t testing.TB, kube *Kube, member Member, cidr string) {
	t.Helper()
	kube.Put(t, CiliumNodes, fmt.Sprintf(`{apiVersion: cilium.io/v2, kind: CiliumNode, metadata: {name: %s}, spec: {ipam: {podCIDRs: [%s]}}}`,
		member.Name, cidr))
}

// PutAgent adds the Cilium agent of a member. An agent that is not ready is in CrashLoopBackOff.
func PutAgent(t testing.TB, kube *Kube, member Member, ready bool) {
	t.Helper()
	status, state := "True", "{running: {}}"
	if !ready {
		status, state = "False", "{waiting: {reason: CrashLoopBackOff, message: back-off 10s restarting failed container}}"
	}
	kube.Put(t, Pods, fmt.Sprintf(`{apiVersion: v1, kind: Pod,
  metadata: {name: cilium-%[1]s, namespace: kube-system, labels: {k8s-app: cilium}},
  spec: {nodeName: %[1]s, containers: [{name: cilium-agent, image: "quay.io/cilium/cilium:v1.18.7@sha256:aa"}]},
  status: {phase: Running, conditions: [{type: Ready, status: %[2]q}],
    containerStatuses: [{name: cilium-agent, ready: %[3]t, restartCount: 3, image: x, imageID: x, state: %[4]s}]}}`,
		member.Name, status, ready, state))
}

// PutEnvoy adds the pod of Envoy of a member.
func PutEnvoy(t testing.TB, kube *Kube, member Member, ready bool) {
	t.Helper()
	status := map[bool]string{true: "True", false: "False"}[ready]
	kube.Put(t, Pods, fmt.Sprintf(`{apiVersion: v1, kind: Pod,
  metadata: {name: cilium-envoy-%[1]s, namespace: kube-system, labels: {k8s-app: cilium-envoy}},
  spec: {nodeName: %[1]s}, status: {phase: Running, conditions: [{type: Ready, status: %[2]q}]}}`, member.Name, status))
}

// CiliumHealth returns the output of `cilium-health status -o json`; problem is the status of every path to a node's endpoint.
func CiliumHealth(members []Member, problem string) (string, error) {
	path := func(status string) map[string]any {
		return map[string]any{"primary-address": map[string]any{"ip": "10.244.0.9", "icmp": map[string]any{"latency": 1, "status": status},
			"http": map[string]any{"latency": 1, "status": status}}}
	}
	var nodes []any
	for _, member := range members {
		nodes = append(nodes, map[string]any{"name": "infra/" + member.Name, "host": path(""), "health-endpoint": path(problem)})
	}
	text, err := json.Marshal(map[string]any{"local": map[string]any{"name": "infra/" + members[0].Name}, "nodes": nodes})
	return string(text), err
}

// CiliumStatus returns the output of `cilium-dbg status -o json` of an agent with that pod range.
func CiliumStatus(podCIDR string) string {
	return fmt.Sprintf(`{"cilium": {"state": "Ok", "msg": "1.18.7"}, "kubernetes": {"state": "Ok"}, "kvstore": {"state": "Disabled"},
"ipam": {"status": "IPv4: 4/254 allocated from %s, "}, "controllers": [{"name": "sync", "status": {"success-count": 3}}]}`, podCIDR)
}
