// Package network adds the addresses of the lab's machines inside the lab's network namespace.
package network

import "net/netip"

// Addresses adds and removes addresses of the lab's link. Implementations are safe for concurrent use.
type Addresses interface {
	// Add adds an address, so that the machine can listen on it. Adding an existing address is not an error.
	Add(netip.Prefix) error
	// Remove removes an address. Connections to it hang or fail, as with a machine that was switched off.
	Remove(netip.Prefix) error
}
