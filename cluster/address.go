package cluster

import "net/netip"

// lastAddress returns the last address of a network. In an IPv4 network it is the broadcast address, which no machine can have.
func lastAddress(network netip.Prefix) netip.Addr {
	last := network.Masked().Addr().AsSlice()
	for bit := network.Bits(); bit < len(last)*8; bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	address, _ := netip.AddrFromSlice(last)
	return address
}

// between reports whether the address is in the range from first to last, both included.
func between(address, first, last netip.Addr) bool {
	return address.BitLen() == first.BitLen() && first.Compare(address) <= 0 && address.Compare(last) <= 0
}

// claims are values that must be unique: kind and value → path that has it.
type claims map[string]string

// take adds a problem if another path has the same value of a kind, such as "VM id".
func (c claims) take(kind, path, value string, findings *Findings) {
	if value == "" {
		return
	}
	if owner, taken := c[kind+" "+value]; taken {
		findings.Found(path, "pick another", "%s is taken by %s", value, owner)
		return
	}
	c[kind+" "+value] = path
}
