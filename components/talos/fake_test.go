package talos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/live"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// calm is a healthy cluster. Its machines do what effects says for a changed configuration, until they have booted with it.
type calm struct {
	mu           sync.Mutex
	nodes        []turn.Node
	bare         bool   // no machine has a configuration
	fresh        string // name of a node whose machine has none
	strange      string // name of a node that Kubernetes does not know
	noAPI        error  // of the API servers, beside version
	version      string // of the API servers; "" if none answers
	unbootstraps bool   // etcd does not run
	silent       error
	effects      live.Effect
	answersAfter int      // questions that are not answered before the effect is
	refuses      error    // answer to a reboot
	loses        error    // answer of a node that has staged a configuration
	breaks       bool     // a node that reboots is not well afterwards
	static       string   // problem of the static pods
	gates        []string // unknown feature gates
	tried        string   // the configuration that a node tries
	isolates     error    // answer of a node that tries one
	sickens      bool     // a node that tries one is not well for twice as long
	unready      bool     // no Node object is Ready
	sick         bool     // a service of each machine waits
	hangs        bool     // no machine answers, but takes connections
	runs         []string // services of each machine beside etcd
	grows        []string // nodes with a volume that grows at the next boot
	boots        map[string]int
	staged       map[string]bool
	log          []string
}

func (c *calm) did(what, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, what+" "+node)
}

func (c *calm) with(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *calm) Machine(ctx context.Context, node turn.Node) (turn.Machine, error) {
	if c.hangs {
		<-ctx.Done()
		return turn.Machine{}, ctx.Err()
	}
	etcd := talosapi.Service{State: "Running", Known: true, Healthy: true}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unbootstraps {
		etcd = talosapi.Service{State: "Preparing"}
	}
	services := map[string]talosapi.Service{"etcd": etcd}
	for _, id := range c.runs {
		services[id] = talosapi.Service{State: "Running"}
	}
	if c.sick || c.breaks && c.boots[node.Name] > 0 {
		services["kubelet"] = talosapi.Service{State: "Waiting"}
	}
	return turn.Machine{Boot: fmt.Sprint(1 + c.boots[node.Name]), Stage: "running", Services: services}, c.silent
}

func (c *calm) Members(context.Context, turn.Node) (members []talosapi.Member, err error) {
	for i, node := range c.nodes {
		if node.Role == cluster.ControlPlane {
			members = append(members, talosapi.Member{ID: uint64(i), Name: node.Name})
		}
	}
	return members, nil
}

func (c *calm) Nodes(context.Context) (map[string]turn.KubeNode, error) {
	all := map[string]turn.KubeNode{}
	for _, node := range c.nodes {
		cordoned := slices.Contains(c.log, "cordon "+node.Name) && !slices.Contains(c.log, "uncordon "+node.Name)
		all[node.Name] = turn.KubeNode{Ready: !c.unready, Ours: cordoned, Unschedulable: cordoned}
	}
	delete(all, c.strange)
	return all, cmp.Or(c.silent, c.noAPI)
}

func (c *calm) Configure(_ context.Context, node turn.Node, configuration string) error {
	if configuration == "" {
		return errors.New("the configuration is empty")
	}
	c.did("configure", node.Name)
	return c.refuses
}

func (c *calm) HoldsEtcd(context.Context, turn.Node) (bool, error) { return !c.unbootstraps, c.silent }

func (c *calm) Cordon(_ context.Context, node string) error {
	c.did("cordon", node)
	return nil
}

func (c *calm) Uncordon(_ context.Context, node string) error {
	c.did("uncordon", node)
	return nil
}

func (c *calm) Forget(_ context.Context, node string) error {
	c.did("forget", node)
	return nil
}

func (c *calm) Pods(context.Context, string) ([]turn.Pod, error)       { return nil, nil }
func (c *calm) Unmet(context.Context, []cluster.Check) (string, error) { return "", nil }

func (c *calm) Ceph(context.Context) (turn.Ceph, error) { return turn.Ceph{}, nil }

func (c *calm) LastLines(context.Context, turn.Node) []string { return nil }

func (c *calm) Evict(context.Context, turn.Pod) error { return nil }

func (c *calm) Configured(_ context.Context, node turn.Node) (bool, error) {
	return !c.bare && node.Name != c.fresh, c.silent
}

func (c *calm) Version(context.Context, turn.Node) (string, error) {
	if c.version == "" {
		return "", errors.New("connection refused")
	}
	return c.version, nil
}

func (c *calm) Effect(_ context.Context, node turn.Node, _ string) (live.Effect, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.answersAfter > 0:
		c.answersAfter--
		return live.Unknown, "", errors.New("no route")
	case c.staged[node.Name] && c.boots[node.Name] > 0:
		return live.KeepsRunning, "", nil
	}
	return c.effects, "machine.files", nil
}

func (c *calm) Stage(_ context.Context, node turn.Node, _ string) (undo func(context.Context) error, err error) {
	c.did("stage", node.Name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.staged == nil {
		c.staged, c.boots = map[string]bool{}, map[string]int{}
	}
	c.staged[node.Name] = true
	return func(context.Context) error { c.did("unstage", node.Name); return nil }, c.loses
}

// Try is forgotten after a time.
func (c *calm) Try(_ context.Context, node turn.Node, text string, within time.Duration) error {
	c.did("try", node.Name)
	c.with(func() { c.tried, c.silent = text, c.isolates })
	if c.sickens {
		c.with(func() { c.sick = true })
		time.AfterFunc(2*within, func() { c.with(func() { c.sick = false }) })
	}
	time.AfterFunc(within, func() { c.with(func() { c.tried, c.silent = "", nil }) })
	return nil
}

func (c *calm) Runs(_ context.Context, _ turn.Node, text string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tried == text, c.silent
}

func (c *calm) Reboot(_ context.Context, node turn.Node) error {
	if c.refuses != nil {
		return c.refuses
	}
	c.did("reboot", node.Name)
	time.AfterFunc(20*time.Second, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.boots[node.Name]++
	})
	return nil
}

func (c *calm) Grows(_ context.Context, node turn.Node) (volumes []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.grows, node.Name) && c.boots[node.Name] == 0 {
		volumes = []string{"EPHEMERAL"}
	}
	return volumes, c.silent
}

func (c *calm) UnknownGates(context.Context, string) ([]string, error) { return c.gates, c.silent }

func (c *calm) StaticPods(context.Context, turn.Node) (problem string, err error) {
	c.with(func() { problem = c.static })
	return problem, nil
}

// StepAside implements turn.VIPs. The first control plane has the virtual IP, until it leaves it to the second one.
func (c *calm) StepAside(_ context.Context, node turn.Node) (netip.Addr, error) {
	if node.Name != c.nodes[0].Name {
		return netip.Addr{}, nil
	}
	c.did("step aside", node.Name)
	return netip.MustParseAddr("10.25.11.10"), nil
}

func (c *calm) Holds(_ context.Context, node turn.Node, _ netip.Addr) (bool, error) {
	return node.Name == c.nodes[1].Name, nil
}
