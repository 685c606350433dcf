package proxmox

import (
	"context"
	"net/netip"
	"strings"
	"sync"

	"github.com/slipway-platform/slipway/lab/vm"
)

// getInterfaces returns the guest's network interfaces as the QEMU guest agent reports them.
func getInterfaces(q *request) (any, error) {
	var guest vm.Guest
	if _, err := q.withMachine(func(m *machine) (any, error) {
		switch {
		case !m.agent():
			return nil, internalError("No QEMU guest agent configured")
		case m.guest == nil:
			return nil, internalError("VM %d is not running", m.id)
		}
		guest = m.guest
		return nil, nil
	}, q.c.agentPrivilege()); err != nil {
		return nil, err
	}
	interfaces, ok := guest.Interfaces()
	if !ok {
		return nil, errNoAgent
	}
	result := []any{}
	for _, i := range interfaces {
		addresses := []any{}
		for _, a := range i.Addresses {
			addresses = append(addresses, map[string]any{
				"ip-address": a.Addr().String(), "ip-address-type": family(a.Addr()), "prefix": a.Bits(),
			})
		}
		result = append(result, map[string]any{
			"name": i.Name, "hardware-address": strings.ToLower(i.MAC), "ip-addresses": addresses,
		})
	}
	return map[string]any{"result": result}, nil
}

var errNoAgent = internalError("QEMU guest agent is not running")

func family(a netip.Addr) string {
	if a.Is4() {
		return "ipv4"
	}
	return "ipv6"
}

// noFirmware is the Firmware of a cluster without one: nothing boots in its machines.
type noFirmware struct{}

func (noFirmware) PowerOn(vm.Hardware) vm.Guest { return &idleGuest{done: make(chan struct{})} }

// idleGuest is a machine that is on and does nothing. It ignores a request to shut down.
type idleGuest struct {
	once sync.Once
	done chan struct{}
}

func (g *idleGuest) Shutdown(ctx context.Context) error {
	select {
	case <-g.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *idleGuest) PowerOff()                          { g.once.Do(func() { close(g.done) }) }
func (g *idleGuest) Interfaces() ([]vm.Interface, bool) { return nil, false }
func (g *idleGuest) Plug(map[string]*vm.Disk)           {}
func (g *idleGuest) Grown(string, int64)                {}
func (g *idleGuest) Done() <-chan struct{}              { return g.done }
