// Package turn changes nodes of a running cluster without an outage: each node takes a turn. The node waits until the cluster can spare it,
// is cordoned and drained, is changed, and is uncordoned once it is back and healthy. Then the next node takes its turn.
//
// The package decides and waits. It reads and changes the cluster through the interface Cluster, which package live implements.
package turn

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Durations of turns that nobody declares.
const (
	SpareTimeout = 10 * time.Minute // longest wait until the cluster can spare a node; covers the reboot of another machine with slow disks
	StableFor    = 3 * time.Second  // how long each condition must hold without a break
	followFor    = time.Second      // the same for the turn of one more worker that begins beside others

	RestartTimeout = time.Minute     // longest wait until Talos restarts a service for a change that it has taken
	detachTimeout  = 5 * time.Minute // from the end of the pods until their volumes are detached

	callTimeout = 10 * time.Second // for one look at the cluster
	askTimeout  = callTimeout / 2  // for an answer of each of several nodes
	undoTimeout = 4 * time.Second  // after an interrupt, Pulumi kills the process after a few seconds
)

// Machine is what a node's Talos API reports.
type Machine struct {
	Boot     string // id of the boot
	Version  string // of Talos, such as v1.12.7
	Stage    string // such as running
	Services map[string]talosapi.Service
	Unmet    map[string]string // why conditions of the machine's readiness are not met, such as staticPods, by their names
}

// Runs reports whether a Talos service runs, healthy or not.
func (m Machine) Runs(service string) bool { return m.Services[service].State == talosapi.Running }

// KubeNode is what a Node object says.
type KubeNode struct {
	Ready         bool
	NoAgent       bool       // Cilium's agent is not Ready there, as Cilium's operator says by a taint: pods do not start yet
	Unschedulable bool       // cordoned, by whomever
	Ours          bool       // this package has cordoned it, which its annotation says
	Repels        bool       // has a taint that keeps ordinary pods away, beside those that say in which state a node is
	Kubelet       string     // version, such as v1.35.8
	System        string     // operating system, such as Talos (v1.12.7)
	Address       netip.Addr // internal IP address; invalid without one
	Boot          string     // id of the boot, as the kubelet reports it
}

// problem returns why the node does not serve pods; "" if it does.
func (n KubeNode) problem() string {
	switch {
	case !n.Ready:
		return "its Node object is not Ready"
	case n.NoAgent:
		return "its Cilium agent is not Ready"
	}
	return ""
}

// Serves reports whether pods run on the node.
func (n KubeNode) Serves() bool { return n.problem() == "" }

// Pod is a pod of a node.
type Pod struct {
	Namespace, Name, UID string
	Stays                bool // belongs to a DaemonSet, or is static, or has ended: a drain leaves it
	Deleting             bool // is being deleted
}

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// ErrGone is the error for what does not exist any more.
var ErrGone = errors.New("does not exist any more")

// BlockedError is the refusal of an eviction by a PodDisruptionBudget, in the API server's words.
type BlockedError struct{ Reason string }

func (e BlockedError) Error() string { return e.Reason }

// Cluster reads and changes a cluster.
type Cluster interface {
	Machine(ctx context.Context, node Node) (Machine, error)            // asks the node's own Talos API
	Members(ctx context.Context, asked Node) ([]talosapi.Member, error) // asks a control plane for etcd's members
	Nodes(ctx context.Context) (map[string]KubeNode, error)             // all Node objects, by name
	Cordon(ctx context.Context, node string) error                      // makes the node unschedulable, and annotates it
	Uncordon(ctx context.Context, node string) error                    // removes that annotation, and makes the node schedulable
	Forget(ctx context.Context, node string) error                      // removes that annotation only
	Pods(ctx context.Context, node string) ([]Pod, error)               // all pods of a node
	Evict(ctx context.Context, pod Pod) error                           // ErrGone, BlockedError or another error

	// Unmet returns which of the checks fails, and why; "" if none does. One without objects does not fail.
	Unmet(ctx context.Context, checks []cluster.Check) (string, error)
	// LastLines returns the last lines of the logs of a node's static pods and Talos services that are not well, without secrets.
	LastLines(ctx context.Context, node Node) []string
	// Ceph returns what Rook says of the storage.
	Ceph(ctx context.Context) (Ceph, error)
}

