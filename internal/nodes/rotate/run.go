// Package rotate replaces the certificate authority of the Talos APIs, of the Kubernetes API or of etcd in a running cluster, in three
// passes, node by node. It looks at what each node has, and does what is missing: a second run finishes what an interrupted one began.
package rotate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/live"
	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

const (
	silentTimeout = 2 * time.Minute // how long nodes that do not answer are waited for, before anything is changed
	newTimeout    = 5 * time.Minute // the same for those without a Node object: one may just install Talos
	nodeTimeout   = 5 * time.Minute // until a node has made a pass: its new certificate is signed, and its API uses it
)

// machines is what a run needs of a cluster. Authorities are named by their index in the spec.
type machines interface {
	turn.VIPs
	snapshot.Source

	// Look returns what a node trusts, and its role.
	Look(ctx context.Context, node turn.Node) (Trust, cluster.Role, error)
	// Apply changes what a node trusts, and nothing else, without a reboot.
	Apply(ctx context.Context, node turn.Node, trust Trust) error
	// Joined returns the Node objects by name.
	Joined(ctx context.Context) (map[string]turn.KubeNode, error)
	// Unmet returns which of the checks fails, and why; "" if none does.
	Unmet(ctx context.Context, checks []cluster.Check) (string, error)
}

// asker proves what the servers of a node accept.
type asker interface {
	// Ask makes a new connection to a node, with the client certificate of an authority, and accepts servers of some authorities only.
	Ask(ctx context.Context, node turn.Node, client int, servers ...int) error
}

// ca is what the run for each CA does in its own way. The passes are the same.
type ca interface {
	// check returns why no pass can be made.
	check(ctx context.Context, nodes []turn.Node) error
	// beforePass does what the cluster needs before a pass.
	beforePass(ctx context.Context, pass Pass, nodes []turn.Node) error
	// inOrder returns the nodes that have the CA, in the order of a pass. They come with control planes first.
	inOrder(pass Pass, nodes []turn.Node) []turn.Node
	// leftBehind returns why a node of the cluster cannot get the new CA; nil if it can, or if nothing is lost when it does not: it has
	// not joined, or it is dead and leaves.
	leftBehind(one sight, joined map[string]turn.KubeNode) error
	// remedy is what a person does for nodes that would be left behind.
	remedy() string
	// take makes one pass on a node, and waits until it works with it.
	take(ctx context.Context, pass Pass, node turn.Node) error
	// missing returns what is missing until a node that trusts what a pass wants has made the pass.
	missing(ctx context.Context, pass Pass, node turn.Node, trust Trust) string
	// settles is how long nothing must be missing without a break.
	settles() time.Duration
}

// Run replaces the certificate authority, for a valid spec with its defaults. It writes to progress what it does and waits for.
func Run(ctx context.Context, spec Spec, progress io.Writer) (Report, error) {
	on, err := dial(ctx, &spec)
	if err != nil {
		return Report{}, err
	}
	defer on.close()
	return run(ctx, &spec, on, progress)
}

// job is one run of a spec.
type job struct {
	*Spec
	machines
	ca           ca
	certificates []string // of the authorities, in PEM
	report       Report
	*probe.Progress
}

func run(ctx context.Context, spec *Spec, on machines, progress io.Writer) (Report, error) {
	j := &job{Spec: spec, machines: on, certificates: spec.Certificates(), Progress: probe.Begin(progress),
		report: Report{Head: probe.Head{Kind: "rotate", Cluster: spec.Cluster}, Of: spec.Of, Generation: len(spec.Authorities)}}
	switch spec.Of {
	case Kubernetes:
		j.ca = kubernetesCA{j, on.(kubernetes)}
	case Etcd:
		j.ca = newEtcdCA(j, on.(etcd))
	default:
		j.ca = talosCA{j, on.(asker)}
	}
	ctx, cancel := probe.Within(ctx, spec.Longest())
	defer cancel()
	err := j.do(ctx)
	j.report.Took = j.Took()
	return j.report, err
}

