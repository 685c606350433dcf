package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// nameTTL is how long, in seconds, a name may be remembered.
const nameTTL = 60

// Names are the names that the lab's DNS server knows. Every name of a real machine is in this list, or in Other.
type Names struct {
	Hosts map[string][]netip.Addr // addresses by lower-case name without the last dot
	Other netip.Addr              // address of every other name
}

// ServeDNS answers questions for addresses on UDP port 53 of an address, until ctx ends. For anything else, such as reverse names, the
// answer is that nothing is known. TCP is not modelled: no answer is too long for UDP.
func ServeDNS(ctx context.Context, at netip.Addr, names Names, log *slog.Logger) error {
	return serveUDP(ctx, netip.AddrPortFrom(at, 53), log, names.answer)
}

// answer returns the answer to a question.
func (n Names) answer(packet []byte) ([]byte, error) {
	var asked dnsmessage.Message
	if err := asked.Unpack(packet); err != nil {
		return nil, err
	}
	if asked.Response || len(asked.Questions) == 0 {
		return nil, errors.New("no question")
	}
	q := asked.Questions[0]
	reply := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: asked.ID, Response: true, OpCode: asked.OpCode, RecursionDesired: asked.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{q},
	}
	for _, a := range n.addresses(q.Name.String()) {
		header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: nameTTL}
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: a.As4()}})
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return reply.Pack()
}

func (n Names) addresses(name string) []netip.Addr {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if known := n.Hosts[name]; known != nil {
		return known
	}
	if strings.HasSuffix(name, ".arpa") && !strings.HasSuffix(name, ".home.arpa") {
		return nil // the name of an address
	}
	return []netip.Addr{n.Other}
}

// maxPacket is larger than any question.
const maxPacket = 4096

// serveUDP answers packets in the background, until ctx ends.
func serveUDP(ctx context.Context, at netip.AddrPort, log *slog.Logger, answer func([]byte) ([]byte, error)) error {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return fmt.Errorf("lab network: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	go func() {
		packet := make([]byte, maxPacket)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(packet)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			var reply []byte
			if err == nil {
				reply, err = answer(packet[:n])
			}
			if err == nil {
				_, err = conn.WriteToUDPAddrPort(reply, from)
			}
			if err != nil {
				log.Debug("packet", "at", at, "from", from, "err", err)
			}
		}
	}()
	return nil
}
