// Package proxmox simulates a Proxmox VE cluster, for rehearsals and tests. It is not production code.
//
// It implements the part of the API that a provisioning tool uses with an API token: nodes, storages, downloads, tasks,
// virtual machines and the guest agent. It stores values in a real cluster's form, performs work in tasks that take time, and refuses what
// a real cluster refuses, with the same error texts. It powers machines on through a vm.Firmware.
//
// Not modelled: logins by password, privileges on single objects, pools, high availability, migration to other clusters
// or storages, clones, snapshots, backups, imports, containers, firewall, consoles, resource use, and the contents of
// disks, which belong to the guest. State is in memory and ends with the Cluster.
package proxmox

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/latency"
	"github.com/slipway-platform/slipway/lab/vm"
)

// Config configures a Cluster.
type Config struct {
	Version  string    // of Proxmox VE, as MAJOR.MINOR.PATCH; "" means 9.2.11. docs/lab.md says what depends on it
	Nodes    []Node    // nil means one node, pve1
	Storages []Storage // nil means DefaultStorages
	Tokens   []Token   // accepted API tokens; without one, every call is answered 401

	Firmware vm.Firmware       // nil: machines are running, but nothing boots in them
	Latency  latency.Latencies // zero means latency.Default
	Faults   *fault.Set        // nil: none
	Fetch    *http.Client      // the hosts' access to the network; nil: they have none

	// Image reads the content of an ISO image. If it is nil or returns an error, the image does not boot.
	Image func(content []byte) (*vm.Image, error)

	Log *slog.Logger // nil discards
}

// Cluster is a simulated Proxmox VE cluster. It is safe for concurrent use.
type Cluster struct {
	cfg     Config
	log     *slog.Logger
	started time.Time
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // tasks
	asked   sync.Once      // writes of the first request to the log

	mu       sync.Mutex
	machines map[int]*machine
	volumes  map[volumeKey]*volume
	tasks    map[string]*task
	locks    map[volumeKey]chan struct{} // of storages, by their names in the place of a volume's id
	pids     int
}

// New returns a cluster without VMs. Close ends it.
func New(cfg Config) *Cluster {
	if cfg.Version == "" {
		cfg.Version = defaultVersion
	}
	if cfg.Nodes == nil {
		cfg.Nodes = []Node{{Name: "pve1"}}
	}
	if cfg.Storages == nil {
		cfg.Storages = DefaultStorages()
	}
	if cfg.Firmware == nil {
		cfg.Firmware = noFirmware{}
	}
	if cfg.Latency == (latency.Latencies{}) {
		cfg.Latency = latency.Default()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Nodes = append([]Node(nil), cfg.Nodes...)
	for i := range cfg.Nodes {
		cfg.Nodes[i].setDefaults()
	}
	cfg.Storages = append([]Storage(nil), cfg.Storages...)
	for i := range cfg.Storages {
		if cfg.Storages[i].Total == 0 {
			cfg.Storages[i].Total = 100 << 30
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Cluster{
		cfg: cfg, log: cfg.Log, started: time.Now(), ctx: ctx, cancel: cancel, pids: 1000,
		machines: map[int]*machine{}, volumes: map[volumeKey]*volume{}, tasks: map[string]*task{}, locks: map[volumeKey]chan struct{}{},
	}
	c.running.Go(c.loseNodes)
	return c
}

// Close interrupts running tasks and powers every machine off. New tasks are refused from then on.
func (c *Cluster) Close() {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.running.Wait()
	c.mu.Lock()
	on := map[*machine]vm.Guest{}
	for _, m := range c.machines {
		if m.guest != nil {
			on[m] = m.guest
		}
	}
	c.mu.Unlock()
	var all sync.WaitGroup
	for m, guest := range on {
		all.Go(func() {
			if err := c.powerOff(m, guest); err != nil {
				c.log.Warn("close", "vm", m.id, "err", err)
			}
		})
	}
	all.Wait()
}
