package fakecluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/stretchr/testify/require"
)

// Resource paths of what Cilium and Kubernetes keep.
const (
	Nodes       = "api/v1/nodes"
	Pods        = "api/v1/pods"
	DaemonSets  = "apis/apps/v1/daemonsets"
	Deployments = "apis/apps/v1/deployments"
)

// Member is a machine of a fake cluster.
type Member struct {
	Name, Address string
	ControlPlane  bool
}

// Healthy fills both APIs with what a healthy cluster with Cilium 1.18.7 shows.
func Healthy(t testing.TB, kube *Kube, talos *Talos, members []Member) {
	t.Helper()
	var etcd []*machineapi.EtcdMember
	for i, member := range members {
		if member.ControlPlane {
			etcd = append(etcd, &machineapi.EtcdMember{Id: uint64(i + 1), Hostname: member.Name})
		}
	}
	for _, member := range members {
		PutNode(t, kube, member, "True")
		PutAgent(t, kube, member, true)
		talos.Change(member.Address, func(node *TalosNode) {
			node.Services["apid"], node.Services["kubelet"] = Running("apid"), Running("kubelet")
			if member.ControlPlane {
				node.Services["etcd"], node.Members = Running("etcd"), etcd
			}
		})
	}
	rollout := func(kind, name, label string, spec, status map[string]any) string {
		text, err := json.Marshal(map[string]any{"apiVersion": "apps/v1", "kind": kind, "spec": spec, "status": status, "metadata": map[string]any{
			"name": name, "namespace": "kube-system", "generation": 1, "labels": map[string]any{strings.Split(label, "=")[0]: strings.Split(label, "=")[1]}}})
		require.NoError(t, err)
		return string(text)
	}
	kube.Put(t, DaemonSets, rollout("DaemonSet", "cilium", "k8s-app=cilium", nil,
		map[string]any{"observedGeneration": 1, "desiredNumberScheduled": len(members), "updatedNumberScheduled": len(members)}))
	kube.Put(t, Deployments, rollout("Deployment", "cilium-operator", "name=cilium-operator", map[string]any{"replicas": 2},
		map[string]any{"observedGeneration": 1, "updatedReplicas": 2}))
	for i := range 2 {
		kube.Put(t, Pods, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: cilium-operator-%d, namespace: kube-system, labels: {name: cilium-operator}},
  spec: {nodeName: %s}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, i, members[0].Name))
	}
	kube.OnExec(func(string, []string) (string, error) { return CiliumStatus(members, "") })
}

// PutNode registers a node with that Ready status.
func PutNode(t testing.TB, kube *Kube, member Member, ready string) {
	t.Helper()
	role := "{}"
	if member.ControlPlane {
		role = `{node-role.kubernetes.io/control-plane: ""}`
	}
	kube.Put(t, Nodes, fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s, labels: %s},
  status: {addresses: [{type: InternalIP, address: %s}], conditions: [{type: Ready, status: %q, reason: KubeletNotReady, message: "cni plugin not initialized"}]}}`,
		member.Name, role, member.Address, ready))
}

// PutAgent runs a Cilium agent on a member; one that is not ready is in CrashLoopBackOff.
func PutAgent(t testing.TB, kube *Kube, member Member, ready bool) {
	t.Helper()
	status, state := "True", "{running: {}}"
	if !ready {
		status, state = "False", "{waiting: {reason: CrashLoopBackOff, message: back-off 10s restarting failed container}}"
	}
	kube.Put(t, Pods, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: cilium-%[1]s, namespace: kube-system, labels: {k8s-app: cilium}},
  spec: {nodeName: %[1]s, containers: [{name: cilium-agent, image: "quay.io/cilium/cilium:v1.18.7@sha256:aa"}]},
  status: {phase: Running, conditions: [{type: Ready, status: %[2]q}], containerStatuses: [{name: cilium-agent, ready: %[3]t, restartCount: 3, image: x, imageID: x, state: %[4]s}]}}`,
		member.Name, status, ready, state))
}

// CiliumStatus is what `cilium-health status -o json` answers; problem is the status of every path to another node's endpoint.
func CiliumStatus(members []Member, problem string) (string, error) {
	path := func(status string) map[string]any {
		return map[string]any{"primary-address": map[string]any{"ip": "10.244.0.9", "icmp": map[string]any{"latency": 1, "status": status}, "http": map[string]any{"latency": 1, "status": status}}}
	}
	var nodes []any
	for _, member := range members {
		nodes = append(nodes, map[string]any{"name": "infra/" + member.Name, "host": path(""), "health-endpoint": path(problem)})
	}
	text, err := json.Marshal(map[string]any{"nodes": nodes})
	return string(text), err
}