func (j *job) do(ctx context.Context) error {
	nodes, err := []turn.Node(nil), j.RefuseSkipped()
	if err == nil {
		nodes, err = j.observe(ctx)
	}
	if err == nil && j.awaitNew(ctx) {
		nodes, err = j.observe(ctx)
	}
	if err == nil {
		err = j.ca.check(ctx, nodes)
	}
	if err == nil {
		err = j.awaitChecks(ctx, nodes)
	}
	if err != nil {
		return fmt.Errorf("this run has changed nothing: %w", err)
	}
	if j.report.Snapshot, err = j.Snapshots.Take(ctx, j.machines, j.Target, j.Started, j.Say); err != nil {
		return fmt.Errorf("this run has changed nothing: %w", err)
	}
	const goesOn = "all nodes still accept each other, and the next run goes on"
	for _, pass := range []Pass{Accept, Issue, Drop} {
		before := func() error { return j.ca.beforePass(ctx, pass, nodes) }
		if j.Of == Kubernetes && pass != Accept { // it restarts pods
			restart := before
			before = func() error {
				return j.keepingChecks(ctx, "the restart of workloads", max(turn.StableFor, j.Settle.Duration), restart)
			}
		}
		if err := before(); err != nil {
			return fmt.Errorf("%w; %s", err, goesOn)
		}
		all := j.ca.inOrder(pass, nodes)
		j.Say("pass %d of 3 on %d nodes: %s", pass+1, len(all), pass)
		for _, node := range all {
			err := j.keepingChecks(ctx, node.Name, j.ca.settles(), func() error { return j.ca.take(ctx, pass, node) })
			if err != nil {
				return fmt.Errorf("%w\n%s", err, goesOn)
			}
		}
	}
	return j.Snapshots.Prune(j.Cluster, j.report.Snapshot)
}

// sight is what one node has answered.
type sight struct {
	node turn.Node
	err  error
}

// observe returns the nodes of the cluster, control planes first: all that answer. Nodes that are not declared are among them, because they
// leave the cluster afterwards, by the same API. It waits for those that would lose the cluster. Others that do not answer are not there
// yet, or not any more.
func (j *job) observe(ctx context.Context) ([]turn.Node, error) {
	var nodes []turn.Node
	err := j.until(ctx, silentTimeout, "the nodes", func(ctx context.Context) (string, error) {
		seen := j.look(ctx, j.Nodes)
		if !slices.ContainsFunc(seen, func(s sight) bool { return s.err == nil && s.node.Role == cluster.ControlPlane }) {
			return "no control plane answers, and a CA is replaced only while the cluster runs: " + reasons(seen), nil
		}
		joined, err := j.Joined(ctx)
		if err != nil {
			return "the Kubernetes API does not answer, so it is not known which nodes are in the cluster: " + err.Error(), nil
		}
		var behind []sight
		nodes, j.report.Silent = nil, nil
		for _, one := range slices.Concat(seen, j.look(ctx, undeclared(joined, j.Nodes))) {
			switch err := j.ca.leftBehind(one, joined); {
			case err != nil:
				behind = append(behind, sight{one.node, err})
			case one.err == nil:
				nodes = append(nodes, one.node)
			default:
				j.report.Silent = append(j.report.Silent, one.node.Name)
			}
		}
		if len(behind) > 0 {
			return "these nodes would be left behind: " + reasons(behind) + "; " + j.ca.remedy(), nil
		}
		return "", nil
	})
	slices.SortStableFunc(nodes, turn.ByRole)
	return nodes, err
}

// undeclared returns the nodes that have joined and are not declared, by their names.
func undeclared(joined map[string]turn.KubeNode, declared []turn.Node) []turn.Node {
	var nodes []turn.Node
	for _, name := range slices.Sorted(maps.Keys(joined)) {
		if address := joined[name].Address; !named(declared, name) && address.IsValid() {
			nodes = append(nodes, turn.Node{Name: name, Role: cluster.Worker, Address: address})
		}
	}
	return nodes
}

// named reports whether one of the nodes has a name.
func named(nodes []turn.Node, name string) bool {
	return slices.ContainsFunc(nodes, func(node turn.Node) bool { return node.Name == name })
}

