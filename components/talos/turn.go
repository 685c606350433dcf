package talos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/internals"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/live"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// access reads and changes a running cluster.
type access interface {
	turn.Cluster

	// Configured reports whether a machine has a configuration; an error if it does not answer.
	Configured(ctx context.Context, node turn.Node) (bool, error)
	// Configure gives a machine without a configuration its first one.
	Configure(ctx context.Context, node turn.Node, configuration string) error
	// HoldsEtcd reports whether a machine has data of etcd.
	HoldsEtcd(ctx context.Context, node turn.Node) (bool, error)
	// Version asks the API server of a control plane for its version, once it is ready.
	Version(ctx context.Context, node turn.Node) (string, error)
	// Effect asks a node what a machine configuration would do to it, and for which part.
	Effect(ctx context.Context, node turn.Node, configuration string) (effect live.Effect, part string, err error)
	// Stage gives a node a machine configuration that it has from its next boot on. undo gives it the one that it kept before.
	Stage(ctx context.Context, node turn.Node, configuration string) (undo func(context.Context) error, err error)
	// Try makes a node run a machine configuration for this time, unless another one comes.
	Try(ctx context.Context, node turn.Node, configuration string, within time.Duration) error
	// Runs reports whether a node runs a machine configuration.
	Runs(ctx context.Context, node turn.Node, configuration string) (bool, error)
	// Reboot makes a node reboot.
	Reboot(ctx context.Context, node turn.Node) error
	// Grows returns the volumes of a node that become bigger at its next boot, because their disks have grown since the last one.
	Grows(ctx context.Context, node turn.Node) (volumes []string, err error)
	// UnknownGates returns the feature gates of a machine configuration that the running Kubernetes does not know, each with its path.
	UnknownGates(ctx context.Context, configuration string) ([]string, error)
	// StaticPods returns why a static pod of a node does not run as configured; "" if all do.
	StaticPods(ctx context.Context, node turn.Node) (problem string, err error)
	turn.VIPs
}

// turns gives the nodes of a running cluster their turns while a run changes their VMs and their configurations. A turn begins in the hook
// before the update of a resource, and ends in the hook after it. Pulumi's engine runs both hooks and the update in one of its slots, so a
// node in its turn needs no slot that a waiting node holds.
type turns struct {
	machines.Owner

	dial     func(context.Context) (access, error) // connects to the cluster
	declared turn.Declared                         // with all nodes that are not left out
	say      func(string)                          // prints a line of progress

	once    sync.Once
	cluster access
	engine  *turn.Engine
	problem error

	looks sync.Mutex  // is held while etcd is awaited
	idle  bool        // etcd was awaited in vain
	ran   atomic.Bool // etcd has run in this run

	mu    sync.Mutex
	open  map[string]*turn.Turn // by URN of the resource that is updated
	vms   []*machineUpdate      // of all nodes that are not left out
	given map[string]bool       // names of nodes that get their first configuration in this run

	unborn func() bool // whether no control plane has data of etcd; asked once
}

// newTurns returns the turns of a cluster. The credentials come from the state, or from the machine secrets that this run has created.
func (r *registrar) newTurns(ctx *pulumi.Context, client machine.ClientConfigurationOutput) *turns {
	t := &turns{Owner: r.Owner, declared: turn.DeclaredOf(r.Cluster, r.Serving(r.Machines())), open: map[string]*turn.Turn{},
		given: map[string]bool{}}
	t.unborn = sync.OnceValue(func() bool { return t.hasNoEtcd(ctx.Context()) })
	t.say = func(line string) {
		// For the display only: a run that succeeds has no diagnostics.
		_ = ctx.Log.Info(line, &pulumi.LogArgs{Resource: r.Component, Ephemeral: true})
	}
	if t.dial = r.args.dial; t.dial != nil {
		return t
	}
	t.dial = func(ctx context.Context) (access, error) {
		result, err := internals.UnsafeAwaitOutput(ctx, client)
		if err != nil {
			return nil, err
		}
		client, known := result.Value.(machine.ClientConfiguration)
		if !known {
			return nil, errors.New("the client configuration of the machine secrets is not known")
		}
		credentials := live.Credentials{CA: client.CaCertificate, Certificate: client.ClientCertificate, Key: client.ClientKey}
		return live.Dial(ctx, credentials.Config(), t.declared.Nodes)
	}
	return t
}

