package config

import (
	"encoding/binary"
	"net/netip"
)

// networkAddress is the first address of a network, which no machine can have: it is the network itself in IPv4, and any
// router of it in IPv6.
func networkAddress(network netip.Prefix) netip.Addr { return network.Masked().Addr() }

// broadcastAddress is the last address of an IPv4 network, which no machine can have.
func broadcastAddress(network netip.Prefix) netip.Addr {
	first := network.Masked().Addr().As4()
	var last [4]byte
	binary.BigEndian.PutUint32(last[:], binary.BigEndian.Uint32(first[:])|^uint32(0)>>network.Bits())
	return netip.AddrFrom4(last)
}

// isUnicast reports whether a host can have the address.
func isUnicast(address netip.Addr) bool {
	return !address.IsUnspecified() && !address.IsLoopback() && !address.IsMulticast() && !address.IsLinkLocalUnicast() &&
		address != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// between reports whether the address is one of first to last, both included.
func between(address, first, last netip.Addr) bool {
	return first.Compare(address) <= 0 && address.Compare(last) <= 0
}
