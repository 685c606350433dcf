// Package network gives the lab's machines their addresses inside the lab's network namespace.
package network

import "net/netip"

// Addresses adds and removes addresses of the lab's one link. Implementations are safe for concurrent use.
type Addresses interface {
	// Add makes the machine answer on an address; adding one that is there already is no error.
	Add(netip.Prefix) error
	// Remove takes it away; connections to it hang or fail, as with a machine that was switched off.
	Remove(netip.Prefix) error
}
