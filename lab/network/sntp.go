package network

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/netip"
	"time"
)

const (
	sntpPacket = 48
	sntpEpoch  = 2208988800 // seconds from 1900, from which SNTP counts, to 1970
)

// ServeTime tells this machine's time on UDP port 123 of an address by SNTP, until ctx ends.
func ServeTime(ctx context.Context, at netip.Addr, log *slog.Logger) error {
	return serveUDP(ctx, netip.AddrPortFrom(at, 123), log, func(request []byte) ([]byte, error) { return tellTime(request, time.Now()) })
}

// tellTime returns the answer to a client (RFC 4330): that of a server of stratum 1 with a clock of its own.
func tellTime(request []byte, now time.Time) ([]byte, error) {
	if len(request) < sntpPacket || request[0]&7 != 3 {
		return nil, errors.New("no request of an SNTP client")
	}
	reply := make([]byte, sntpPacket)
	reply[0] = request[0]&0x38 | 4 // the client's version, server
	reply[1], reply[2], reply[3] = 1, request[2], 0xec
	copy(reply[12:], "LOCL")
	for _, at := range []int{16, 32, 40} { // last set, received, sent
		binary.BigEndian.PutUint64(reply[at:], sntpTime(now))
	}
	copy(reply[24:32], request[40:48])
	return reply, nil
}

// sntpTime is a time in SNTP's form: seconds and their fraction, 32 bits each.
func sntpTime(t time.Time) uint64 {
	return uint64(t.Unix()+sntpEpoch)<<32 | uint64(t.Nanosecond())<<32/uint64(time.Second)
}
