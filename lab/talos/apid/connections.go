package apid

import (
	"net"
	"sync"
)

// connections are the open connections to a node's API. The zero value has none.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// closeAll closes all connections.
func (c *connections) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.Close() // the client may have closed it
	}
}

// trackedListener is a listener that records its open connections.
type trackedListener struct {
	net.Listener
	connections *connections
}

func (l trackedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.connections.mu.Lock()
	defer l.connections.mu.Unlock()
	if l.connections.open == nil {
		l.connections.open = map[net.Conn]struct{}{}
	}
	l.connections.open[conn] = struct{}{}
	return &trackedConn{Conn: conn, connections: l.connections}, nil
}

type trackedConn struct {
	net.Conn
	connections *connections
}

func (c *trackedConn) Close() error {
	c.connections.mu.Lock()
	delete(c.connections.open, c.Conn)
	c.connections.mu.Unlock()
	return c.Conn.Close()
}
