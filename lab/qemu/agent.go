package qemu

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/lab/vm"
)

// agentAnswers is how long the guest agent may take for an answer. An agent that does not run never answers.
const agentAnswers = 3 * time.Second

// agent is the channel to the guest agent of a VM. It is safe for concurrent use.
type agent struct {
	mu   sync.Mutex // one command at a time
	conn net.Conn
	in   *bufio.Reader
	last int // number of the last synchronization
}

func newAgent(conn net.Conn) *agent { return &agent{conn: conn, in: bufio.NewReader(conn)} }

// interfaces asks for the guest's network interfaces.
func (a *agent) interfaces() ([]vm.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.conn.SetDeadline(time.Now().Add(agentAnswers)); err != nil {
		return nil, err
	}
	if err := a.synchronize(); err != nil {
		return nil, err
	}
	var list []struct {
		Name      string `json:"name"`
		MAC       string `json:"hardware-address"`
		Addresses []struct {
			Address string `json:"ip-address"`
			Prefix  int    `json:"prefix"`
		} `json:"ip-addresses"`
	}
	if err := a.execute("guest-network-get-interfaces", nil, &list); err != nil {
		return nil, err
	}
	var out []vm.Interface
	for _, i := range list {
		one := vm.Interface{Name: i.Name, MAC: i.MAC}
		for _, address := range i.Addresses {
			at, err := netip.ParseAddr(address.Address)
			if err != nil {
				return nil, fmt.Errorf("guest agent: %w", err)
			}
			one.Addresses = append(one.Addresses, netip.PrefixFrom(at, address.Prefix))
		}
		out = append(out, one)
	}
	return out, nil
}

// synchronize skips the answers to earlier commands that nobody waited for.
func (a *agent) synchronize() error {
	a.last++
	number := 0
	err := a.execute("guest-sync", map[string]any{"id": a.last}, &number)
	for err == nil && number != a.last {
		err = a.read(&number)
	}
	return err
}

func (a *agent) execute(command string, arguments, out any) error {
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := json.NewEncoder(a.conn).Encode(request); err != nil {
		return err
	}
	return a.read(out)
}

// read reads one answer. What is no answer of the wanted form leaves out as it is.
func (a *agent) read(out any) error {
	line, err := a.in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var got struct {
		Return json.RawMessage `json:"return"`
		Error  *struct {
			Desc string `json:"desc"`
		} `json:"error"`
	}
	if err := json.Unmarshal(line, &got); err != nil {
		return err
	}
	if got.Error != nil {
		return errors.New("guest agent: " + got.Error.Desc)
	}
	var mismatch *json.UnmarshalTypeError
	if err := json.Unmarshal(got.Return, out); err != nil && !errors.As(err, &mismatch) {
		return err
	}
	return nil
}
