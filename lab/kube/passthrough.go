package kube

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// passthrough forwards TCP connections from one address of a control plane to the API server. It does not terminate
// TLS.
type passthrough struct {
	listen string
	target func() (netip.AddrPort, bool) // where the next connection goes; false: nowhere
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]struct{}
	ended    bool
}

func newPassthrough(addr netip.Addr, port uint16, target func() (netip.AddrPort, bool)) (*passthrough, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &passthrough{listen: netip.AddrPortFrom(addr, port).String(), target: target, cancel: cancel, conns: map[net.Conn]struct{}{}}
	if err := p.open(ctx); err != nil {
		cancel()
		return nil, err
	}
	return p, nil
}

// open starts to listen, unless it listens already or has been stopped.
func (p *passthrough) open(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.ended {
		return nil
	}
	l, err := net.Listen("tcp", p.listen)
	if err != nil {
		return fmt.Errorf("API server address: %w", err)
	}
	p.listener = l
	p.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.done.Go(func() { p.forward(ctx, c) })
		}
	})
	return nil
}

// shut stops listening and closes the open connections.
func (p *passthrough) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for c := range p.conns {
		_ = c.Close()
	}
}

// stop ends the passthrough and waits until its connections are closed.
func (p *passthrough) stop() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.cancel()
	p.shut()
	p.done.Wait()
}

func (p *passthrough) forward(ctx context.Context, in net.Conn) {
	defer in.Close()
	target, ok := p.target()
	if !ok {
		return
	}
	out, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", target.String())
	if err != nil {
		return // the API server is starting or stopped; the client sees a closed connection, as from a proxy
	}
	defer out.Close()
	if !p.track(in, out) {
		return
	}
	defer p.untrack(in, out)
	var both sync.WaitGroup
	pipe := func(dst, src net.Conn) {
		_, _ = io.Copy(dst, src)
		if t, ok := dst.(*net.TCPConn); ok {
			_ = t.CloseWrite()
		}
	}
	both.Go(func() { pipe(out, in) })
	both.Go(func() { pipe(in, out) })
	both.Wait()
}

func (p *passthrough) track(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return false
	}
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
	return true
}

func (p *passthrough) untrack(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}
