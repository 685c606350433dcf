package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/slipway-platform/slipway/lab/kube/process"
)

// PodLink is the network card of a pod in its namespace.
const PodLink = "eth0"

// Namespaces makes network namespaces for pods. Implementations are safe for concurrent use.
type Namespaces interface {
	// NewNamespace makes a namespace with these addresses, which reaches every address of the lab and is reached from everywhere in it.
	NewNamespace(addresses []netip.Addr) (*Namespace, error)
}

// Namespace is the network namespace of a pod: loopback, and a card that is connected to the lab's link.
type Namespace struct {
	pause  *exec.Cmd // keeps the namespace while no other process is in it, as a pod's pause container does
	card   netlink.Link // the lab's end of the pod's card
	routes []netlink.Route
}

// NewNamespace implements Namespaces.
func (l *Link) NewNamespace(addresses []netip.Addr) (*Namespace, error) {
	pause := exec.Command("/bin/sleep", "infinity")
	pause.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := process.Spawn(pause); err != nil {
		return nil, fmt.Errorf("lab network: namespace: %w", err)
	}
	n := &Namespace{pause: pause}
	if err := n.connect(l, addresses); err != nil {
		return nil, fmt.Errorf("lab network: namespace: %w", errors.Join(err, n.Close()))
	}
	return n, nil
}

// Path is the file by which nsenter finds the namespace.
func (n *Namespace) Path() string { return "/proc/" + strconv.Itoa(n.pause.Process.Pid) + "/ns/net" }

// Close removes the namespace once no process is in it any more. Its addresses are gone at once.
func (n *Namespace) Close() error {
	var errs []error
	if n.card != nil {
		if err := netlink.LinkDel(n.card); err != nil && !errors.Is(err, syscall.ENODEV) {
			errs = append(errs, err)
		}
	}
	for _, r := range n.routes {
		if err := netlink.RouteDel(&r); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, err)
		}
	}
	if err := n.pause.Process.Kill(); err != nil {
		errs = append(errs, err)
	}
	_ = n.pause.Wait() // it was killed
	return errors.Join(errs...)
}

// connect connects the namespace to the link, and routes its addresses there.
func (n *Namespace) connect(l *Link, addresses []netip.Addr) error {
	pid := n.pause.Process.Pid
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "pod" + strconv.Itoa(pid), MasterIndex: l.link.Attrs().Index, Flags: net.FlagUp},
		PeerName:  PodLink, PeerNamespace: netlink.NsPid(pid),
	}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("veth: %w", err)
	}
	n.card = veth
	if err := n.configure(pid, addresses); err != nil {
		return err
	}
	for _, a := range addresses {
		route := netlink.Route{LinkIndex: l.link.Attrs().Index, Dst: host(a), Scope: netlink.SCOPE_LINK}
		if err := netlink.RouteReplace(&route); err != nil {
			return fmt.Errorf("route to %s: %w", a, err)
		}
		n.routes = append(n.routes, route)
	}
	return nil
}

// configure sets the namespace's addresses and its way out. Every address of the lab is on the link, so none needs a gateway.
func (n *Namespace) configure(pid int, addresses []netip.Addr) error {
	inside, err := netns.GetFromPid(pid)
	if err != nil {
		return err
	}
	defer inside.Close()
	handle, err := netlink.NewHandleAt(inside)
	if err != nil {
		return err
	}
	defer handle.Close()
	lo, err := handle.LinkByName("lo")
	if err != nil {
		return err
	}
	eth, err := handle.LinkByName(PodLink)
	if err != nil {
		return err
	}
	for _, link := range []netlink.Link{lo, eth} {
		if err := handle.LinkSetUp(link); err != nil {
			return fmt.Errorf("%s up: %w", link.Attrs().Name, err)
		}
	}
	for _, a := range addresses {
		address := &netlink.Addr{IPNet: host(a)}
		everything := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
		if a.Is6() {
			address.Flags = syscall.IFA_F_NODAD
			everything = &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
		}
		if err := handle.AddrAdd(eth, address); err != nil {
			return fmt.Errorf("address %s: %w", a, err)
		}
		route := &netlink.Route{LinkIndex: eth.Attrs().Index, Dst: everything, Scope: netlink.SCOPE_LINK}
		if err := handle.RouteReplace(route); err != nil {
			return fmt.Errorf("default route of %s: %w", a, err)
		}
	}
	return nil
}

// host is the network of one address.
func host(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}
