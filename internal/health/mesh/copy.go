package mesh

import (
	"fmt"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

var peersCopied = check{
	Name:   "kvstoremesh is connected to every peer and has copied its state",
	Looks:  "`kvstoremesh-dbg status` in each pod of the mesh API server: connected, ready, the declared id, its nodes",
	ByHand: "kubectl -n NAMESPACE exec deploy/clustermesh-apiserver -c kvstoremesh -- clustermesh-apiserver kvstoremesh-dbg status --verbose",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		if !seen.copying() {
			return []health.Result{health.Skip("", "the agents connect to the peers themselves")}
		}
		return seen.each(spec, func(peer Peer) []health.Result {
			if !health.Hold(serverRunning.Judge(spec, seen)) {
				return []health.Result{health.Block(peer.Name, "the mesh API server is not Ready")}
			}
			return []health.Result{seen.copied(spec, peer)}
		})
	},
}

// copied judges the copy of a peer's state.
func (seen *Cluster) copied(spec *Spec, peer Peer) health.Result {
	if answer := seen.Answers[peer.Name]; answer.TLS != "" {
		return health.Block(peer.Name, "its certificate is not valid")
	}
	result := health.Pass(peer.Name)
	for _, pod := range kube.Answering(seen.Pods.Items) {
		report := seen.Copies[pod.Name]
		if !report.Asked {
			return health.NotSeen(peer.Name, "its copy")
		}
		remark, problem := report.judge(spec, peer, 0)
		if problem == "" {
			result.Reason = remark
			continue
		}
		result = health.Fail(peer.Name, problem)
		if remote, known := report.Peers[peer.Name]; known && !remote.Connected && seen.Answers[peer.Name].Err == "" {
			result.Reason += ", although its address answers to this computer"
		}
		return result.WithEvidence(report.evidence(peer)...).
			WithCommand(fmt.Sprintf("kubectl -n %s exec %s -c %s -- clustermesh-apiserver kvstoremesh-dbg troubleshoot %s",
				pod.Namespace, pod.Name, CopyContainer, peer.Name)).
			Asks(health.Question{Kind: health.PodLog, Namespace: pod.Namespace, Name: pod.Name, Container: CopyContainer})
	}
	return result
}

// nodes returns the number of a peer's nodes that an agent must know: as many as were copied, or 0 if nothing is copied.
func (seen *Cluster) nodes(peer Peer) int {
	most := 0
	for _, pod := range kube.Answering(seen.Pods.Items) {
		most = max(most, seen.Copies[pod.Name].Peers[peer.Name].Nodes)
	}
	return most
}
