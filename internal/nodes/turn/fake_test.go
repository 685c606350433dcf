package turn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/tests/fakes/talosapitest"
)

// fake is a cluster in memory. A reboot takes bootTime. It does not model controllers: an evicted pod does not come back.
type fake struct {
	mu       sync.Mutex
	machines map[string]*Machine
	members  []talosapi.Member
	nodes    map[string]KubeNode
	pods     map[string][]Pod // by node
	down     map[string]error // nodes whose Talos API does not answer
	api      error            // of the Kubernetes API, if it does not answer

	onEvict func(Pod) error  // answers an eviction; nil evicts
	unmet   func() string    // which check fails; nil: none
	forGood func() string    // the same for the checks before a sick node leaves
	asked   func() time.Time // when Rook has asked Ceph; nil: just now
	ceph    func() (Ceph, error)

	lines   map[string][]string // last lines of logs, by node
	holder  string              // of the virtual IP
	leader  string              // of etcd; the name of its node
	refuses error               // answer to the removal of a member; nil removes it
	log     []string            // what was changed, in order
	ended   []string            // pods that are gone
}

var virtualIP = netip.MustParseAddr("192.0.2.10")

const (
	bootTime = 30 * time.Second
	stopTime = 10 * time.Second // until a machine that shuts down does not answer any more
)

// newFake returns three control planes and as many workers, all healthy, and each with one pod.
func newFake(workers int) (*fake, []Node) {
	f := &fake{machines: map[string]*Machine{}, nodes: map[string]KubeNode{}, pods: map[string][]Pod{}, down: map[string]error{}}
	var nodes []Node
	add := func(name string, role cluster.Role) {
		services := map[string]talosapi.Service{"kubelet": {State: talosapi.Running, Known: true, Healthy: true}, "ext-lldpd": {State: "Waiting"}}
		if role == cluster.ControlPlane {
			services["etcd"] = talosapi.Service{State: talosapi.Running, Known: true, Healthy: true}
			f.members = append(f.members, talosapi.Member{ID: uint64(len(f.members) + 1), Name: name})
		}
		f.machines[name] = &Machine{Boot: "1", Version: "v1.12.6", Stage: stageRunning, Services: services}
		f.nodes[name] = KubeNode{Ready: true, Repels: role == cluster.ControlPlane, Boot: "1"}
		f.pods[name] = []Pod{{Namespace: "apps", Name: "web-" + name, UID: "web-" + name}, {Namespace: "kube-system", Name: "cilium-" + name,
			UID: "cilium-" + name, Stays: true}}
		nodes = append(nodes, Node{Name: name, Role: role, Address: talosapitest.AddressOf(name)})
	}
	for i := range 3 {
		add(fmt.Sprintf("cp-%d", i+1), cluster.ControlPlane)
	}
	for i := range workers {
		add(fmt.Sprintf("worker-%d", i+1), cluster.Worker)
	}
	return f, nodes
}

func (f *fake) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) did(format string, args ...any) { f.log = append(f.log, fmt.Sprintf(format, args...)) }

func (f *fake) Machine(_ context.Context, node Node) (Machine, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.down[node.Name]; err != nil {
		return Machine{}, err
	}
	machine := *f.machines[node.Name]
	machine.Services = maps.Clone(machine.Services)
	return machine, nil
}

func (f *fake) Members(_ context.Context, asked Node) ([]talosapi.Member, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.members), f.down[asked.Name]
}

func (f *fake) Nodes(context.Context) (map[string]KubeNode, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.nodes), f.api
}

func (f *fake) Cordon(_ context.Context, node string) error {
	f.with(func() {
		at := f.nodes[node]
		at.Unschedulable, at.Ours = true, true
		f.nodes[node] = at
		f.did("cordon %s", node)
	})
	return nil
}

func (f *fake) Uncordon(_ context.Context, node string) error {
	f.with(func() {
		at := f.nodes[node]
		at.Unschedulable, at.Ours = false, false
		f.nodes[node] = at
		f.did("uncordon %s", node)
	})
	return nil
}

func (f *fake) Unmet(_ context.Context, checks []cluster.Check) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	unmet := f.unmet
	if last := len(checks) - 1; last >= 0 {
		if since, is := strings.CutPrefix(checks[last].Name, "Rook has asked Ceph since "); is {
			if at, err := time.Parse(time.RFC3339, since); err != nil || f.asked != nil && !f.asked().After(at) {
				return "not so: " + checks[last].Name, err
			}
			checks = checks[:last]
		}
	}
	switch {
	case len(checks) > 0 && checks[0].Name == forGood:
		unmet = f.forGood
	case len(checks) > 0 && checks[0].Name == copies:
		unmet = func() string { return "not so: " + copies }
	}
	if unmet == nil || len(checks) == 0 {
		return "", f.api
	}
	return unmet(), f.api
}

