package workload

import (
	"context"
	"fmt"
	"io"
	"path"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/lab/fault"
)

// ciliumVersion is what the agents say of themselves.
const ciliumVersion = "1.18.7"

// Cilium is what the agents of one cluster know of each other: who runs where. The zero value is ready for use. Traffic,
// policies, BPF, the mesh and Hubble are not modelled.
type Cilium struct {
	mu      sync.Mutex
	agents  map[string]*agent // by node
	changed chan struct{}
}

type agent struct {
	*Instance
	Container
}

func (n *Cilium) join(a *agent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.agents == nil {
		n.agents = map[string]*agent{}
	}
	n.agents[a.Node] = a
	n.notify()
}

func (n *Cilium) leave(a *agent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.agents[a.Node] == a {
		delete(n.agents, a.Node)
		n.notify()
	}
}

// Changed returns a channel that is closed when an agent next comes, goes or becomes ready. Take it before reading.
func (n *Cilium) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return n.changed
}

// Ready is whether a ready agent runs on the node.
func (n *Cilium) Ready(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, ok := n.agents[node]
	return ok && a.Instance.Ready()
}

func (n *Cilium) poke() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notify()
}

func (n *Cilium) notify() {
	if n.changed != nil {
		close(n.changed)
	}
	n.changed = nil
}

// startAgent runs a simulated Cilium agent. It writes what a real one writes at start, and dies while the fault
// cilium-agent-crash bites its node.
func startAgent(ctx context.Context, c Container) (*Instance, error) {
	i := NewInstance()
	a := &agent{Instance: i, Container: c}
	i.OnExec = a.exec
	net := c.Cluster.Cilium
	net.join(a)
	go func() {
		<-i.Done()
		net.leave(a)
	}()
	a.logf("info", `msg="Cilium %s" subsys=daemon`, ciliumVersion)
	a.logf("info", `msg="clustermesh: cluster name %s" subsys=daemon`, c.Cluster.Name)
	go a.followFaults(ctx)
	i.after(c.Cluster.PodStart, func() {
		if _, broken := c.Cluster.Faults.Active(fault.CiliumAgentCrash, c.Node); broken {
			return // it dies instead
		}
		i.SetReady(true)
		a.logf("info", `msg="Initializing daemon completed" subsys=daemon`)
		net.poke()
	})
	return i, nil
}

func (a *agent) followFaults(ctx context.Context) {
	faults := a.Cluster.Faults
	if faults == nil {
		return
	}
	for {
		changed := faults.Changed()
		if f, broken := faults.Active(fault.CiliumAgentCrash, a.Node); broken {
			a.after(max(a.Cluster.PodStart/2, time.Millisecond), func() { a.crash(f.Detail) })
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-a.Done():
			return
		case <-changed:
		}
	}
}

// crash ends the agent as one does that cannot load its programs.
func (a *agent) crash(detail string) {
	if detail == "" {
		detail = "attaching cil_from_netdev to interface eth0: replacing program for network interface: creating link: file exists"
	}
	a.logf("error", `msg="Start hook failed" function="cmd.newDaemonPromise.func2" error="daemon creation failed: error while initializing daemon: failed while reinitializing datapath: %s"`, detail)
	a.logf("fatal", `msg="failed to start: daemon creation failed: error while initializing daemon: failed while reinitializing datapath: %s" subsys=daemon`, detail)
	a.Exit(1)
}

func (a *agent) logf(level, format string, args ...any) {
	fmt.Fprintf(a.Log, "time=%s level=%s "+format+"\n", append([]any{time.Now().UTC().Format(time.RFC3339Nano), level}, args...)...)
}

// exec answers the health and status commands of a real agent's image.
func (a *agent) exec(_ context.Context, cmd []string, _ io.Reader, stdout, stderr io.Writer) (int, error) {
	if len(cmd) < 2 || cmd[1] != "status" {
		return unknownCommand(cmd, stderr)
	}
	o := statusOptions(cmd[2:])
	switch path.Base(cmd[0]) {
	case "cilium-health":
		return o.write(stdout, a.health(), a.healthText)
	case "cilium", "cilium-dbg":
		return o.write(stdout, a.status(), a.statusText)
	}
	return unknownCommand(cmd, stderr)
}