// connect connects to the cluster, once.
func (t *turns) connect(ctx context.Context) error {
	t.once.Do(func() {
		if t.cluster, t.problem = t.dial(ctx); t.problem != nil {
			return
		}
		t.engine = &turn.Engine{
			Cluster: t.cluster, Declared: t.declared,
			Say: func(format string, args ...any) { t.say(fmt.Sprintf(format, args...)) },
		}
	})
	return t.problem
}

// nodeChange returns how a node is changed by an update of one of its resources, and whether the node takes a turn for it. The Act of the
// change, if there is one, comes before the update. An error refuses the update.
type nodeChange func(ctx context.Context, on access, node turn.Node) (change turn.Change, takes bool, err error)

// begin begins the turn of a node for the update of a resource, if the update needs one. A machine without a configuration takes none, nor
// does any while the cluster has no etcd: there is nothing to interrupt.
func (t *turns) begin(ctx context.Context, urn string, node turn.Node, ofNode nodeChange) error {
	if err := t.connect(ctx); err != nil {
		return fmt.Errorf("%s: %w", node.Name, err)
	}
	if configured, err := t.cluster.Configured(ctx, node); err == nil && !configured {
		return nil
	}
	change, takes, err := ofNode(ctx, t.cluster, node)
	if err != nil {
		return fmt.Errorf("%s: %w", node.Name, err)
	}
	if !takes {
		return change.Undrained(ctx)
	}
	if !t.runs(ctx) {
		return t.actAlone(ctx, change)
	}
	begun, err := t.engine.Start(ctx, change)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[urn] = begun
	return nil
}

// What a change is of.
const ofVM, ofConfiguration = "the VM", "the configuration"

// lookTimeout is the longest look at one machine.
const lookTimeout = 10 * time.Second

// end ends the turn of an updated resource: once the node is back.
func (t *turns) end(ctx context.Context, urn string) error {
	if open := t.close(urn); open != nil {
		return open.End(ctx)
	}
	return nil
}

// fail ends the turn of a resource whose update has failed. Pulumi reports why.
func (t *turns) fail(ctx context.Context, urn string, reasons []string) {
	if open := t.close(urn); open != nil {
		t.say(open.Fail(ctx, errors.New(strings.Join(reasons, "; "))).Error())
	}
}

// close returns the open turn of a resource, and forgets it; nil if it has none.
func (t *turns) close(urn string) *turn.Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	open := t.open[urn]
	delete(t.open, urn)
	return open
}

// release completes what an earlier run has left half-way at VMs, and uncordons the nodes that a turn of this or an earlier run has left
// cordoned, once they are back. Without an API server it does nothing: the gates that follow report the API server.
func (t *turns) release(ctx context.Context) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	if err := t.finishUpdates(ctx); err != nil {
		return err
	}
	return t.engine.TryRelease(ctx)
}

