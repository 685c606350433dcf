package mesh

import (
	"fmt"
	"strings"
)

// The reasons why a connection fails, in plain words. docs/gates.md has the remedies.
const (
	NoRoute   = "no route to the address"
	Refused   = "connection refused: no mesh API server is ready there"
	Silent    = "no answer in time"
	OtherCA   = "TLS: the certificate is not of the mesh's CA; set the same meshCA in every stack"
	Expired   = "TLS: the certificate has expired or is not valid yet; run pulumi up in its stack"
	OtherName = "TLS: the certificate is for another name: another server has the address"
	NoTLS     = "TLS: the server speaks another protocol: another server has the address"
	Unknown   = "TLS: the server refuses this cluster's certificate; " +
		"set the same meshCA in every stack, or run pulumi up here: it may have expired"
	SameID = "id collision: two clusters of the mesh have the same id"
)

// sayings are parts of the errors of Go and Cilium, with the reasons that they mean.
var sayings = []struct{ says, means string }{
	{"certificate signed by unknown authority", OtherCA},
	{"certificate has expired", Expired},
	{"certificate is valid for", OtherName},
	{"remote error: tls:", Unknown},
	{"is already used", SameID},
	{"is assigned to the local cluster", SameID},
	{"connection refused", Refused},
	{"no route to host", NoRoute},
	{"network is unreachable", NoRoute},
	{"i/o timeout", Silent},
	{"deadline exceeded", Silent},
}

// plainly returns the reason that errors mean; the first of them if no reason is known, and "" without any.
func plainly(errors []string) string {
	for _, one := range sayings {
		for _, text := range errors {
			if strings.Contains(text, one.says) {
				return one.means
			}
		}
	}
	if len(errors) > 0 {
		return errors[0]
	}
	return ""
}

// judge returns what is wrong with a peer in a report, or else a remark; or both "". nodes is the number of nodes that must be known; 0
// means the declared number.
func (r Report) judge(spec *Spec, peer Peer, nodes int) (remark, problem string) {
	remote, known := r.Peers[peer.Name]
	why := plainly(remote.Errors)
	because := func(text string) string {
		if why == "" {
			return text
		}
		return text + ": " + why
	}
	switch {
	case r.Err != "":
		return "", "the report cannot be read: " + r.Err
	case !known:
		return "", "is not configured: Cilium runs without it in its mesh values, or has not read them yet"
	case !remote.Connected:
		return "", because("is not connected")
	case remote.Retrieved && remote.ID == spec.ID:
		return "", fmt.Sprintf("has the id %d, which is this cluster's; %s", remote.ID, SameID)
	case remote.Retrieved && remote.ID != peer.ID:
		return "", fmt.Sprintf("has the id %d instead of the declared %d: another cluster answers, or it runs with an older configuration",
			remote.ID, peer.ID)
	case why == SameID:
		return "", because("is refused")
	case !remote.Retrieved:
		return "", because("its configuration was not read yet: its mesh API server is not ready")
	case !remote.Ready:
		return "", because("its state was not read completely yet")
	case remote.Nodes == 0:
		return "", "shows no node"
	case nodes > 0 && remote.Nodes != nodes:
		return "", fmt.Sprintf("has %d nodes, of which %d are known", nodes, remote.Nodes)
	case nodes == 0 && peer.Nodes > 0 && remote.Nodes != peer.Nodes:
		text := fmt.Sprintf("has %d nodes, %d are declared", remote.Nodes, peer.Nodes)
		if spec.Strict {
			return "", text
		}
		return peer.Name + " " + text, ""
	}
	return "", ""
}

// evidence returns what a report says about a peer, in Cilium's words.
func (r Report) evidence(peer Peer) []string {
	remote, known := r.Peers[peer.Name]
	if !known {
		return nil
	}
	var lines []string
	if remote.Status != "" {
		lines = append(lines, "status: "+remote.Status)
	}
	if remote.Failures > 0 {
		lines = append(lines, fmt.Sprintf("lost its connection %d times", remote.Failures))
	}
	return append(lines, remote.Errors...)
}
