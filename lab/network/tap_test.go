package network

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// card is a VM's card at the other end of a tap: it sends and receives whole Ethernet frames.
type card struct{ file *os.File }

// open opens a tap as QEMU does.
func open(t *Tap) (*card, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(t.Name())
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, err
	}
	return &card{os.NewFile(uintptr(fd), "tap")}, nil
}

// asksFor sends an ARP request for an IPv4 address.
func (c *card) asksFor(own, wanted netip.Addr) error {
	frame := append(bytes.Repeat([]byte{0xff}, 6), cardMAC...)
	frame = append(frame, 0x08, 0x06, 0, 1, 0x08, 0x00, 6, 4, 0, 1)
	frame = append(append(frame, cardMAC...), own.AsSlice()...)
	frame = append(append(frame, make([]byte, 6)...), wanted.AsSlice()...)
	_, err := c.file.Write(frame)
	return err
}

// isAnswered reads frames until an ARP reply for the address.
func (c *card) isAnswered(wanted netip.Addr) error {
	if err := c.file.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		return err
	}
	frame := make([]byte, 2048)
	for {
		n, err := c.file.Read(frame)
		if err != nil {
			return fmt.Errorf("no answer for %s: %w", wanted, err)
		}
		isReply := n >= 42 && bytes.Equal(frame[12:14], []byte{0x08, 0x06}) && frame[21] == 2
		if isReply && bytes.Equal(frame[28:32], wanted.AsSlice()) {
			return nil
		}
	}
}

// reaches asks until there is an answer: the bridge drops frames of a port that was opened a moment ago.
func (c *card) reaches(own, wanted netip.Addr) error {
	for deadline := time.Now().Add(20 * time.Second); ; {
		err := errors.Join(c.asksFor(own, wanted), c.isAnswered(wanted))
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

var cardMAC = []byte{0x02, 0, 0, 0, 0, 1}

// machines is the part of the test with a VM's card: the VM reaches an address of the link, and a removed tap is gone.
func machines(l *Link) error {
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return nil // a machine without it runs no VM
	}
	gateway := netip.MustParsePrefix("10.25.12.1/24")
	if err := l.Add(gateway); err != nil {
		return err
	}
	tap, err := l.NewTap()
	if err != nil {
		return err
	}
	c, err := open(tap)
	if err != nil {
		return err
	}
	defer c.file.Close()
	err = c.reaches(netip.MustParseAddr("10.25.12.11"), gateway.Addr())
	if err = errors.Join(err, tap.Close(), tap.Close()); err != nil {
		return err
	}
	if _, err := netlink.LinkByName(tap.Name()); err == nil {
		return fmt.Errorf("%s exists after it was closed", tap.Name())
	}
	return nil
}
