package talos

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/latency"
	"github.com/slipway-platform/slipway/lab/network"
	"github.com/slipway-platform/slipway/lab/talos/service"
	"github.com/slipway-platform/slipway/lab/vm"
	"github.com/slipway-platform/slipway/lab/wait"
)

// Config is what the simulated nodes need from the lab.
type Config struct {
	Addresses  network.Addresses // required
	Kubernetes Kubernetes        // required
	Latency    latency.Latencies // zero value: latency.Default
	Faults     *fault.Set        // nil: none
	Log        *slog.Logger      // nil: discarded
	// Extensions returns the system extensions of a schematic, for nodes whose installer image differs from the image
	// that they booted from. nil: nodes with another schematic have no extensions.
	Extensions func(schematic string) ([]string, bool)
	// Installer returns the system extensions of an installer image, or an error if its registry does not have the image. nil: every
	// installer image exists, with the extensions that Extensions returns.
	Installer func(image string) (extensions []string, err error)
	// Fetch downloads files for the nodes, such as manifests. nil: they have no network outside.
	Fetch *http.Client
	// Listen opens the Talos API's listener on an address. nil: TCP port 50000.
	Listen func(netip.Addr) (net.Listener, error)
}

// Site holds all simulated machines of a lab and the clusters that they form. It implements vm.Firmware.
type Site struct {
	cfg    Config
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	// change is notified at each change of a machine or a cluster.
	change wait.Changes

	mu       sync.Mutex // guards all that follows, and the fields of machines, boots, installations and clusters
	machines map[int]*guest
	clusters map[string]*cluster
	hung     map[int]int // boots that have hung by the fault boot-hangs, by VM id
}

// New returns a site without machines. Close ends it.
func New(cfg Config) *Site {
	if cfg.Latency == (latency.Latencies{}) {
		cfg.Latency = latency.Default()
	}
	if cfg.Faults == nil {
		cfg.Faults = &fault.Set{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Listen == nil {
		cfg.Listen = func(a netip.Addr) (net.Listener, error) {
			return net.Listen("tcp", net.JoinHostPort(a.String(), strconv.Itoa(constants.ApidPort)))
		}
	}
	s := &Site{cfg: cfg, machines: map[int]*guest{}, clusters: map[string]*cluster{}, hung: map[int]int{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wg.Go(s.followFaults)
	return s
}

// PowerOn implements vm.Firmware.
func (s *Site) PowerOn(hw vm.Hardware) vm.Guest {
	m := newGuest(s, hw)
	s.mu.Lock()
	former := s.machines[hw.ID]
	s.machines[hw.ID] = m
	s.mu.Unlock()
	s.wg.Go(func() {
		if former != nil {
			<-former.done // its addresses must be removed before they are added again
		}
		m.run()
	})
	return m
}

// Close powers all machines off, stops every control plane, and waits until that is done.
func (s *Site) Close() {
	s.cancel()
	s.wg.Wait()
}

// MachineStatus is a machine as `lab status` shows it.
type MachineStatus struct {
	VMID      int              `json:"vmid"`
	Name      string           `json:"name"` // of the VM
	Host      string           `json:"host"` // Proxmox VE node
	Stage     Stage            `json:"stage"`
	Reason    string           `json:"reason,omitempty"` // why it does not proceed
	Addresses []netip.Prefix   `json:"addresses,omitempty"`
	Hostname  string           `json:"hostname,omitempty"`
	Cluster   string           `json:"cluster,omitempty"` // cluster name of its configuration
	Type      string           `json:"type,omitempty"`    // controlplane or worker
	Version   string           `json:"version,omitempty"` // Talos version it runs
	VIP       bool             `json:"vip,omitempty"`     // it has its cluster's virtual IP
	Services  []service.Status `json:"services,omitempty"`
}

// Machines returns the machines that have been powered on at least once, sorted by VM id.
func (s *Site) Machines() []MachineStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []MachineStatus
	for _, m := range s.machines {
		out = append(out, m.status())
	}
	slices.SortFunc(out, func(a, b MachineStatus) int { return cmp.Compare(a.VMID, b.VMID) })
	return out
}

// byTarget returns the running boot at an address, or with a node name in a cluster; nil if there is none.
func (s *Site) byTarget(target string, c *cluster) *boot {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr, err := netip.ParseAddr(target)
	for _, m := range s.machines {
		b := m.boot
		if b == nil || b.machined == nil {
			continue
		}
		if err == nil && b.hasAddress(addr) || err != nil && c != nil && b.cluster == c && b.hostname == target {
			return b
		}
	}
	return nil
}

// errOff ends a wait because the machine was powered off or rebooted.
var errOff = errors.New("machine is off")

// sleep waits for d, or returns an error when the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	if !wait.Pause(ctx, d) {
		return errOff
	}
	return nil
}

// waitUntil waits for a condition. It evaluates the condition with the site's mutex held, after each change in the
// site.
func (s *Site) waitUntil(ctx context.Context, ready func() bool) error {
	locked := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return ready()
	}
	if !s.change.Until(ctx, locked) {
		return errOff
	}
	return nil
}
