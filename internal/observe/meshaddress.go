package observe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/slipway-platform/slipway/internal/health/mesh"
)

// meshTimeout is how long an address may take to answer, and as long again for the TLS handshake. A lost first packet is sent again after
// one second.
const meshTimeout = 3 * time.Second

// meshDialer connects to mesh API servers.
type meshDialer struct {
	spec *mesh.Spec
	ca   *x509.CertPool // nil if no certificate is judged
}

func newMeshDialer(spec *mesh.Spec) meshDialer {
	d := meshDialer{spec: spec}
	if spec.CA != "" {
		d.ca = x509.NewCertPool()
		d.ca.AppendCertsFromPEM([]byte(spec.CA))
	}
	return d
}

// try connects to an address, and reads the certificate of the server, which must be that of the cluster with the name. The server asks for
// a client's certificate. There is none, so that the connection cannot be used for anything.
func (d meshDialer) try(ctx context.Context, name string, address netip.Addr) mesh.Answer {
	dialing, done := context.WithTimeout(ctx, meshTimeout)
	defer done()
	conn, err := new(net.Dialer).DialContext(dialing, "tcp", net.JoinHostPort(address.String(), strconv.Itoa(d.spec.Port)))
	if err != nil {
		return mesh.Answer{Asked: true, Err: connectReason(err)}
	}
	defer conn.Close()
	answer := mesh.Answer{Asked: true}
	if d.ca == nil {
		return answer
	}
	shaking, done := context.WithTimeout(ctx, meshTimeout)
	defer done()
	verified := false
	err = tls.Client(conn, &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: d.ca, ServerName: name + "." + d.spec.Domain,
		VerifyConnection: func(state tls.ConnectionState) error { // after the certificate was found to be valid
			end := state.PeerCertificates[0].NotAfter
			verified, answer.Left, answer.Expires = true, time.Until(end), end.Format(time.DateOnly)
			return nil
		},
	}).HandshakeContext(shaking)
	// With TLS 1.2 a server refuses the missing certificate in the handshake. Its own is verified by then.
	if err != nil && !verified {
		answer.TLS = handshakeReason(err)
	}
	return answer
}

func connectReason(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return mesh.Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return mesh.NoRoute
	case errors.As(err, &timeout) && timeout.Timeout():
		return mesh.Silent
	}
	return err.Error()
}

func handshakeReason(err error) string {
	var (
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		hostname  x509.HostnameError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return mesh.OtherCA
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return mesh.Expired
	case errors.As(err, &hostname):
		return mesh.OtherName
	case errors.As(err, &record):
		return mesh.NoTLS
	}
	return "TLS: the handshake fails: " + err.Error()
}
