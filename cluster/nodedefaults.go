package cluster

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
)

// maxLabel is the length of the longest name of a machine: the form label.
const maxLabel = 63

// deriveNodes sets what the file leaves out of the machines: the machines themselves, if their pool has firstAddress, and the names, VM ids
// and MAC addresses.
func (c *Cluster) deriveNodes(findings *Findings) {
	for i := range c.NodePools {
		pool, path := &c.NodePools[i], ItemPath("nodePools", i)
		pool.list(path, findings)
		for j := range pool.Nodes {
			pool.Nodes[j].derive(c.Identity.Name, pool.Name, j+1)
			if name := pool.Nodes[j].Name; len(name) > maxLabel {
				findings.Found(path+".name", "write a shorter one", "%s makes the name %s, which has more than %d characters",
					pool.Name, name, maxLabel)
				break
			}
		}
	}
}

// list makes the list of a pool that has firstAddress in its place.
func (p *NodePool) list(path string, findings *Findings) {
	first, first6, count := p.FirstAddress, p.FirstAddress6, p.Count
	p.FirstAddress, p.FirstAddress6, p.Count = netip.Addr{}, netip.Addr{}, nil // the list says it all
	given := map[string]bool{"firstAddress": first.IsValid(), "firstAddress6": first6.IsValid(), "count": count != nil}
	for _, key := range sorted(given) {
		switch {
		case findings.Unusable(path+"."+key) || findings.Unusable(path+".nodes"):
			return
		case given[key] && p.Nodes != nil:
			findings.Found(path+"."+key, "remove it, or list all machines in nodes", "is for a pool without nodes")
		case given[key] && !first.IsValid():
			findings.Found(path+".firstAddress", "add it, or list the machines in nodes", "is missing")
			return
		}
	}
	switch {
	case p.Nodes != nil:
		return
	case !first.IsValid():
		findings.Found(path+".nodes", "add it, or firstAddress", "is missing")
		return
	}
	number := 1
	if count != nil {
		number = *count
	}
	for range number {
		p.Nodes = append(p.Nodes, Node{Address: first, Address6: first6, Generation: 1, counted: true})
		first, first6 = first.Next(), next(first6)
	}
}

// next returns the address after another one; none after none.
func next(address netip.Addr) netip.Addr {
	if !address.IsValid() {
		return address
	}
	return address.Next()
}

// derive sets the name, the VM id and the MAC address of a machine without them. position is that in the pool, from 1.
func (n *Node) derive(cluster, pool string, position int) {
	if n.Name == "" && cluster != "" && pool != "" {
		n.Name = fmt.Sprintf("%s-%s-%d", cluster, pool, position)
	}
	if n.VMID == 0 && n.Address.Is4() {
		n.VMID = vmIDOf(n.Address)
	}
	if n.MAC == "" && n.Name != "" && cluster != "" {
		n.MAC = macOf(cluster, n.Name)
	}
}

// vmIDOf returns the VM id of an address: 100000, and three digits for each of its last two numbers. 10.25.11.21 has 111021. A change of
// the rule would replace machines.
func vmIDOf(address netip.Addr) int {
	bytes := address.As4()
	return 100000 + 1000*int(bytes[2]) + int(bytes[3])
}

// macOf returns the MAC address of a machine: Proxmox's prefix, and the first three bytes of the SHA-256 of CLUSTER/MACHINE. A change of
// the rule would change the network card of running machines.
func macOf(cluster, machine string) MAC {
	sum := sha256.Sum256([]byte(cluster + "/" + machine))
	return MAC(fmt.Sprintf("BC:24:11:%02X:%02X:%02X", sum[0], sum[1], sum[2]))
}

// pathOf returns the path of a machine's key. The addresses of a pool without a list are those of its first machine and the next ones.
func (n Node) pathOf(pool string, index int, key string) string {
	switch {
	case n.counted && key == "address":
		return pool + ".firstAddress"
	case n.counted && key == "address6":
		return pool + ".firstAddress6"
	}
	return KeyPath(ItemPath(pool+".nodes", index), key)
}
