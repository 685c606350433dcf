package rotate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// etcd is what a run needs of the cluster to replace etcd's CA.
type etcd interface {
	// Turns returns the cluster in which control planes take turns.
	Turns() turn.Cluster
	// Stage changes what a node trusts from its next boot on.
	Stage(ctx context.Context, node turn.Node, trust Trust) error
	// Reboot makes a node reboot.
	Reboot(ctx context.Context, node turn.Node) error
	// Serves returns what is missing until the etcd of a node has certificates of the CA that issues, and answers.
	Serves(ctx context.Context, node turn.Node, trust Trust) string
}

// etcdCA is a run that replaces the CA of etcd, which only control planes have.
//
// etcd and the API server read their certificates for each new connection, but the CAs that they accept only when they start, and Talos
// restarts neither. So the new CA issues without a reboot, and a control plane accepts another set of CAs after a reboot: it gets that
// configuration with the reboot and not before, so that each later run sees from the configuration what the running etcd accepts.
type etcdCA struct {
	*job
	etcd   etcd
	engine *turn.Engine
}

func newEtcdCA(j *job, on etcd) etcdCA {
	declared := turn.Declared{Target: j.Target, TurnLimits: *j.Limits, TurnChecks: j.TurnChecks}
	declared.Nodes = slices.DeleteFunc(slices.Clone(j.Nodes), func(node turn.Node) bool { return j.Skip.Has(node.Name) })
	return etcdCA{j, on, &turn.Engine{Cluster: on.Turns(), Declared: declared, Say: j.Say}}
}

// check returns an error that names the members of etcd which the run cannot change. It also makes schedulable what an interrupted run has
// left cordoned.
func (j etcdCA) check(ctx context.Context, nodes []turn.Node) error {
	if err := j.coversMembers(ctx, nodes); err != nil {
		return err
	}
	return j.engine.Release(ctx)
}

// beforePass looks once more whether a control plane has joined meanwhile, with the CA that its first configuration had.
func (j etcdCA) beforePass(ctx context.Context, pass Pass, nodes []turn.Node) error {
	if pass == Accept {
		return nil
	}
	return j.coversMembers(ctx, nodes)
}

// coversMembers returns an error that names the members of etcd which are none of the control planes that are changed.
func (j etcdCA) coversMembers(ctx context.Context, nodes []turn.Node) error {
	members, err := j.members(ctx)
	if err != nil {
		return err
	}
	var behind []string
	for _, member := range members {
		if !named(j.inOrder(Accept, nodes), member.Name) {
			behind = append(behind, fmt.Sprintf("%s (id %016x)", member.Title(), member.ID))
		}
	}
	if len(behind) == 0 {
		return nil
	}
	return fmt.Errorf("these members of etcd would be left behind: %s; if one has just joined, run up again; if one leaves, declare it again "+
		"for this run, and remove it in a later one; %s", strings.Join(behind, ", "), lostMember)
}

func (j etcdCA) members(ctx context.Context) (members []talosapi.Member, err error) {
	err = j.until(ctx, silentTimeout, "the members of etcd", func(ctx context.Context) (string, error) {
		var err error
		members, err = turn.First(j.ControlPlanes(), func(asked turn.Node) ([]talosapi.Member, error) {
			return j.etcd.Turns().Members(ctx, asked)
		})
		if err != nil {
			return "they cannot be listed: " + err.Error(), nil
		}
		return "", nil
	})
	return members, err
}

// inOrder implements ca. A control plane that is not declared is no member any more, or check has named it.
func (j etcdCA) inOrder(_ Pass, nodes []turn.Node) []turn.Node {
	return xslices.Filter(turn.ControlPlanes(nodes), func(node turn.Node) bool { return named(j.Nodes, node.Name) })
}

func (etcdCA) remedy() string { return "fix them; " + lostMember }

// lostMember is the way out for a control plane that cannot be fixed.
const lostMember = "if a machine is lost, run talosctl -n CONTROL-PLANE etcd remove-member ID and kubectl delete node NAME, raise its " +
	"generation, and run up"

func (etcdCA) settles() time.Duration { return turn.StableFor }

// leftBehind implements ca. Workers have no CA of etcd, and check names members that are not declared.
func (j etcdCA) leftBehind(one sight, joined map[string]turn.KubeNode) error {
	if !named(j.ControlPlanes(), one.node.Name) {
		return nil
	}
	return talosCA{job: j.job}.leftBehind(one, joined)
}

func (j etcdCA) missing(ctx context.Context, _ Pass, node turn.Node, trust Trust) string {
	return j.etcd.Serves(ctx, node, trust)
}

// take implements ca. A control plane that accepts another set of CAs is drained and reboots in its turn.
func (j etcdCA) take(ctx context.Context, pass Pass, node turn.Node) error {
	if pass == Issue {
		return j.job.take(ctx, pass, node)
	}
	var next Trust
	changes := false
	err := j.until(ctx, nodeTimeout, node.Name, func(ctx context.Context) (string, error) {
		now, _, err := j.Look(ctx, node)
		if err != nil {
			return "its Talos API does not answer: " + err.Error(), nil
		}
		next, changes = pass.Next(now, j.certificates)
		return "", nil
	})
	if err != nil || !changes {
		return err
	}
	awaits, err := j.awaits(ctx, node)
	if err != nil {
		return err
	}
	return j.engine.Take(ctx, turn.Change{
		Node: node, Of: "etcd's CA", Drains: true, Reboots: true, Awaits: awaits,
		Act: func(ctx context.Context) error {
			if err := j.etcd.Stage(ctx, node, next); err != nil {
				return err
			}
			j.changed(node)
			return j.etcd.Reboot(ctx, node)
		},
		Check: func(ctx context.Context, _ string, _ turn.Machine, _ turn.KubeNode) (string, error) {
			switch now, _, err := j.Look(ctx, node); {
			case err != nil:
				return "its Talos API does not answer: " + err.Error(), nil
			case !same(now.Issuing, next.Issuing) || !Equal(now.All(), next.All()):
				return "it does not run the configuration that it was given: somebody else has changed it, and the next run goes on", nil
			}
			return j.missing(ctx, pass, node, next), nil
		},
	})
}

// awaits returns what the turn of a control plane waits for. Of two members, etcd needs both, and the run can neither make a third one nor
// remove one: so one reboots while the other is well, and etcd has no leader until it is back.
func (j etcdCA) awaits(ctx context.Context, node turn.Node) (turn.Awaited, error) {
	members, err := j.members(ctx)
	if err != nil || len(members) != 2 {
		return turn.Spared, err
	}
	j.Say("%s: etcd has two members and needs both: the Kubernetes API is away until it is back", node.Name)
	return turn.OthersWell, nil
}
