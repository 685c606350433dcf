package upgrade

import (
	"context"
	"fmt"
	"strings"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
)

// awaitStaticPods waits, before an upgrade begins, until the static pods of all control planes are ready: the turns of an upgrade that has
// begun would wait for them, and what corrects them may be the machine configurations, which come after this step. A run that goes on with
// an upgrade does not wait: what the earlier one has changed may be why one is not ready. Nor does a single control plane, for which no
// other one waits.
func (j *job) awaitStaticPods(ctx context.Context, plan versions.Plan, seen view) error {
	var controlPlanes []turn.Node
	for _, s := range seen {
		if s.node.IsControlPlane() && s.err == nil && s.answer.configured {
			controlPlanes = append(controlPlanes, s.node)
		}
	}
	for _, component := range versions.StaticPods {
		if begun := len(plan.Kubernetes[component]) < len(controlPlanes); begun || plan.Back || len(controlPlanes) == 1 {
			return nil
		}
	}
	err := j.engine.Until(ctx, turn.SpareTimeout, 0, "the static pods", func(ctx context.Context) (string, error) {
		var reasons []string
		for _, node := range controlPlanes {
			if machine, err := j.Machine(ctx, node); err == nil && machine.StaticPodsProblem() != "" {
				reasons = append(reasons, node.Name+": "+machine.StaticPodsProblem())
			}
		}
		return strings.Join(reasons, "; "), nil
	})
	if err != nil {
		return fmt.Errorf("%w; fix them, or take back kubernetes.version for one run, so that a corrected configuration comes first", err)
	}
	return nil
}

// upgradeStaticPod changes one component of a control plane once the API servers of all others are ready, and in the node's turn: the next
// one gets it only when this node, etcd and the checks of the stack file are well with it. A node that was not well before takes no turn,
// because the new version may be what fixes it. Nor does one that goes back.
func (j *job) upgradeStaticPod(
	ctx context.Context, plan versions.Plan, node turn.Node, component versions.Component, image string,
) error {
	if err := j.awaitOtherAPIServers(ctx, node); err != nil {
		return fmt.Errorf("%s on %s: %w", component, node.Name, err)
	}
	change := turn.Change{
		Node: node, Of: string(component), Quiet: true, Awaits: j.awaits(node),
		Act: func(ctx context.Context) error { return j.changeStaticPod(ctx, node, component, image) },
	}
	if !plan.Back && j.well(ctx, node) {
		return j.engine.Take(ctx, change)
	}
	if err := change.Act(ctx); err != nil {
		return fmt.Errorf("%s: %w", node.Name, err)
	}
	return nil
}

func (j *job) awaitOtherAPIServers(ctx context.Context, than turn.Node) error {
	return j.engine.Until(ctx, turn.SpareTimeout, 0, "the other API servers", func(ctx context.Context) (string, error) {
		for _, other := range j.serving {
			if other.Name == than.Name {
				continue
			}
			if _, err := j.Version(ctx, other); err != nil {
				return "the one of " + other.Name + " is not ready: " + err.Error(), nil
			}
		}
		return "", nil
	})
}

// well reports whether nothing is known to be wrong with a node.
func (j *job) well(ctx context.Context, node turn.Node) bool {
	machine, silent := j.Machine(ctx, node)
	nodes, unknown := j.machines.Nodes(ctx)
	return (silent != nil || machine.Problem() == "") && (unknown != nil || nodes[node.Name].Ready)
}

// changeStaticPod changes the image of a component and waits until it runs.
func (j *job) changeStaticPod(ctx context.Context, node turn.Node, component versions.Component, image string) error {
	if component == versions.APIServer {
		turn.StepAside(ctx, j, node, j.serving, j.Say)
	}
	what := fmt.Sprintf("%s on %s", component, node.Name)
	j.Say("%s: is changed to %s", what, image)
	if err := j.SetImage(ctx, node, component, image); err != nil {
		return err
	}
	err := j.engine.Until(ctx, podTimeout, turn.StableFor, what, func(ctx context.Context) (string, error) {
		return j.problem(ctx, node, component, image), nil
	})
	if err != nil {
		return j.broken(ctx, node, component, err)
	}
	return nil
}
