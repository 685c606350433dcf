package cluster

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/slipway-platform/slipway/internal/syntax"
)

// MeshPort is the port at which a cluster's mesh API server answers its peers.
const MeshPort = 2379

// MeshDomain is the domain of the names under which the clusters of a mesh reach each other, such as infra.mesh.cilium.io.
const MeshDomain = "mesh.cilium.io"

// MeshAuthorityKey is the key of Secrets.MeshCA.
const MeshAuthorityKey = "meshCA"

// Mesh connects the cluster with others to one Cilium cluster mesh: pods and global Services of one reach those of the others. All
// clusters of a mesh have the same `meshCA`.
type Mesh struct {
	// Stacks of the other clusters. Each has its stack file beside this one, and lists this stack as its peer. A peer need not exist yet.
	Peers []string `json:"peers" form:"stack-name" items:"-254" example:"[apps]"`

	// Clusters are the peers, in the order of Peers. They are read from the peers' stack files, and are no key.
	Clusters []Peer `json:"-"`
}

// Peer is what a cluster must know of another one in its mesh.
type Peer struct {
	Stack   string     // name of the stack
	Name    string     // name of the cluster
	ID      int        // Cilium's cluster id
	Nodes   int        // number of the declared machines
	Address netip.Addr // of the mesh API server
}

// IsMember reports whether the cluster is part of a mesh.
func (m Mesh) IsMember() bool { return len(m.Peers) > 0 }

// peerPath is the path of a peer.
func peerPath(i int) string { return fmt.Sprintf("mesh.peers[%d]", i) }

// mesh checks the section without the peers' stack files.
func (c *checker) mesh() {
	for i, peer := range c.Mesh.Peers {
		switch {
		case peer == c.Stack:
			c.Found(peerPath(i), "remove it", "%s is this stack", peer)
		case slices.Index(c.Mesh.Peers, peer) < i:
			c.Found(peerPath(i), "keep one", "%s is listed twice", peer)
		}
	}
	if !c.Mesh.IsMember() {
		c.unused("mesh.peers", []secretKey{{MeshAuthorityKey, c.MeshCA}})
		return
	}
	if c.Cilium.Routing == RoutingNative {
		// The agents add routes to nodes of their own layer-2 network only.
		c.Found("cilium.routing", "write "+string(RoutingTunnel), "%s does not reach the pods of other clusters", c.Cilium.Routing)
	}
}

// Meet checks the peers' clusters, which are in the order of Mesh.Peers, against this one, and remembers them. A peer is nil if its
// stack file has problems, which are reported already.
func (c *Cluster) Meet(peers []*Cluster, findings *Findings) {
	for i, peer := range peers {
		if peer == nil {
			continue
		}
		c.meet(peerPath(i), peer, findings)
		c.Mesh.Clusters = append(c.Mesh.Clusters, Peer{
			Stack: peer.Stack, Name: peer.Identity.Name, ID: peer.Identity.ID, Nodes: len(peer.Machines()),
			Address: peer.Network.LoadBalancers.Mesh,
		})
	}
}

func (c *Cluster) meet(path string, peer *Cluster, findings *Findings) {
	if !slices.Contains(peer.Mesh.Peers, c.Stack) {
		findings.Found(path, fmt.Sprintf("add %s to mesh.peers of %s", c.Stack, peer.Stack), "%s does not list this stack as its peer", peer.Stack)
	}
	for _, conflict := range Compare([]*Cluster{peer, c})[1] {
		findings.Include(conflict)
	}
	// The agents of both clusters send each other packets, so both sides must form them alike.
	for _, option := range []struct{ key, own, theirs string }{
		{"cilium.routing", string(c.Cilium.Routing), string(peer.Cilium.Routing)},
		{"cilium.encryption", string(c.Cilium.Encryption), string(peer.Cilium.Encryption)},
	} {
		if option.own != option.theirs {
			findings.Found(option.key, "write the same in both", "%s is not that of its peer %s, which is %s", option.own, peer.Stack, option.theirs)
		}
	}
	if (c.Network.IPv6 == nil) != (peer.Network.IPv6 == nil) {
		findings.Found("network.ipv6", "declare it in both, or in none", "only one of %s and %s has it", c.Stack, peer.Stack)
	}
}

// MeshAuthority returns the mesh's CA. It is empty without a mesh, and while the secret is encrypted.
func (c *Cluster) MeshAuthority() syntax.Authority {
	authority, _ := syntax.MeshAuthority(c.MeshCA.Reveal()) // a fault is reported already
	return authority
}