// Engine gives turns to the nodes of one cluster.
type Engine struct {
	Cluster  Cluster
	Declared // its nodes are those that stay and are not left out

	Say func(format string, args ...any) // prints progress, a line a call; required

	mu      sync.Mutex
	waiting map[string]waiting   // nodes that wait for their turn
	taking  map[string]Change    // of the nodes in their turn
	begun   []time.Time          // when each turn has begun
	back    map[string]time.Time // since when a node that an earlier run has left cordoned is healthy again
	failed  string               // the first node whose turn failed: after it, no other one begins
	proven  map[string]bool      // changes, by Of, with which a worker has ended its turn: until then, workers get each one after the other

	settled   time.Time // when the checks held again after a turn, for the last time
	disturbed string    // the check that fails while nodes are in their turns, until one of them has ended its turn
}

// Change is a change of one node.
type Change struct {
	Node      Node
	Of        string                              // what is changed, such as the VM: the first worker shows what this does
	Quiet     bool                                // interrupts no pod: the node is neither cordoned nor drained
	Awaits    Awaited                             // what must be so before the turn begins
	KeepsEtcd bool                                // etcd of the node goes on meanwhile, so that its quorum does not matter
	Leaves    bool                                // the node is removed
	Unready   bool                                // the Node object was not Ready before, or nobody could say: it need not be so afterwards
	Drains    bool                                // evict the pods before
	Drained   func(context.Context) string        // what is missing before the change once the node is drained, or ""; optional
	Reboots   bool                                // the node comes back with another boot id
	Act       func(context.Context) error         // makes the change, or starts it; for Take and Start
	After     func(context.Context, string) error // completes the change after the update; gets the id of the boot before; optional
	Trial     Check                               // what is missing beside it until Start returns; optional
	Check     Check                               // what is missing beside all that a node in service must have; optional
}

// Undrained returns why a node is not changed that is not drained; nil if it may be.
func (c Change) Undrained(ctx context.Context) error {
	if c.Drained == nil {
		return nil
	}
	if missing := c.Drained(ctx); missing != "" {
		return fmt.Errorf("%s: %s", c.Node.Name, missing)
	}
	return nil
}

// Awaited is what a node waits for before its turn, beside the turns of others.
type Awaited int

// What a node waits for.
const (
	Spared     Awaited = iota // the cluster can spare the node
	OthersWell                // no other node is sick that answers: the same change may have made it so. The cluster loses nothing by this one
	Nothing                   // the node is sick itself, and the change may be what fixes it
)

// Check returns what is still missing on a changed node that answers, or an error that ends the wait. boot is the id of the boot before the
// change.
type Check func(ctx context.Context, boot string, machine Machine, node KubeNode) (waiting string, err error)

// Take changes a node in its turn: Begin, Act and End.
func (e *Engine) Take(ctx context.Context, c Change) error {
	t, err := e.Begin(ctx, c)
	if err != nil {
		return err
	}
	if err := c.Act(ctx); err != nil {
		return t.Fail(ctx, err)
	}
	return t.End(ctx)
}

// Turn is the turn of a node. The node may be changed until End or Fail gives the turn back.
type Turn struct {
	engine *Engine
	change Change
	boot   string // id of the boot before the change; "" if the Talos API did not answer
	checks bool   // the checks of the stack file held before, and must hold afterwards
	broken error  // why the node is not back, although it has rebooted with its change
}

