package talos

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// Hooks returns the hooks with which the hypervisor reboots a machine in its node's turn. In a preview, they say which machine may be
// rebooted, why, and how.
func (t *turns) Hooks(ctx *pulumi.Context, update machines.Update) (*pulumi.ResourceHookBinding, error) {
	node := update.Node
	announce, err := ctx.RegisterResourceHook(t.NameOf(node.Name, "reboot"), func(change *pulumi.ResourceHookArgs) error {
		changed := update.Reboots(change)
		if !ctx.DryRun() || len(changed) == 0 {
			return nil
		}
		return ctx.Log.Info(announcement(t.Cluster, node, changed), &pulumi.LogArgs{Resource: t.Component})
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, err
	}
	m := &machineUpdate{turns: t, Update: update}
	t.mu.Lock()
	t.vms = append(t.vms, m)
	t.mu.Unlock()
	start, err := ctx.RegisterResourceHook(t.NameOf(node.Name, "start"), func(*pulumi.ResourceHookArgs) error {
		return m.start(ctx.Context())
	}, nil)
	if err != nil {
		return nil, err
	}
	hooks, err := t.inTurn(ctx, update.Resource, node, func(change *pulumi.ResourceHookArgs) nodeChange {
		m.silent = update.Silent(change)
		return m.nodeChange(ctx.Context(), update.Reboots(change), update.Grows(change), update.Foreign(change))
	}, append(update.Before, announce)...)
	if err == nil {
		hooks.AfterUpdate = append(hooks.AfterUpdate, start)
	}
	return hooks, err
}

// machineUpdate is the update of a machine by its hypervisor. After an update that failed half-way, Pulumi runs the update again without a
// difference: then it does what is missing.
type machineUpdate struct {
	*turns
	machines.Update

	off    bool   // the machine was off before the update
	silent string // what to do if the node does not answer after the update; "" if nothing is known
}

// nodeChange returns the change of the node by an update of the changed inputs, after which these disks are bigger, and which waits until
// the drain has detached foreign disks. It returns nil for an update without a turn and without such disks.
func (m *machineUpdate) nodeChange(ctx context.Context, changed, grows []string, foreign func(context.Context) string) nodeChange {
	power := m.power(ctx)
	m.off = power.Off
	switch {
	case power.Off:
		m.say(m.Node.Name + ": takes no turn, because its VM is stopped")
		if foreign == nil {
			return nil
		}
		return func(_ context.Context, _ access, node turn.Node) (turn.Change, bool, error) {
			return turn.Change{Node: node, Drained: foreign}, false, nil
		}
	case len(changed) == 0 && len(power.Waiting) == 0:
		return nil
	case len(changed) == 0:
		m.say(fmt.Sprintf("%s: an earlier update of its VM is not complete: %s", m.Node.Name, strings.Join(power.Waiting, ", ")))
	}
	channel := slices.Contains(slices.Concat(changed, power.Waiting), "agent") && !m.Cluster.Talos.GuestAgent()
	return func(ctx context.Context, on access, node turn.Node) (turn.Change, bool, error) {
		if channel && m.runsGuestAgent(ctx, on, node) {
			return turn.Change{}, false, fmt.Errorf("talos.extensions: %s runs siderolabs/qemu-guest-agent, and its Talos would wait at each boot "+
				"for the channel that its VM loses; declare the extension again, or install Talos without it on all nodes first "+
				"(docs/nodes.md, Removing the guest agent)", node.Name)
		}
		reboots := false // whether the provider reboots is over when it has ended
		return turn.Change{
			Node: node, Of: ofVM, Drains: true, Drained: foreign,
			After: func(ctx context.Context, boot string) (err error) {
				reboots, err = m.complete(ctx, on, node, boot, grows)
				return err
			},
			Check: func(_ context.Context, boot string, machine turn.Machine, _ turn.KubeNode) (string, error) {
				if reboots && machine.Boot == boot {
					return "it has not rebooted yet", nil
				}
				return "", nil
			},
		}, true, nil
	}
}

// runsGuestAgent reports whether the guest agent is known to run on a node.
func (m *machineUpdate) runsGuestAgent(ctx context.Context, on access, node turn.Node) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	machine, err := on.Machine(ctx, node)
	return err == nil && machine.Runs(cluster.GuestAgentService)
}

// power asks for the power of the machine. What is not known keeps nothing from happening.
func (m *machineUpdate) power(ctx context.Context) machines.Power {
	power, err := m.Power(ctx)
	if err != nil {
		m.say(fmt.Sprintf("%s: it is not known whether an earlier update of its VM is complete: %v", m.Node.Name, err))
	}
	return power
}

