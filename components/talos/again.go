package talos

import (
	"context"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// gives remembers that the provider gives a node its first configuration in this run: the node may not have left maintenance mode yet.
func (t *turns) gives(node cluster.Machine) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.given[node.Name] = true
}

func (t *turns) gave(node cluster.Machine) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.given[node.Name]
}

// giveAgain gives a node the configuration again that an earlier run gave it, if its installation has failed: a machine that cannot pull
// its installer boots from the image after twenty minutes, with nothing on its disk, in maintenance mode. The provider gives a
// configuration once, and finds nothing to change then. The gates wait for what follows.
func (t *turns) giveAgain(ctx *pulumi.Context, of cluster.Machine, apply *machine.ConfigurationApply, configuration pulumi.StringOutput) {
	if t.Lifecycle.Skip.Has(of.Name) {
		return
	}
	node := turn.NodesOf([]cluster.Machine{of})[0]
	pulumi.All(apply.ID(), configuration).ApplyT(func(args []any) error {
		text, known := args[1].(string)
		if !known || t.gave(of) || !t.bare(ctx.Context(), of) || !t.neverJoined(ctx.Context(), node) {
			return nil
		}
		what := node.Name + ": is in maintenance mode and has never joined, so its installation has failed; it gets its configuration again"
		if err := t.cluster.Configure(ctx.Context(), node, text); err != nil {
			what = fmt.Sprintf("%s, but does not take it: %v", what, err)
		}
		return ctx.Log.Warn(what, &pulumi.LogArgs{Resource: apply})
	})
}

// bare reports whether a machine answers and has no configuration.
func (t *turns) bare(ctx context.Context, of cluster.Machine) bool {
	if t.connect(ctx) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	configured, err := t.cluster.Configured(ctx, turn.NodesOf([]cluster.Machine{of})[0])
	return err == nil && !configured
}

// neverJoined reports whether a node never was part of the cluster. A control plane that was, and has lost its disk, may not come back as
// it is: etcd still has its member (docs/nodes.md, Replacing a node).
func (t *turns) neverJoined(ctx context.Context, node turn.Node) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	nodes, err := t.cluster.Nodes(ctx)
	if err != nil {
		return t.unborn()
	}
	_, known := nodes[node.Name]
	return !known && (node.Role == cluster.Worker || !t.isMember(ctx, node))
}

// isMember reports whether etcd has a member of a control plane, or is not known to have none.
func (t *turns) isMember(ctx context.Context, node turn.Node) bool {
	for _, other := range turn.ControlPlanes(t.declared.Nodes) {
		members, err := t.cluster.Members(ctx, other)
		if err != nil || len(members) == 0 {
			continue
		}
		for _, member := range members {
			if member.Name == node.Name {
				return true
			}
		}
		return false
	}
	return true
}

// hasNoEtcd reports whether no control plane has data of etcd: all answer, and there is no cluster yet that a node could disturb.
func (t *turns) hasNoEtcd(ctx context.Context) bool {
	asked := turn.ControlPlanes(t.declared.Nodes)
	if len(asked) < len(t.ControlPlanes()) { // one that is left out may have etcd
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	for _, node := range asked {
		configured, err := t.cluster.Configured(ctx, node)
		if err == nil && configured {
			configured, err = t.cluster.HoldsEtcd(ctx, node)
		}
		if err != nil || configured {
			return false
		}
	}
	return true
}
