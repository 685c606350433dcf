package cluster

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// MeshPort is the port at which a cluster's mesh API server answers its peers.
const MeshPort = 2379

// MeshDomain is the domain of the names under which the clusters of a mesh reach each other, such as infra.mesh.cilium.io.
const MeshDomain = "mesh.cilium.io"

// MeshAuthorityKey is the key of Secrets.MeshCA.
const MeshAuthorityKey = "meshCA"

// Mesh connects clusters to one Cilium cluster mesh: their pods and global Services reach each other. All clusters of a mesh have the same
// `meshCA`.
type Mesh struct {
	// Stacks of the other clusters. Each has its stack file beside this one, and lists this stack as its peer. A peer need not exist yet.
	Peers []string `json:"peers" form:"stack-name" items:"-254" example:"[apps]"`

	// Clusters are the peers, in the order of Peers. They are read from the peers' stack files, and are no key.
	Clusters []Peer `json:"-"`
}

// Peer is what a cluster must know of another cluster in its mesh.
type Peer struct {
	Stack   string     // name of the stack
	Name    string     // name of the cluster
	ID      int        // Cilium's cluster id
	Nodes   int        // number of the declared machines
	Address netip.Addr // of the mesh API server
}

// IsMember reports whether the cluster is part of a mesh.
func (m Mesh) IsMember() bool { return len(m.Peers) > 0 }

// mesh checks the section without the peers' stack files.
func (c clusterCheck) mesh() {
	for i, peer := range c.Mesh.Peers {
		if peer == c.Stack {
			c.Found(ItemPath("mesh.peers", i), "remove it", "%s is this stack", peer)
		}
	}
	if !c.Mesh.IsMember() {
		c.unused("mesh.peers", NamedSecret{MeshAuthorityKey, c.MeshCA})
		return
	}
	if c.Cilium.Routing == RoutingNative {
		// The agents add routes to nodes of their own layer-2 network only.
		c.Found("cilium.routing", "write "+string(RoutingTunnel), "%s does not reach the pods of other clusters", c.Cilium.Routing)
	}
}

// Named is another stack that a stack file names.
type Named struct {
	Path  string // the key that names it, the first of several
	Stack string
}

// Named returns the other stacks that the stack file names, each once.
func (c *Cluster) Named() []Named {
	var named []Named
	for i, peer := range c.Mesh.Peers {
		named = append(named, Named{ItemPath("mesh.peers", i), peer})
	}
	if provider := c.Storage.Provider; provider != "" && !slices.Contains(c.Mesh.Peers, provider) {
		named = append(named, Named{storageProviderPath, provider})
	}
	return named
}

// Meet compares this stack with the stacks that its file names, in the order of Named, and remembers what the program must know of them.
// A stack is nil if its file has problems, which are reported already.
func (c *Cluster) Meet(named []*Cluster, findings *Findings) {
	c.Mesh.Clusters, c.Storage.ProviderCluster = nil, ""
	for _, other := range named {
		if other == nil {
			continue
		}
		findings.Include(Compare([]*Cluster{other, c})[1]...)
		if other.Stack == c.Storage.Provider {
			c.Storage.ProviderCluster = other.Identity.Name
		}
		if slices.Contains(c.Mesh.Peers, other.Stack) {
			c.Mesh.Clusters = append(c.Mesh.Clusters, Peer{
				Stack: other.Stack, Name: other.Identity.Name, ID: other.Identity.ID, Nodes: len(other.Machines()),
				Address: other.Network.LoadBalancers.Mesh,
			})
		}
	}
}

// mesh checks what two peers must declare alike.
func (c comparison) mesh() {
	mine, theirs := slices.Index(c.own.Mesh.Peers, c.other.Stack), slices.Contains(c.other.Mesh.Peers, c.own.Stack)
	switch {
	case mine < 0 && !theirs:
		return
	case !theirs:
		c.Found(ItemPath("mesh.peers", mine), fmt.Sprintf("add %s to mesh.peers of %s", c.own.Stack, c.other.Stack),
			"%s does not list this stack as its peer", c.other.Stack)
	case mine < 0:
		c.Found("mesh.peers", fmt.Sprintf("add %s, or remove %s from mesh.peers of %s", c.other.Stack, c.own.Stack, c.other.Stack),
			"does not list %s, which lists this stack as its peer", c.other.Stack)
	}
	// The agents of both clusters send each other packets, so both sides must form them alike.
	for _, option := range []sameOption{
		{"cilium.routing", string(c.own.Cilium.Routing), string(c.other.Cilium.Routing)},
		{"cilium.encryption", string(c.own.Cilium.Encryption), string(c.other.Cilium.Encryption)},
		c.sameValue("tunnelProtocol", "vxlan"), c.samePort(), c.sameValue("clustermesh.maxConnectedClusters", "255"),
	} {
		if option.own != option.theirs {
			c.Found(option.key, "write the same in both", "%s is not that of its peer %s, which is %s", option.own, c.other.Stack, option.theirs)
		}
	}
	if (c.own.Network.IPv6 == nil) != (c.other.Network.IPv6 == nil) {
		c.Found("network.ipv6", "declare it in both, or in none", "only one of %s and %s has it", c.own.Stack, c.other.Stack)
	}
}

// sameOption is an option that peers must declare alike.
type sameOption struct{ key, own, theirs string }

// samePort returns the port of the tunnel in both clusters, which follows from the protocol if it is 0 or missing.
func (c comparison) samePort() sameOption {
	protocol, port := c.sameValue("tunnelProtocol", "vxlan"), c.sameValue("tunnelPort", "0")
	byDefault := map[string]string{"vxlan": "8472", "geneve": "6081"}[protocol.own]
	if protocol.own != protocol.theirs { // which is the problem
		return sameOption{key: port.key}
	}
	for _, one := range []*string{&port.own, &port.theirs} {
		if *one == "0" {
			*one = byDefault
		}
	}
	return port
}

// sameValue returns a value of Cilium's chart in both clusters.
func (c comparison) sameValue(path, byDefault string) sameOption {
	of := func(cluster *Cluster) string {
		if tree, err := cluster.Cilium.Values.Tree(); err == nil && ValueAt(tree, path) != nil {
			return fmt.Sprint(ValueAt(tree, path))
		}
		return byDefault
	}
	return sameOption{"cilium.values." + path, of(c.own), of(c.other)}
}

// MeshAuthority returns the mesh's CA. It is empty without a mesh, and while the secret is encrypted.
func (c *Cluster) MeshAuthority() syntax.KeyPair {
	authority, _ := syntax.MeshAuthority(c.MeshCA.Reveal()) // a fault is reported already
	return authority
}
