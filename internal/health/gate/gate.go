// Package gate checks that a cluster is as declared and healthy: machines, etcd, Kubernetes and Cilium.
//
// Each check is a file of its own, with the data that only it reads. A new check takes that file, a test file with its fault cases and its
// part of a healthy cluster, an entry in Checks, and, for new data, a field in Cluster and a reader in package observe. The tests write its
// row in docs/gates.md and its reports in testdata (-update).
package gate

import (
	"slices"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
	"github.com/slipway-platform/slipway/internal/health/own"
)

type check = health.Check[*Spec, *Cluster]

// Checks are in the order in which a cluster comes up: the first that fails is usually the cause of the others. In ByHand, ADDRESS and
// NODE stand for a node, NAMESPACE for Cilium's namespace and POD for the node's Cilium agent.
var Checks = []check{
	talosAnswers,
	talosServices,
	talosVersion,
	kernelParameters,
	etcdMembers,
	etcdHealth,
	apiServerReady,
	talosRanges,
	serviceRanges,
	nodeRegistered,
	nodeAddresses,
	nodeLabels,
	nodeTaints,
	podRanges,
	kubernetesVersion,
	ciliumRollout,
	ciliumConfig,
	ciliumAgents,
	ciliumEnvoy,
	ciliumOperator,
	nodeReady,
	ciliumStatus,
	ciliumReachability,
	ciliumRanges,
	etcdBackup,
}

// Cluster is what was seen of a cluster. The zero value has seen nothing.
type Cluster struct {
	API       APIServer
	Nodes     health.Seen[Node]
	Services  health.Seen[Ranges] // ServiceCIDR objects
	Agents    health.Seen[kube.Pod]
	Envoys    health.Seen[kube.Pod]
	Operators health.Seen[kube.Pod]
	AgentSets health.Seen[kube.Workload] // DaemonSets with the agents' labels
	EnvoySets health.Seen[kube.Workload] // DaemonSets with Envoy's labels
	Operator  health.Seen[kube.Workload] // Deployments with the operators' labels
	Config    health.Seen[Settings]      // the ConfigMap cilium-config
	Ranges    health.Seen[Ranges]        // CiliumNode objects

	CiliumHealth map[string]CiliumHealth // by Kubernetes node name
	CiliumStatus map[string]CiliumStatus // by Kubernetes node name
	Talos        map[string]TalosNode    // by declared node name
	APIServers   map[string]Version      // of each control plane, by declared node name
	Uncertified  map[string]string       // why the certificate for which a kubelet asks is not approved, by Kubernetes node name

	CronJobs health.Seen[CronJob] // the one that takes snapshots of etcd
	Backup   BackupObject

	Own own.Seen // what the checks of the stack file judge
}

// Evaluate runs all checks, and then those that the stack file declares.
func Evaluate(spec *Spec, seen *Cluster) []health.Result {
	var everywhere []string
	if spec.Cilium != nil {
		everywhere = []string{"NAMESPACE", spec.Cilium.Namespace}
	}
	results := health.Evaluate(Checks, spec, seen, func(subject string) []string {
		i := slices.IndexFunc(spec.Nodes, func(m Machine) bool { return m.Name == subject })
		if i < 0 {
			return everywhere
		}
		pod, _ := seen.agentOn(subject)
		return append([]string{"ADDRESS", spec.Nodes[i].Address.String(), "NODE", subject, "POD", pod.Name}, everywhere...)
	})
	declared := own.Evaluate(spec.Checks, seen.Own, own.AbsentIsListed)
	if spec.Cilium == nil {
		for i := range declared {
			declared[i] = notAwaited(declared[i])
		}
	}
	return append(results, declared...)
}

// notAwaited returns a result that is listed and not waited for. On a new cluster no pod runs before Cilium, and no node is Ready. On a
// running cluster, a step after this gate may fix the cluster.
func notAwaited(result health.Result) health.Result {
	if result.Verdict == health.Passed {
		return result
	}
	remark := health.Skip(result.Subject, "is not waited for, because Cilium comes after this gate: "+result.Reason)
	remark.Check = result.Check
	return remark.WithEvidence(result.Evidence...).WithCommand(result.Command)
}
