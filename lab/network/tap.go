package network

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/vishvananda/netlink"
)

// Taps makes the lab's ends of the network cards of VMs. Implementations are safe for concurrent use.
type Taps interface {
	// NewTap makes a tap device that is a port of the lab's link. A program that opens it by its name is the network card at the other end.
	NewTap() (*Tap, error)
}

// Tap is a port of the lab's link.
type Tap struct{ link *netlink.Tuntap }

// taps counts the devices, because all labs of a process may share a network namespace.
var taps atomic.Int64

// NewTap implements Taps. It needs /dev/net/tun.
func (l *Link) NewTap() (*Tap, error) {
	tap := &netlink.Tuntap{
		LinkAttrs: netlink.LinkAttrs{Name: "tap" + strconv.FormatInt(taps.Add(1), 10), MasterIndex: l.link.Attrs().Index},
		Mode:      netlink.TUNTAP_MODE_TAP,
	}
	if err := netlink.LinkAdd(tap); err != nil {
		return nil, fmt.Errorf("lab network: %s: %w; a VM needs /dev/net/tun, readable and writable", tap.Name, err)
	}
	if err := netlink.LinkSetUp(tap); err != nil {
		return nil, errors.Join(fmt.Errorf("lab network: %s up: %w", tap.Name, err), netlink.LinkDel(tap))
	}
	return &Tap{link: tap}, nil
}

// Name is the name of the device.
func (t *Tap) Name() string { return t.link.Name }

// Close removes the device.
func (t *Tap) Close() error {
	if err := netlink.LinkDel(t.link); err != nil && !errors.Is(err, syscall.ENODEV) {
		return fmt.Errorf("lab network: %s: %w", t.Name(), err)
	}
	return nil
}
