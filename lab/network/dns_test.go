package network

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

// answersOf asks a DNS server's logic, and returns the addresses.
func answersOf(t *testing.T, names Names, name string, kind dnsmessage.Type) []string {
	t.Helper()
	question := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := question.Pack()
	require.NoError(t, err)
	packet, err := names.answer(packed)
	require.NoError(t, err)
	var reply dnsmessage.Message
	require.NoError(t, reply.Unpack(packet))
	require.True(t, reply.Response && reply.RecursionAvailable && reply.ID == 7 && reply.RCode == dnsmessage.RCodeSuccess)
	require.Equal(t, question.Questions, reply.Questions)
	out := []string{}
	for _, a := range reply.Answers {
		switch body := a.Body.(type) {
		case *dnsmessage.AResource:
			out = append(out, netip.AddrFrom4(body.A).String())
		case *dnsmessage.AAAAResource:
			out = append(out, netip.AddrFrom16(body.AAAA).String())
		}
	}
	return out
}

func TestDNS_KnowsTheLabsNamesAndHasOneAddressForAllOthers(t *testing.T) {
	names := Names{
		Hosts: map[string][]netip.Addr{"git.home.arpa": {netip.MustParseAddr("198.18.0.3"), netip.MustParseAddr("fd00::3")}},
		Other: netip.MustParseAddr("198.18.0.9"),
	}
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		want []string
	}{
		{"git.home.arpa.", dnsmessage.TypeA, []string{"198.18.0.3"}},
		{"GIT.home.arpa.", dnsmessage.TypeAAAA, []string{"fd00::3"}},
		{"ghcr.io.", dnsmessage.TypeA, []string{"198.18.0.9"}},
		{"other.home.arpa.", dnsmessage.TypeA, []string{"198.18.0.9"}},
		{"ghcr.io.", dnsmessage.TypeAAAA, []string{}},
		{"ghcr.io.", dnsmessage.TypeTXT, []string{}},
		{"1.11.25.10.in-addr.arpa.", dnsmessage.TypePTR, []string{}},
		{"1.11.25.10.in-addr.arpa.", dnsmessage.TypeA, []string{}},
	} {
		require.Equal(t, c.want, answersOf(t, names, c.name, c.kind), "%s %s", c.name, c.kind)
	}
	_, err := names.answer([]byte("no DNS"))
	require.Error(t, err)
}

func TestTime_IsThisMachinesTime(t *testing.T) {
	request := make([]byte, sntpPacket)
	request[0] = 4<<3 | 3 // version 4, client
	copy(request[40:], "original")
	now := time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC)
	reply, err := tellTime(request, now)
	require.NoError(t, err)
	require.Equal(t, byte(4<<3|4), reply[0])
	require.Equal(t, "original", string(reply[24:32]))
	require.Equal(t, now.Unix(), int64(binary.BigEndian.Uint32(reply[40:]))-sntpEpoch)
	require.Equal(t, uint32(1<<31), binary.BigEndian.Uint32(reply[44:]))
	_, err = tellTime(request[:8], now)
	require.Error(t, err)
}

// TestUDP_ServesUntilItsContextEnds uses a port that is free.
func TestUDP_ServesUntilItsContextEnds(t *testing.T) {
	probe, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	at := probe.LocalAddr().(*net.UDPAddr).AddrPort()
	require.NoError(t, probe.Close())
	ctx, cancel := context.WithCancel(t.Context())
	echo := func(b []byte) ([]byte, error) { return b, nil }
	require.NoError(t, serveUDP(ctx, at, slog.New(slog.DiscardHandler), echo))
	conn, err := net.Dial("udp", at.String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("hello"))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	got := make([]byte, 16)
	n, err := conn.Read(got)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got[:n]))
	cancel()
	require.Eventually(t, func() bool {
		again, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		return err == nil && again.Close() == nil
	}, time.Minute, 5*time.Millisecond)
}
