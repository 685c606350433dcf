package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// inside is set when this test binary runs in its own network namespace.
const inside = "SLIPWAY_LAB_NETWORK_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" {
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestLink_AnswersOnAddressesOfBothFamiliesWhileTheyAreThere runs serve in its own namespaces.
func TestLink_AnswersOnAddressesOfBothFamiliesWhileTheyAreThere(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self)
	c.Env = append(os.Environ(), inside+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Skipf("no user and network namespaces on this machine: %v", err)
	}
	require.NoError(t, err, "%s", out)
}

// serve is the part of the test that needs a link: it connects to an address directly after the address was added, and
// cannot after the address was removed.
func serve() error {
	l, err := NewLink()
	if err != nil {
		return err
	}
	for _, p := range []netip.Prefix{
		netip.MustParsePrefix("10.25.11.11/24"), netip.MustParsePrefix("10.25.11.12/24"), netip.MustParsePrefix("10.25.11.10/32"),
		netip.MustParsePrefix("fd00:10:25:11::11/64"), netip.MustParsePrefix("fd00:10:25:11::12/64"),
		netip.MustParsePrefix("fd00:10:25:11::10/128"),
	} {
		if err := l.Add(p); err != nil {
			return err
		}
		if err := l.Add(p); err != nil {
			return fmt.Errorf("twice: %w", err)
		}
		if err := reach(p.Addr()); err != nil {
			return err
		}
	}
	for _, p := range []netip.Prefix{netip.MustParsePrefix("10.25.11.11/24"), netip.MustParsePrefix("fd00:10:25:11::11/64")} {
		if err := l.Remove(p); err != nil {
			return err
		}
		if err := l.Remove(p); err != nil {
			return fmt.Errorf("twice: %w", err)
		}
		if reach(p.Addr()) == nil {
			return fmt.Errorf("%s answers after its removal", p)
		}
	}
	// The other addresses stay, with their networks.
	for _, a := range []string{"10.25.11.12", "10.25.11.10", "fd00:10:25:11::12", "fd00:10:25:11::10"} {
		if err := reach(netip.MustParseAddr(a)); err != nil {
			return err
		}
	}
	return errors.Join(pods(l), machines(l))
}

// pods connects to the namespaces of pods, between them, and from them to an address of the link.
func pods(l *Link) error {
	one, other := netip.MustParseAddr("10.244.1.10"), netip.MustParseAddr("10.248.0.10")
	six := netip.MustParseAddr("fd00:10:244:1::10")
	a, err := l.NewNamespace([]netip.Addr{one, six})
	if err != nil {
		return err
	}
	b, err := l.NewNamespace([]netip.Addr{other})
	if err != nil {
		return err
	}
	here, err := netns.Get()
	if err != nil {
		return err
	}
	for _, c := range []struct {
		at       netip.Addr
		listens  string
		connects string
	}{
		{one, a.Path(), ""}, {six, a.Path(), ""}, {other, b.Path(), ""}, {other, b.Path(), a.Path()}, {one, a.Path(), b.Path()},
		{netip.MustParseAddr("10.25.11.12"), "", a.Path()}, {netip.MustParseAddr("fd00:10:25:11::12"), "", a.Path()},
		{netip.MustParseAddr("127.0.0.1"), a.Path(), a.Path()},
	} {
		if err := reachFrom(here, c.at, c.listens, c.connects); err != nil {
			return fmt.Errorf("%s from %q: %w", c.at, c.connects, err)
		}
	}
	if err := a.Close(); err != nil {
		return err
	}
	if _, err := netlink.LinkByName("pod" + filepath.Base(filepath.Dir(filepath.Dir(a.Path())))); err == nil {
		return errors.New("a namespace that was closed has its card")
	}
	return b.Close()
}

// reachFrom listens on an address in one namespace, and connects to it from another; "" is this one.
func reachFrom(here netns.NsHandle, at netip.Addr, listens, connects string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	enter := func(path string) error {
		if path == "" {
			return netns.Set(here)
		}
		there, err := netns.GetFromPath(path)
		if err != nil {
			return err
		}
		defer there.Close()
		return netns.Set(there)
	}
	defer func() { _ = netns.Set(here) }()
	if err := enter(listens); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(at.String(), "0"))
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := enter(connects); err != nil {
		return err
	}
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	return conn.Close()
}

// reach listens on an address and connects to it.
func reach(a netip.Addr) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(a.String(), "0"))
	if err != nil {
		return err
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	return conn.Close()
}

func TestLink_ReportsAKernelWithoutIPv6(t *testing.T) {
	require.True(t, withoutIPv6(fmt.Errorf("x: %w", syscall.EAFNOSUPPORT)))
	require.False(t, withoutIPv6(syscall.ENODEV))
}