// Names of the checks before a sick node leaves, and before one with a disk of the storage does, which fails.
const (
	forGood = "all data is elsewhere"
	copies  = "there are copies"
)

func (f *fake) Ceph(context.Context) (Ceph, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ceph()
}

func (f *fake) LastLines(_ context.Context, node Node) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lines[node.Name]
}

func (f *fake) Forget(_ context.Context, node string) error {
	f.with(func() {
		at := f.nodes[node]
		at.Ours = false
		f.nodes[node] = at
		f.did("forget %s", node)
	})
	return nil
}

func (f *fake) Pods(_ context.Context, node string) ([]Pod, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.pods[node]), nil
}

func (f *fake) Evict(_ context.Context, pod Pod) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.onEvict != nil {
		if err := f.onEvict(pod); err != nil {
			return err
		}
	}
	for node, pods := range f.pods {
		f.pods[node] = slices.DeleteFunc(pods, func(p Pod) bool { return p.UID == pod.UID })
	}
	f.ended = append(f.ended, pod.Name)
	return nil
}

// reboot returns an act that reboots a node. Its Node object stays Ready for a while, as in a real cluster.
func (f *fake) reboot(node string) func(context.Context) error {
	return func(context.Context) error {
		f.with(func() {
			f.did("reboot %s", node)
			f.down[node] = errors.New("connection refused")
		})
		time.AfterFunc(bootTime, func() {
			f.with(func() {
				f.machines[node].Boot += "1"
				at := f.nodes[node]
				at.Boot = f.machines[node].Boot
				f.nodes[node] = at
				delete(f.down, node)
			})
		})
		return nil
	}
}

// engine returns an engine for the fake. What it says goes to the test's log.
func (f *fake) engine(t *testing.T, nodes []Node) *Engine {
	e := &Engine{Cluster: f, Declared: Declared{Target: Target{Nodes: nodes}}, Say: t.Logf}
	cluster.SetDefaults(&e.TurnLimits)
	return e
}

// named returns the node with a name.
func named(nodes []Node, name string) Node {
	return nodes[slices.IndexFunc(nodes, func(n Node) bool { return n.Name == name })]
}

// StepAside gives the virtual IP to the control plane after the one that has it.
func (f *fake) StepAside(_ context.Context, node Node) (netip.Addr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holder != node.Name {
		return netip.Addr{}, nil
	}
	f.did("%s leaves the virtual IP", node.Name)
	f.holder = f.members[slices.IndexFunc(f.members, func(m talosapi.Member) bool { return m.Name != node.Name })].Name
	return virtualIP, nil
}

func (f *fake) Holds(_ context.Context, node Node, address netip.Addr) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return address == virtualIP && f.holder == node.Name, f.down[node.Name]
}

func (f *fake) ForfeitLeadership(_ context.Context, node Node) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leader == node.Name {
		f.leader = f.members[slices.IndexFunc(f.members, func(m talosapi.Member) bool { return m.Name != node.Name })].Name
		f.did("%s leads etcd", f.leader)
	}
	return f.down[node.Name]
}

func (f *fake) RemoveMember(_ context.Context, asked Node, id uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.IndexFunc(f.members, func(m talosapi.Member) bool { return m.ID == id })
	switch {
	case f.down[asked.Name] != nil:
		return f.down[asked.Name]
	case f.refuses != nil:
		return f.refuses
	case at < 0:
		return ErrGone
	}
	f.did("remove member %d", id)
	f.members = slices.Delete(f.members, at, at+1)
	return nil
}

// Shutdown leaves the Node object Ready until the machine has stopped.
func (f *fake) Shutdown(_ context.Context, node Node) error {
	f.with(func() { f.did("shut down %s", node.Name) })
	time.AfterFunc(stopTime, func() { f.dies(node.Name) })
	return nil
}

// dies makes a machine silent, and its Node object not Ready.
func (f *fake) dies(name string) {
	f.with(func() {
		f.down[name] = errors.New("no route")
		if at, exists := f.nodes[name]; exists {
			at.Ready = false
			f.nodes[name] = at
		}
	})
}

func (f *fake) DeleteNode(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, exists := f.nodes[name]; !exists {
		return ErrGone
	}
	f.did("delete %s", name)
	delete(f.nodes, name)
	return nil
}