// Begin waits until the cluster can spare a node, cordons it and drains it. After an error the node has no turn and is schedulable again,
// and no other node gets a turn of this engine: the error of the others names this one. A node that a person has cordoned stays so.
func (e *Engine) Begin(ctx context.Context, c Change) (*Turn, error) {
	if err := e.claim(ctx, c); err != nil {
		return nil, err
	}
	t := &Turn{engine: e, change: c, boot: e.boot(ctx, c.Node), checks: len(e.Checks) > 0 && e.unmet(ctx, e.Checks) == ""}
	if err := t.prepare(ctx); err != nil {
		return nil, t.leave(err, e.undo(ctx, c))
	}
	e.Say("%s: is changed", c.Node.Name)
	return t, nil
}

// Start begins a turn, makes the change by its Act, and waits until the node is back. The turn goes on, for changes that do not interrupt
// the node, until End or Fail. After an error the node has no turn, as after the same error of Take. Without an Act, it is Begin.
//
// A node that has rebooted with its change and is not back keeps its turn, which End reports: the caller must first store what the node
// has, or nothing would differ any more once the former value is declared again.
func (e *Engine) Start(ctx context.Context, c Change) (*Turn, error) {
	t, err := e.Begin(ctx, c)
	if err != nil || c.Act == nil {
		return t, err
	}
	if err := c.Act(ctx); err != nil {
		return nil, t.Fail(ctx, err)
	}
	err = e.awaitBack(ctx, c.onTrial(), t.boot)
	switch {
	case err == nil:
	case c.Reboots && t.boot != "" && !slices.Contains([]string{"", t.boot}, e.boot(ctx, c.Node)):
		t.broken = err
	default:
		e.give(c.Node, true)
		return nil, err
	}
	return t, nil
}

// onTrial returns the change with its trial as a part of its check.
func (c Change) onTrial() Change {
	check := c.Check
	if c.Trial == nil {
		return c
	}
	c.Check = func(ctx context.Context, boot string, machine Machine, node KubeNode) (string, error) {
		if waiting, err := c.Trial(ctx, boot, machine, node); waiting != "" || err != nil || check == nil {
			return waiting, err
		}
		return check(ctx, boot, machine, node)
	}
	return c
}

// End waits until the changed node is back and uncordons it. A node that does not come back stays cordoned, and no other one gets a turn.
func (t *Turn) End(ctx context.Context) error {
	err := t.end(ctx)
	t.engine.give(t.change.Node, err != nil)
	return err
}

func (t *Turn) end(ctx context.Context) error {
	e, node := t.engine, t.change.Node
	if t.broken != nil {
		return t.broken
	}
	if t.change.After != nil {
		if err := t.change.After(ctx, t.boot); err != nil {
			return fmt.Errorf("%s stays cordoned: %w; no other node is changed. Fix it, and run up again", node.Name, err)
		}
	}
	if err := e.awaitBack(ctx, t.change, t.boot); err != nil {
		return err
	}
	if !t.change.Quiet {
		if err := e.uncordon(ctx, node); err != nil {
			return err
		}
	}
	e.Say("%s: is back", node.Name)
	if t.checks {
		return e.awaitChecks(ctx, t.change)
	}
	return nil
}

// Fail gives back the turn of a node whose change has failed, for a reason. The node is schedulable again if it runs as before. If it may
// be half changed, it stays cordoned until a later run finds it healthy. No other node gets a turn. It returns the reason with the node's
// name.
func (t *Turn) Fail(ctx context.Context, why error) error {
	e, node := t.engine, t.change.Node
	if t.broken != nil {
		why = errors.Join(why, t.broken)
	}
	if problem := t.altered(ctx); problem != "" {
		return t.leave(why, fmt.Errorf("%s stays cordoned: %s; the next run uncordons it once it is healthy", node.Name, problem))
	}
	return t.leave(why, e.undo(ctx, t.change))
}

// leave gives the turn back for a reason, and returns it with the node's name and what else is to be said.
func (t *Turn) leave(why, more error) error {
	t.engine.give(t.change.Node, true)
	return errors.Join(fmt.Errorf("%s: %w", t.change.Node.Name, why), more)
}

