package mesh

import (
	"fmt"
	"slices"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

// presence tells whether a peer exists, as far as that can be seen from here.
type presence struct {
	judged bool   // it must be connected and ready
	absent string // why it is reported as absent; "" if it exists or is not known yet
}

// A peer that was not created yet, or was destroyed, is no fault of this cluster. So the gate does not wait for a peer that nobody reaches.
var peersAnswer = check{
	Name: "every peer answers at its mesh address, or is absent",
	Looks: "TCP to the peer's address from this computer, and whether kvstoremesh is connected to it: if neither works, the peer is " +
		"absent, which is listed, and the gate opens all the same. If this computer does not reach the cluster's own address either, " +
		"kvstoremesh's own command tries: a peer whose TLS it refuses exists",
	ByHand: "nc -vz ADDRESS 2379; kubectl -n NAMESPACE exec deploy/clustermesh-apiserver -c kvstoremesh -- " +
		"clustermesh-apiserver kvstoremesh-dbg troubleshoot PEER",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		var results []health.Result
		for _, peer := range spec.Peers {
			is, result := seen.presence(spec, peer), health.Pass(peer.Name)
			switch {
			case is.absent != "" && spec.Strict:
				result = health.Fail(peer.Name, is.absent).WithCommand(fmt.Sprintf("nc -vz %s %d", peer.Address, spec.Port))
			case is.absent != "":
				result = health.Skip(peer.Name, is.absent)
			case !is.judged:
				result = health.NotSeen(peer.Name, "whether it answers")
			case seen.Answers[peer.Name].Err != "":
				result.Reason = "neither it nor this cluster's own address answers here; see what kvstoremesh reaches"
			}
			results = append(results, result)
		}
		return results
	},
}

// presence judges whether a peer exists. An answer to this computer is a hint only: it may have no route to load-balancer addresses at all,
// which shows in the own address. Then the errors of Cilium's new attempt decide. A connection is a hint, too: for two minutes, the age of
// a heartbeat, Cilium does not notice that a peer has gone. If both hints disagree and the own address answers, the peer is reported as
// absent, but agents must still see it as ready.
func (seen *Cluster) presence(spec *Spec, peer Peer) presence {
	answer, own := seen.Answers[peer.Name], seen.Answers[spec.Name]
	connected, known, wrong := seen.connected(spec, peer)
	switch {
	case !answer.Asked:
		return presence{}
	case answer.Err == "":
		return presence{judged: true}
	case !known || !own.Asked:
		return presence{}
	case own.Err != "" && (connected || !unreachable(wrong)):
		return presence{judged: true}
	}
	is := presence{judged: connected, absent: fmt.Sprintf("is absent: %s does not answer (%s)", spec.at(peer.Address), answer.Err)}
	switch {
	case connected:
		is.absent += "; Cilium still reports a connection, so the peer has just gone, or only this computer does not reach it"
	case own.Err != "":
		is.absent += ", and this cluster does not reach it either: " + plainly(wrong) +
			"; its own address does not answer here, so that no certificate was judged"
	default:
		is.absent += ", and nothing in this cluster is connected to it"
	}
	return is
}

// connected reports whether something in the cluster is connected to a peer, whether that is known, and what is wrong in the attempts. With
// kvstoremesh, an agent's connection is that to its own cluster and says nothing about the peer.
func (seen *Cluster) connected(spec *Spec, peer Peer) (is, known bool, wrong []string) {
	pods, reports := seen.Pods, seen.Copies
	if !seen.copying() {
		pods, reports = seen.Agents, seen.Reports
	}
	if !pods.Synced {
		return false, pods.Err != nil, nil // what cannot be read is reported elsewhere
	}
	known = true
	for _, pod := range kube.Answering(pods.Items) {
		report := reports[pod.Name]
		remote, tried := report.Peers[peer.Name], seen.tried(spec, report)
		is, wrong = is || tried && remote.Connected && !unreachable(remote.Errors), append(wrong, remote.Errors...)
		known = known && report.Asked && tried
	}
	return is, known || is, wrong
}

// unreachable reports whether nothing has answered to an attempt to connect. Without an error, there was none yet.
func unreachable(wrong []string) bool {
	return slices.Contains([]string{NoRoute, Refused, Silent}, plainly(wrong))
}

// each judges the peers that must be connected. What passes is left out for a peer that is reported as absent.
func (seen *Cluster) each(spec *Spec, judge func(Peer) []health.Result) []health.Result {
	var results []health.Result
	unknown := false
	for _, peer := range spec.Peers {
		is := seen.presence(spec, peer)
		unknown = unknown || !is.judged && is.absent == ""
		if !is.judged {
			continue
		}
		for _, result := range judge(peer) {
			if is.absent == "" || result.Verdict != health.Passed {
				results = append(results, result)
			}
		}
	}
	switch {
	case len(results) > 0:
		return results
	case unknown:
		return []health.Result{health.NotSeen("", "whether a peer exists")}
	}
	return []health.Result{health.Skip("", "no peer exists")}
}