// awaitNew waits for the declared nodes that do not answer and have no Node object, and reports whether there are any. Such a node may not
// exist yet, and gets the new CA with its first configuration. But an interrupted run may have given it one, so that it installs Talos, or
// boots. With the former CA of Talos alone, nobody could ask its API any more, and it would get no certificates. With that of etcd, it
// would join, and then refuse the others.
func (j *job) awaitNew(ctx context.Context) bool {
	silent := xslices.Filter(j.ca.inOrder(Accept, j.Nodes), func(node turn.Node) bool {
		return slices.Contains(j.report.Silent, node.Name)
	})
	if len(silent) == 0 || j.Of == Kubernetes {
		return false
	}
	err := j.until(ctx, newTimeout, turn.Names(silent), func(ctx context.Context) (string, error) {
		return reasons(j.look(ctx, silent)), nil
	})
	if err != nil {
		j.Say("goes on without them: %v", err)
	}
	return true
}

// look asks nodes at once. The role is that of the machine configuration.
func (j *job) look(ctx context.Context, nodes []turn.Node) []sight {
	seen := make([]sight, len(nodes))
	probe.Each(nodes, func(i int, node turn.Node) {
		_, role, err := j.Look(ctx, node)
		if err == nil {
			node.Role = role
		}
		seen[i] = sight{node, err}
	})
	return seen
}

// reasons returns the errors of the nodes that have one.
func reasons(seen []sight) string {
	var list []string
	for _, one := range seen {
		if one.err != nil {
			list = append(list, one.node.Name+": "+one.err.Error())
		}
	}
	return strings.Join(list, "; ")
}

// take implements ca, for a change without a reboot.
func (j *job) take(ctx context.Context, pass Pass, node turn.Node) error {
	wait := probe.Wait{
		Limit: nodeTimeout, Look: turn.AsideTimeout + time.Minute, // one look waits for the virtual IP to move
		Stable: j.ca.settles(), Say: j.Say,
	}
	return wait.Until(ctx, fmt.Sprintf("%s (pass %d)", node.Name, pass+1), func(ctx context.Context) (string, error) {
		now, _, err := j.Look(ctx, node)
		if err != nil {
			return "its Talos API does not answer: " + err.Error(), nil
		}
		next, changes := pass.Next(now, j.certificates)
		if changes {
			if node.IsControlPlane() && j.Of == Kubernetes { // its API server restarts
				turn.StepAside(ctx, j, node, j.Nodes, j.Say)
			}
			if err := j.Apply(ctx, node, next); err != nil {
				if errors.As(err, new(live.RefusedError)) {
					return "", fmt.Errorf("%s: %w", node.Name, err)
				}
				return "its configuration cannot be changed: " + err.Error(), nil
			}
			j.changed(node)
		}
		return j.ca.missing(ctx, pass, node, next), nil
	})
}

// changed notes a node whose configuration the run has changed.
func (j *job) changed(node turn.Node) {
	if !slices.Contains(j.report.Changed, node.Name) {
		j.report.Changed = append(j.report.Changed, node.Name)
	}
}

// proves returns what is missing until a node has made a pass, by new connections.
func (j *job) proves(ctx context.Context, on asker, pass Pass, node turn.Node) string {
	declared := len(j.Authorities) - 1
	if pass == Accept {
		if err := on.Ask(ctx, node, declared, j.all()...); err != nil {
			return "it refuses a client certificate of the new CA: " + err.Error()
		}
		return ""
	}
	if err := on.Ask(ctx, node, declared, declared); err != nil {
		return "its API has no certificate of the new CA: " + err.Error()
	}
	if pass == Drop {
		for former := range declared {
			switch err := on.Ask(ctx, node, former, declared); {
			case err == nil:
				return fmt.Sprintf("it still accepts a client certificate of generation %d", former+1)
			case errors.Is(err, talosapi.ErrSilent):
				return "its Talos API does not answer: " + err.Error()
			}
		}
	}
	return ""
}

// until looks again and again until nothing is missing. look returns what is missing, or an error that ends the wait. A look may ask a node
// that nobody reaches with the credentials of each authority, and the Kubernetes API afterwards.
func (j *job) until(ctx context.Context, limit time.Duration, what string, look func(context.Context) (string, error)) error {
	wait := probe.Wait{Limit: limit, Look: 10*time.Second + time.Duration(len(j.Authorities))*talosapi.CallTimeout, Say: j.Say}
	return wait.Until(ctx, what, look)
}