// altered returns why a cordoned node does not run as before its change; "" if it does, and for a node that did not answer before either.
func (t *Turn) altered(ctx context.Context) string {
	if t.change.Quiet {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	switch machine, err := t.engine.Cluster.Machine(ctx, t.change.Node); {
	case t.boot == "":
		return ""
	case err != nil:
		return "its Talos API does not answer: " + err.Error()
	case machine.Boot != t.boot:
		return "it has rebooted"
	case machine.Stage != stageRunning:
		return machine.StageProblem()
	}
	return ""
}

// prepare cordons and drains the node. The only control plane of a cluster without a working API server is changed all the same, because
// that may fix it.
func (t *Turn) prepare(ctx context.Context) error {
	e, node := t.engine, t.change.Node
	if t.change.Quiet {
		return nil
	}
	if e.alone(node) {
		e.Say("%s: is the only control plane, so no quorum is awaited: the Kubernetes API is away until it is back", node.Name)
		asking, cancel := context.WithTimeout(ctx, callTimeout)
		_, err := e.Cluster.Nodes(asking)
		cancel()
		if err != nil {
			e.Say("%s: is neither cordoned nor drained, because the Kubernetes API does not answer: %v", node.Name, err)
			return t.change.Undrained(ctx)
		}
	}
	if err := e.cordon(ctx, node); err != nil || !t.change.Drains {
		return err
	}
	if err := e.drain(ctx, node); err != nil || t.change.Drained == nil {
		return err
	}
	return e.Until(ctx, detachTimeout, 0, node.Name+"'s volumes", func(ctx context.Context) (string, error) {
		return t.change.Drained(ctx), nil
	})
}

// TryRelease is Release where an API server answers. Without one it only says so: the run that brings it back must not be stopped.
func (e *Engine) TryRelease(ctx context.Context) error {
	if err := e.Failed(); err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := e.Cluster.Nodes(asking); err != nil {
		e.Say("the Kubernetes API does not answer, so it is not known whether a node was left cordoned: %v", err)
		return nil
	}
	return e.Release(ctx)
}

// Release makes the nodes schedulable that an interrupted run has left cordoned, once they are healthy. It waits for them. It is an error
// if a turn of this engine has failed.
func (e *Engine) Release(ctx context.Context) error {
	if err := e.Failed(); err != nil {
		return err
	}
	nodes, err := e.nodes(ctx)
	if err != nil {
		return err
	}
	for _, node := range e.Nodes {
		switch left := nodes[node.Name]; {
		case !left.Ours:
		case !left.Unschedulable: // a person has uncordoned it
			if err := e.Cluster.Forget(ctx, node.Name); err != nil {
				return fmt.Errorf("%s: %w", node.Name, err)
			}
		default:
			e.Say("%s: an earlier run has left it cordoned", node.Name)
			if err := e.awaitBack(ctx, Change{Node: node}, ""); err != nil {
				return err
			}
			if err := e.uncordon(ctx, node); err != nil {
				return err
			}
		}
	}
	return nil
}

// nodes lists the Node objects; it tries again while the API server does not answer.
func (e *Engine) nodes(ctx context.Context) (map[string]KubeNode, error) {
	var nodes map[string]KubeNode
	err := e.Until(ctx, SpareTimeout, 0, "the Node objects", func(ctx context.Context) (string, error) {
		var err error
		if nodes, err = e.Cluster.Nodes(ctx); err != nil {
			return "the Kubernetes API does not answer: " + err.Error(), nil
		}
		return "", nil
	})
	return nodes, err
}

// Until is probe.Wait.Until with the engine's progress.
func (e *Engine) Until(
	ctx context.Context, limit, stable time.Duration, what string, look func(context.Context) (missing string, err error),
) error {
	return probe.Wait{Limit: limit, Stable: stable, Say: e.Say}.Until(ctx, what, look)
}

// others returns the declared nodes of a role except one.
func (e *Engine) others(of Node) []Node {
	return xslices.Filter(e.Nodes, func(node Node) bool { return node.Role == of.Role && node.Name != of.Name })
}

// list joins reasons.
func list(reasons []string) string { return strings.Join(reasons, "; ") }
