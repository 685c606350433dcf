package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
)

// monitor is a connection to the monitor of a QEMU process, which speaks QMP: one JSON object a line. It is safe for concurrent use.
type monitor struct {
	conn    net.Conn
	answers chan answer   // closed when the connection has ended
	ended   chan struct{} // closed when the connection has ended

	mu   sync.Mutex // one command at a time
	sent *json.Encoder
}

// answer is what QEMU sends: its greeting, the answer to a command, or an event.
type answer struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Desc string `json:"desc"`
	} `json:"error"`
	Event string `json:"event"`
	Data  struct {
		Reason string `json:"reason"` // of SHUTDOWN
		Device string `json:"device"` // of DEVICE_DELETED
	} `json:"data"`
}

// newMonitor takes a connection that QEMU has just opened. It calls event for each event, one after the other.
func newMonitor(ctx context.Context, conn net.Conn, event func(answer)) (*monitor, error) {
	m := &monitor{conn: conn, answers: make(chan answer, 1), ended: make(chan struct{}), sent: json.NewEncoder(conn)}
	go m.read(event)
	return m, m.execute(ctx, "qmp_capabilities", nil)
}

func (m *monitor) read(event func(answer)) {
	defer close(m.ended)
	defer close(m.answers)
	received := json.NewDecoder(m.conn)
	for {
		var a answer
		if err := received.Decode(&a); err != nil {
			return
		}
		switch {
		case a.Event != "":
			event(a)
		case a.Return != nil, a.Error != nil:
			m.answers <- a
		}
	}
}

var errMonitorEnded = errors.New("QEMU's monitor has ended")

// execute executes a command.
func (m *monitor) execute(ctx context.Context, command string, arguments any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := m.sent.Encode(request); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	select {
	case a, answered := <-m.answers:
		if !answered {
			return fmt.Errorf("%s: %w", command, errMonitorEnded)
		}
		if a.Error != nil {
			return fmt.Errorf("%s: %s", command, a.Error.Desc)
		}
		return nil
	case <-ctx.Done():
		_ = m.conn.Close() // a late answer would be taken for that of the next command
		return fmt.Errorf("%s: %w", command, context.Cause(ctx))
	}
}
