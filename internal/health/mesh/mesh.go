// Package mesh checks that a cluster is connected with the existing other clusters of its mesh.
//
// A cluster's mesh API server holds the cluster's state for the peers. In the same pod, kvstoremesh copies the state of every peer into
// it, and the agents read that copy. So kvstoremesh shows whether a peer is reached, and the agents whether its nodes are known.
package mesh

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

// What Cilium's chart creates for a mesh.
const (
	ServerName     = "clustermesh-apiserver" // Service and Deployment
	ServerSelector = "k8s-app=" + ServerName // labels of its pods
	CopyContainer  = "kvstoremesh"           // container of the mesh API server's pod that copies the peers' state
)

type check = health.Check[*Spec, *Cluster]

// Checks are in the order in which a mesh comes up. In ByHand, NAMESPACE stands for Cilium's namespace, PEER for a peer, ADDRESS for its
// mesh address and POD for a Cilium agent.
var Checks = []check{addressAssigned, serverRunning, peersAnswer, certificatesValid, peersCopied, agentsSee}

// Cluster is what was seen of a cluster and of the addresses in its mesh. The zero value has seen nothing.
type Cluster struct {
	Services health.Seen[Service]       // of the mesh API server
	Servers  health.Seen[kube.Workload] // Deployment of the mesh API server
	Pods     health.Seen[kube.Pod]      // of that Deployment
	Agents   health.Seen[kube.Pod]      // Cilium's agents

	Answers map[string]Answer // to this computer, by the name of the cluster; the own one included
	Copies  map[string]Report // of kvstoremesh, by the name of the pod
	Reports map[string]Report // of the agents, by the name of the pod
}

// Report is what kvstoremesh or an agent says about the peers. It is the same for both.
type Report struct {
	Asked bool
	Tried bool              // the reported connections were tried anew, with the result in Errors
	Err   string            // why there is no report
	Peers map[string]Remote // by name
}

// Remote is a peer as kvstoremesh or an agent sees it.
type Remote struct {
	Connected bool     // to the etcd: kvstoremesh to the peer's, an agent to its own cluster's
	Ready     bool     // has read everything once
	Retrieved bool     // has read the peer's configuration
	ID        int      // Cilium's id in that configuration; 0 before
	Nodes     int      // number of nodes that it knows
	Status    string   // of the connection, in Cilium's words
	Failures  int      // number of lost connections
	Errors    []string // of the newest attempts to connect; without anything that may be a secret
}

// Evaluate runs all checks.
func Evaluate(spec *Spec, seen *Cluster) []health.Result {
	return health.Evaluate(Checks, spec, seen, func(string) []string { return []string{"NAMESPACE", spec.Namespace} })
}

// CopyHolds reports whether kvstoremesh in a pod has everything of the existing peers, and need not be asked again. It must be if an agent
// knows another number of nodes: the peer may have got or lost one since.
func (seen *Cluster) CopyHolds(spec *Spec, pod string) bool {
	copied := seen.Copies[pod]
	return seen.tried(spec, copied) && seen.holds(spec, copied, func(Peer) int { return 0 }) && !seen.contradicts(spec, copied)
}

// contradicts reports whether an agent that has read everything of an existing peer knows another number of its nodes than a copy.
func (seen *Cluster) contradicts(spec *Spec, copied Report) bool {
	for _, peer := range spec.Peers {
		if !seen.presence(spec, peer).judged {
			continue
		}
		for _, report := range seen.Reports {
			remote := report.Peers[peer.Name]
			if remote.Connected && remote.Ready && remote.Nodes != copied.Peers[peer.Name].Nodes {
				return true
			}
		}
	}
	return false
}

// TriesAnew reports whether kvstoremesh must try its connections anew, because this computer does not reach the cluster's own address, and
// so cannot try the peers' addresses: Cilium notices only after two minutes that a peer has gone.
func (seen *Cluster) TriesAnew(spec *Spec) bool {
	return seen.Answers[spec.Name].Err != "" && seen.copying()
}

// tried reports whether the connections in a report were tried anew, if they must be.
func (seen *Cluster) tried(spec *Spec, report Report) bool {
	return report.Tried || !seen.TriesAnew(spec)
}

// AgentHolds reports the same of an agent.
func (seen *Cluster) AgentHolds(spec *Spec, pod string) bool {
	return seen.holds(spec, seen.Reports[pod], seen.nodes)
}

func (seen *Cluster) holds(spec *Spec, report Report, nodes func(Peer) int) bool {
	for _, peer := range spec.Peers {
		if seen.presence(spec, peer).judged {
			if _, problem := report.judge(spec, peer, nodes(peer)); problem != "" {
				return false
			}
		}
	}
	return report.Asked && report.Err == ""
}

// copying reports whether kvstoremesh is part of the mesh API server.
func (seen *Cluster) copying() bool {
	return len(seen.Pods.Items) == 0 || slices.ContainsFunc(seen.Pods.Items, copies)
}

// copies reports whether kvstoremesh runs in a pod.
func copies(pod kube.Pod) bool {
	return slices.ContainsFunc(pod.Containers, func(c kube.Container) bool { return c.Name == CopyContainer })
}

// AnsweringAgents returns the agents that can be asked.
func (seen *Cluster) AnsweringAgents() []kube.Pod { return kube.Answering(seen.Agents.Items) }

// AnsweringCopies returns the pods in which kvstoremesh can be asked.
func (seen *Cluster) AnsweringCopies() []kube.Pod {
	return slices.DeleteFunc(kube.Answering(seen.Pods.Items), func(pod kube.Pod) bool { return !copies(pod) })
}

// at is the mesh address of a cluster.
func (s *Spec) at(address netip.Addr) string { return fmt.Sprintf("%s port %d", address, s.Port) }
