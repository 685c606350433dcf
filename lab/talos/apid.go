package talos

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/slipway-platform/slipway/lab/talos/apid"
)

// serveAPI opens the node's API on its addresses. New connections get the identity that the node has then; open ones stay.
func (b *boot) serveAPI(addresses []netip.Addr) error {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			b.site.mu.Lock()
			defer b.site.mu.Unlock()
			return b.identity.TLS, nil
		}}
	listeners, err := b.listen(addresses)
	if err != nil {
		return err
	}
	api, socket := apid.New(tlsConfig, b.backend), bufconn.Listen(1<<20)
	b.site.mu.Lock()
	b.api, b.apiSocket = api, socket
	b.site.mu.Unlock()
	b.wg.Go(func() { _ = api.ServeLocal(socket) })
	for _, l := range listeners {
		b.wg.Go(func() { _ = api.Serve(l) })
	}
	b.onEnd(api.Stop)
	return nil
}

// listen opens the API's port on all addresses, or on none.
func (b *boot) listen(addresses []netip.Addr) ([]net.Listener, error) {
	var out []net.Listener
	for _, a := range addresses {
		l, err := b.site.cfg.Listen(a)
		if err != nil {
			for _, open := range out {
				_ = open.Close()
			}
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// dialAPI connects to the node's own API, once apid runs.
func (b *boot) dialAPI(ctx context.Context) (net.Conn, error) {
	b.site.mu.Lock()
	socket := b.apiSocket
	b.site.mu.Unlock()
	return socket.DialContext(ctx)
}

// onEnd runs f when the boot ends. teardown waits for it.
func (b *boot) onEnd(f func()) {
	b.wg.Go(func() {
		<-b.ctx.Done()
		f()
	})
}

// backend returns the connection to machined of a target: this node if it is empty, otherwise a node by address or name.
func (b *boot) backend(target string) (*grpc.ClientConn, error) {
	s := b.site
	s.mu.Lock()
	own, cluster, worker := b.machined, b.cluster, b.config != nil && !b.config.Machine().Type().IsControlPlane()
	local := target == "" || target == b.hostname
	if addr, err := netip.ParseAddr(target); err == nil {
		local = b.hasAddress(addr)
	}
	s.mu.Unlock()
	if local {
		if own == nil {
			return nil, status.Error(codes.Unavailable, "machined is not running")
		}
		return own, nil
	}
	if worker {
		return nil, status.Error(codes.PermissionDenied, "no request forwarding")
	}
	other := s.byTarget(target, cluster)
	if other == nil {
		return nil, status.Errorf(codes.Unavailable,
			"connection error: desc = \"transport: Error while dialing: dial tcp %s: connect: no route to host\"", net.JoinHostPort(target, "50000"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other.machined == nil || !b.identity.Trusts(other.identity) || !other.identity.Trusts(b.identity) {
		return nil, status.Error(codes.Unavailable,
			"connection error: desc = \"transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority\"")
	}
	return other.machined, nil
}