// finishUpdates restarts, each in its node's turn, the VMs with changes that wait until the VM was off, and reboots the nodes with volumes
// that wait for a boot to use a bigger disk. An update that failed half-way, or a run that ended before the reboot, has left them: neither
// Pulumi nor what Proxmox VE says of a VM need show a difference any more. It does nothing without an API server, or after a turn that has
// failed.
func (t *turns) finishUpdates(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, lookTimeout)
	_, unread := t.cluster.Nodes(asking)
	cancel()
	if unread != nil || t.engine.Failed() != nil {
		return nil
	}
	var nodes []turn.Node
	finish := map[string]func(context.Context) error{}
	for _, m := range t.vms {
		node := turn.NodesOf([]cluster.Machine{m.Node})[0]
		if act := m.unfinished(ctx, node); act != nil {
			nodes, finish[node.Name] = append(nodes, node), act
		}
	}
	slices.SortStableFunc(nodes, turn.ByRole)
	return t.engine.InOrder(nodes, func(node turn.Node) error {
		return t.engine.Take(ctx, turn.Change{Node: node, Of: ofVM, Drains: true, Reboots: true, Act: finish[node.Name]})
	})
}

// unfinished returns what finishes an earlier update of the VM of a node; nil if there is nothing to finish, or nothing is known.
func (m *machineUpdate) unfinished(ctx context.Context, node turn.Node) func(context.Context) error {
	power := m.power(ctx)
	if len(power.Waiting) > 0 {
		m.say(fmt.Sprintf("%s: an earlier update of its VM is not complete: %s", node.Name, strings.Join(power.Waiting, ", ")))
		return m.finish
	}
	if power.Off {
		return nil
	}
	grows, err := m.cluster.Grows(ctx, node)
	if err != nil {
		m.say(fmt.Sprintf("%s: it is not known whether it uses all of its disks: %v", node.Name, err))
	}
	if len(grows) == 0 {
		return nil
	}
	m.say(fmt.Sprintf("%s: has to be rebooted, because Talos uses the space of a bigger disk from its next boot on: %s", node.Name,
		strings.Join(grows, ", ")))
	return func(ctx context.Context) error { return m.cluster.Reboot(ctx, node) }
}

// finish restarts the VM for the changes that wait.
func (m *machineUpdate) finish(ctx context.Context) error {
	if err := m.Restart(ctx); err != nil {
		return err
	}
	power, err := m.Power(ctx)
	if err == nil && len(power.Waiting) > 0 {
		err = fmt.Errorf("changes of its VM still wait after a restart: %s", strings.Join(power.Waiting, ", "))
	}
	return err
}

// complete reboots a node for the rest of an update, unless the provider has rebooted the VM since the given boot: for changes that wait
// until the VM was off, and for bigger disks, because Talos lets partitions grow when it boots. It reports whether it has rebooted the
// node.
func (m *machineUpdate) complete(ctx context.Context, on access, node turn.Node, boot string, grows []string) (reboots bool, err error) {
	var seen turn.Machine
	err = m.engine.Until(ctx, m.Lifecycle.ReturnTimeout.Duration, 0, node.Name+"'s answer", func(ctx context.Context) (string, error) {
		var err error
		if seen, err = on.Machine(ctx, node); err != nil {
			missing := "its Talos API does not answer: " + err.Error()
			if m.silent != "" {
				missing += "; " + m.silent
			}
			return missing, nil
		}
		return "", nil
	})
	if err != nil || boot != "" && seen.Boot != boot {
		return false, err
	}
	switch power, err := m.Power(ctx); {
	case err != nil:
		return false, err
	case len(power.Waiting) > 0:
		m.say(fmt.Sprintf("%s: its VM is restarted, because changes wait for that: %s", node.Name, strings.Join(power.Waiting, ", ")))
		return true, m.Restart(ctx)
	case len(grows) > 0:
		m.say(fmt.Sprintf("%s: reboots, because Talos uses the space of a bigger disk (%s) from its next boot on", node.Name,
			strings.Join(grows, ", ")))
		return true, on.Reboot(ctx, node)
	}
	return false, nil
}

// start starts a machine that was off before its update and still is: the provider starts only machines that it knows to be off.
func (m *machineUpdate) start(ctx context.Context) error {
	if !m.off {
		return nil
	}
	power, err := m.Power(ctx)
	if err != nil || !power.Off {
		return err
	}
	m.say(m.Node.Name + ": its VM is off, and is started")
	return m.Restart(ctx)
}

// announcement says how a machine is rebooted.
func announcement(c *cluster.Cluster, node cluster.Machine, changed []string) string {
	how := "after its turn has come it is cordoned, drained, changed and uncordoned once it is back"
	order := "control planes go first, one at a time"
	switch {
	case node.Role == cluster.Worker:
		order = fmt.Sprintf("after the control planes, %d at a time", c.Lifecycle.MaxUnavailable.Of(len(c.Machines())-len(c.ControlPlanes())))
	case len(c.ControlPlanes()) == 1:
		order = "it is the only control plane, so the Kubernetes API is away meanwhile"
	}
	return fmt.Sprintf("%s may reboot for its changed %s: %s (%s)", node.Name, strings.Join(changed, ", "), how, order)
}