// inTurn returns the hooks with which a resource of a node is updated in the node's turn. changeFor returns nil for one without a turn.
// first are hooks that come before the turn: an error in a hook after its begin would leave the turn open.
func (t *turns) inTurn(
	ctx *pulumi.Context, name string, node cluster.Machine, changeFor func(*pulumi.ResourceHookArgs) nodeChange, first ...*pulumi.ResourceHook,
) (*pulumi.ResourceHookBinding, error) {
	background, taking := ctx.Context(), turn.NodesOf([]cluster.Machine{node})[0]
	before, err := ctx.RegisterResourceHook(name+"-turn", func(args *pulumi.ResourceHookArgs) error {
		ofNode := changeFor(args)
		if ofNode == nil {
			return nil
		}
		return t.begin(background, string(args.URN), taking, ofNode)
	}, nil)
	if err != nil {
		return nil, err
	}
	after, err := ctx.RegisterResourceHook(name+"-back", func(args *pulumi.ResourceHookArgs) error {
		return t.end(background, string(args.URN))
	}, nil)
	if err != nil {
		return nil, err
	}
	failed, err := ctx.RegisterErrorHook(name+"-failed", func(args *pulumi.ErrorHookArgs) (retry bool, err error) {
		t.fail(background, string(args.URN), args.Errors)
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	return &pulumi.ResourceHookBinding{
		BeforeUpdate: append(first, before), AfterUpdate: []*pulumi.ResourceHook{after}, OnError: []*pulumi.ErrorHook{failed},
	}, nil
}

// configurationHooks makes a changed machine configuration take effect in the node's turn, where a node needs one.
func (t *turns) configurationHooks(ctx *pulumi.Context, name string, node cluster.Machine) (*pulumi.ResourceHookBinding, error) {
	return t.inTurn(ctx, name, node, func(args *pulumi.ResourceHookArgs) nodeChange {
		text := component.Plain(args.NewInputs["machineConfigurationInput"])
		if !text.IsString() {
			return nil
		}
		if t.bare(ctx.Context(), node) {
			t.gives(node)
		}
		return t.configures(text.StringValue())
	})
}

// configures plans a change of a machine configuration. A configuration that the node refuses takes no turn: the provider reports it. Nor
// does a configuration that the node runs already, after an upgrade or a killed run.
//
// If Talos does not reboot for a change that needs a reboot, the turn gives the node the configuration for its next boot and reboots the
// node. The provider, which comes then, finds no difference. A run that ends in between leaves the difference in Pulumi's state, and
// perhaps on the node: the next run goes on. The other order would lose the reboot, because neither would show a difference any more.
func (t *turns) configures(configuration string) nodeChange {
	return func(ctx context.Context, on access, node turn.Node) (turn.Change, bool, error) {
		change := turn.Change{Node: node, Of: ofConfiguration, Drains: true}
		if err := t.checkGates(ctx, on, node, configuration); err != nil {
			return change, false, err
		}
		effect, part, err := t.effect(ctx, on, node, configuration)
		switch effect {
		case live.Reboots:
			change.Reboots = true
		case live.NeedsReboot:
			change.Reboots = true
			change.Act = func(ctx context.Context) error {
				t.say(fmt.Sprintf("%s: reboots for %s", node.Name, part))
				undo, err := on.Stage(ctx, node, configuration)
				if err != nil { // the node may have it all the same
					return unstaged(ctx, undo, err)
				}
				switch err := on.Reboot(ctx, node); {
				case errors.Is(err, talosapi.ErrSilent): // it may reboot, and keeps it
					return fmt.Errorf("%w; %s", err, kept)
				case err != nil:
					return unstaged(ctx, undo, err)
				}
				return nil
			}
		case live.RestartsCRI:
			before, err := on.Machine(ctx, node)
			if err != nil {
				return change, false, err
			}
			t.say(fmt.Sprintf("%s: Talos restarts containerd for %s", node.Name, part))
			change = turn.Change{Node: node, Of: ofConfiguration, Quiet: true, Check: turn.Restarted("cri", before)}
		case live.NeedsMachine:
			return change, false, fmt.Errorf("%s of a machine does not change; raise its generation, which replaces the machine", part)
		case live.NeedsCluster:
			return change, false, fmt.Errorf("%s; declare the former one, and make another cluster for another range", part)
		case live.KeepsRunning:
			return t.keepsRunning(ctx, on, node), true, nil
		case live.MayIsolate:
			return t.tries(on, t.keepsRunning(ctx, on, node), part, configuration, tryFor), true, nil
		case live.MayIsolateAndRestartsPods:
			return t.tries(on, t.restartsPods(ctx, on, node, part), part, configuration, tryPodsFor), true, nil
		case live.RestartsPods:
			change = t.restartsPods(ctx, on, node, part)
			change.KeepsEtcd = true
			return change, true, nil
		case live.Unchanged, live.Refused:
			return change, false, nil
		default:
			t.say(fmt.Sprintf("%s: does not say whether the configuration reboots it, so it takes a turn, and what needs a reboot may wait for "+
				"the next one: %v", node.Name, err))
		}
		return change, true, nil
	}
}

// kept is what becomes of a staged configuration that is not taken back.
const kept = "its next boot may take the changed configuration, also if the former one is declared again"

// unstaged takes a configuration back that was staged for a reboot, and returns why the node has not rebooted.
func unstaged(ctx context.Context, undo func(context.Context) error, why error) error {
	if err := undo(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("%w; %s: %w", why, kept, err)
	}
	return why
}

// checkGates refuses a configuration with feature gates with which a component of Kubernetes would not start. If no API server answers,
// nothing is refused: the turn ends at the first node.
func (t *turns) checkGates(ctx context.Context, on access, node turn.Node, configuration string) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	unknown, err := on.UnknownGates(ctx, configuration)
	if err != nil {
		t.say(fmt.Sprintf("%s: its feature gates are not compared with those that Kubernetes knows: %v", node.Name, err))
		return nil
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%s; correct the name, or remove it", strings.Join(unknown, "; "))
	}
	return nil
}

// keepsRunning plans a change that interrupts nothing. It takes a turn all the same, so that a second node is changed only when the first
// one is healthy. A Node object that is not Ready before, perhaps because Cilium is missing, need not be so afterwards.
func (t *turns) keepsRunning(ctx context.Context, on access, node turn.Node) turn.Change {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	nodes, err := on.Nodes(ctx)
	change := turn.Change{
		Node: node, Of: ofConfiguration, Quiet: true, Awaits: turn.OthersWell, Unready: err != nil || !nodes[node.Name].Serves(),
	}
	if machine, err := on.Machine(ctx, node); err == nil && machine.Problem() != "" {
		t.say(fmt.Sprintf("%s: does not wait for other nodes, because its change may fix it: %s", node.Name, machine.Problem()))
		change.Awaits = turn.Nothing
	}
	change.Check = turn.Follows(on.StaticPods, node)
	if change.Unready {
		change.Check = turn.Follows(nil, node)
	}
	return change
}

// How long a node tries a configuration. In this time the cluster must be healthy with it, also if an API server restarts for it: without
// one, controller manager and scheduler end, and the kubelet starts them again after up to 5 minutes.
const (
	tryFor     = time.Minute
	tryPodsFor = 10 * time.Minute
)

// tries extends a change by a trial, because nobody may reach the node after it. The node tries the configuration: if nobody reaches the
// node within a time, it returns to its old configuration. It must run the new configuration until the provider applies it for good.
//
// The trial takes the place of the change's Act. Nothing else may be tried before, not even a configuration without the virtual IP: Talos
// would return to that one (RollbackToConfigAfter in v1alpha1_runtime.go).
func (t *turns) tries(on access, change turn.Change, part, configuration string, within time.Duration) turn.Change {
	node := change.Node
	change.Trial = func(ctx context.Context, _ string, _ turn.Machine, _ turn.KubeNode) (string, error) {
		switch runs, err := on.Runs(ctx, node, configuration); {
		case err != nil:
			return "its Talos API does not answer: " + err.Error(), nil
		case !runs:
			return "", errors.New("it has taken its former configuration back, without " + part)
		}
		return "", nil
	}
	change.Act = func(ctx context.Context) error {
		t.say(fmt.Sprintf("%s: tries %s, and takes its former configuration back if nobody reaches it", node.Name, part))
		if err := on.Try(ctx, node, configuration, within); err != nil {
			return err
		}
		err := t.engine.Until(ctx, within, 0, node.Name+" with "+part, func(ctx context.Context) (string, error) {
			return change.Trial(ctx, "", turn.Machine{}, turn.KubeNode{})
		})
		if err != nil {
			return fmt.Errorf("nobody reaches it after the change of %s: %w; it takes its former configuration back within %s", part, err, within)
		}
		return nil
	}
	return change
}

// restartsPods plans a change for which the kubelet starts static pods again: the API server of this control plane is away meanwhile. If
// its static pods are unhealthy before, the change may fix them.
func (t *turns) restartsPods(ctx context.Context, on access, node turn.Node, part string) turn.Change {
	change := t.keepsRunning(ctx, on, node)
	change.Check = turn.Follows(on.StaticPods, node)
	problem, err := on.StaticPods(ctx, node)
	if err != nil {
		problem = err.Error()
	}
	if problem != "" {
		t.say(fmt.Sprintf("%s: does not wait for other nodes, because its change may fix it: %s", node.Name, problem))
		change.Awaits = turn.Nothing
		return change
	}
	if change.Awaits != turn.Nothing {
		change.Awaits = turn.Spared
	}
	change.Act = func(ctx context.Context) error {
		t.say(fmt.Sprintf("%s: the kubelet starts static pods again for %s", node.Name, part))
		turn.StepAside(ctx, on, node, t.declared.Nodes, t.engine.Say)
		return nil
	}
	return change
}

// effect asks a node what a configuration would do to it. A node that does not answer is asked again for a while: it may still boot, after
// the turn of a killed run.
func (t *turns) effect(ctx context.Context, on access, node turn.Node, text string) (effect live.Effect, part string, problem error) {
	_ = t.engine.Until(ctx, turn.SilentTimeout, 0, node.Name+"'s answer", func(ctx context.Context) (string, error) {
		if effect, part, problem = on.Effect(ctx, node, text); effect == live.Unknown {
			return fmt.Sprintf("it does not say what the configuration does: %v", problem), nil
		}
		return "", nil
	})
	return effect, part, problem
}

// rejoinHooks returns the hook that waits, after the first configuration of a replaced machine, until its node is back.
func (t *turns) rejoinHooks(ctx *pulumi.Context, name string, node cluster.Machine) ([]*pulumi.ResourceHook, error) {
	background, joins := ctx.Context(), turn.NodesOf([]cluster.Machine{node})[0]
	hook, err := ctx.RegisterResourceHook(name+"-joined", func(*pulumi.ResourceHookArgs) error {
		if err := t.connect(background); err != nil {
			return fmt.Errorf("%s: %w", joins.Name, err)
		}
		return t.engine.AwaitJoined(background, joins)
	}, nil)
	return []*pulumi.ResourceHook{hook}, err
}

// remember registers a resource that stores a checksum of each node's VM and configuration, after the resources in after. It is updated
// after all nodes were changed. Its hook uncordons nodes that are still cordoned, and fails while a node is not back: after a failed or
// interrupted run, the next run gets here again, because the state still has the old checksums.
//
// It is protected, and deleted before the machines: a destroy without a preview deletes what is not protected, before it refuses the rest.
func (t *turns) remember(ctx *pulumi.Context, nodes []node, after []pulumi.Resource) (pulumi.Resource, error) {
	background, name := ctx.Context(), t.NameOf("turns")
	hook, err := ctx.RegisterResourceHook(name, func(*pulumi.ResourceHookArgs) error { return t.release(background) }, nil)
	if err != nil {
		return nil, err
	}
	announce, err := t.announceReturns(ctx, name)
	if err != nil {
		return nil, err
	}
	sums := pulumi.StringMap{}
	for _, node := range nodes {
		if t.Lifecycle.Skip.Has(node.Node.Name) { // so that the hook runs once the node is back
			sums[node.Node.Name] = pulumi.String(leftOut)
		} else {
			sums[node.Node.Name] = node.sum
		}
	}
	return pulumi.NewStash(ctx, name, &pulumi.StashArgs{Input: sums}, pulumi.Parent(t.Component), pulumi.DependsOn(after),
		pulumi.Protect(true), pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{announce, hook}}))
}
