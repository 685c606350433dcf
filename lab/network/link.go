package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
)

// LinkName is the bridge that has the addresses of all simulated machines.
const LinkName = "slipway0"

// linkMAC is the bridge's own, of those that are administered locally. Without one, the kernel gives the bridge the lowest MAC of its
// ports, so that a new pod's card may change it, and connections of the others hang until they ask for it again.
var linkMAC = net.HardwareAddr{0x02, 0x51, 0x17, 0x00, 0x00, 0x01}

// localWithin is how long the kernel may take to make an added address usable.
const localWithin = 10 * time.Second

// Link is the only link of the lab's network namespace, a bridge whose ports are the cards of pods and VMs. Loopback addresses cannot be
// node addresses, because kube-apiserver would refuse its own Endpoints.
type Link struct{ link netlink.Link }

// NewLink creates the bridge, and activates it and the loopback device. It must run inside the lab's namespace.
func NewLink() (*Link, error) {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("lab network: lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return nil, fmt.Errorf("lab network: lo up: %w", err)
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: LinkName, HardwareAddr: linkMAC}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return nil, fmt.Errorf("lab network: bridge %s: %w", LinkName, err)
	}
	// Without this, the kernel removes all addresses of a network with the first one.
	if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+LinkName+"/promote_secondaries", []byte("1"), 0); err != nil {
		return nil, fmt.Errorf("lab network: %s: %w", LinkName, err)
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return nil, fmt.Errorf("lab network: %s up: %w", LinkName, err)
	}
	return &Link{link: bridge}, nil
}

// Add implements Addresses.
func (l *Link) Add(p netip.Prefix) error {
	err := netlink.AddrAdd(l.link, l.address(p))
	switch {
	case err == nil, errors.Is(err, syscall.EEXIST):
		return awaitLocal(p.Addr())
	case p.Addr().Is6() && withoutIPv6(err):
		return fmt.Errorf("lab network: add %s: %w; this machine's kernel has no IPv6 (ipv6.disable=1, or the sysctl net.ipv6.conf.default.disable_ipv6): "+
			"switch it on, or rehearse without network.ipv6", p, err)
	}
	return fmt.Errorf("lab network: add %s: %w", p, err)
}

// awaitLocal waits until the kernel routes an address to this host. For IPv6 the kernel adds that route in the background,
// after the call that adds the address; a connection before that fails with "no route to host".
func awaitLocal(a netip.Addr) error {
	deadline := time.Now().Add(localWithin)
	for {
		routes, err := netlink.RouteGet(a.AsSlice())
		if err == nil && len(routes) > 0 && routes[0].Type == syscall.RTN_LOCAL {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("lab network: add %s: not local after %s", a, localWithin), err)
		}
		time.Sleep(time.Millisecond)
	}
}

// withoutIPv6 tells whether the kernel refused an IPv6 address because IPv6 is switched off.
func withoutIPv6(err error) bool {
	for _, no := range []syscall.Errno{syscall.EACCES, syscall.EAFNOSUPPORT, syscall.EOPNOTSUPP, syscall.EPERM} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// Remove implements Addresses.
func (l *Link) Remove(p netip.Prefix) error {
	if err := netlink.AddrDel(l.link, l.address(p)); err != nil && !errors.Is(err, syscall.EADDRNOTAVAIL) {
		return fmt.Errorf("lab network: remove %s: %w", p, err)
	}
	return nil
}

// address has no duplicate address detection, so that an IPv6 address is usable at once.
func (l *Link) address(p netip.Prefix) *netlink.Addr {
	a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if p.Addr().Is6() {
		a.Flags = syscall.IFA_F_NODAD
	}
	return a
}
