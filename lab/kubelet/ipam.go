package kubelet

import "net/netip"

// firstPod is the offset of the first pod address in a node's range. The router and the health endpoint have the first
// addresses.
const firstPod = 10

// ipam assigns the addresses of a node's pod range in turn, so that a free address is not reused at once.
type ipam struct {
	prefix netip.Prefix
	next   netip.Addr
	used   map[netip.Addr]bool
}

func newIPAM(p netip.Prefix) *ipam {
	m := &ipam{prefix: p, used: map[netip.Addr]bool{}}
	m.rewind()
	return m
}

func (m *ipam) rewind() {
	m.next = m.prefix.Masked().Addr()
	for range firstPod {
		m.next = m.next.Next()
	}
}

// take returns a free address; false if there is none.
func (m *ipam) take() (netip.Addr, bool) {
	for wrapped := false; ; {
		a := m.next
		m.next = a.Next()
		// The last address of an IPv4 range is its broadcast address.
		if !m.prefix.Contains(a.Next()) {
			if wrapped {
				return netip.Addr{}, false
			}
			wrapped = true
			m.rewind()
			continue
		}
		if !m.used[a] {
			m.used[a] = true
			return a, true
		}
	}
}

func (m *ipam) free(a netip.Addr) { delete(m.used, a) }
