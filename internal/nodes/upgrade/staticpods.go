package upgrade

import (
	"context"
	"fmt"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
)

// upgradeStaticPod changes one component of a control plane in the node's turn: in a run, the next one gets it only when this node, etcd
// and the checks of the stack file are well with it. What else is wrong with other nodes is not awaited: the new release may be what fixes
// it, or the machine configurations, which come after this step.
//
// A node that is not well itself takes no turn, because it need not be well afterwards. Nor does one that goes back.
func (j *job) upgradeStaticPod(
	ctx context.Context, plan versions.Plan, node turn.Node, component versions.Component, image string,
) error {
	what := fmt.Sprintf("%s on %s", component, node.Name)
	problem := ""
	if !plan.Back {
		problem = j.awaitWell(ctx, node)
	}
	if err := j.spares(ctx, node, plan.Back || problem != ""); err != nil {
		return fmt.Errorf("%s is not changed: %w", what, err)
	}
	change := turn.Change{
		Node: node, Of: string(component), Quiet: true, Awaits: turn.Nothing,
		Act: func(ctx context.Context) error { return j.changeStaticPod(ctx, node, component, image) },
	}
	switch {
	case plan.Back:
	case problem != "":
		j.Say("%s: takes no turn, because the new release may fix %s: %s", what, node.Name, problem)
	default:
		return j.engine.Take(ctx, change)
	}
	if err := change.Act(ctx); err != nil {
		return fmt.Errorf("%s: %w", node.Name, err)
	}
	return nil
}

// awaitWell returns what is wrong with a node; "" if nothing. What the restart of an API server has stopped has some time to come back. The
// error of the wait says no more than the problem.
func (j *job) awaitWell(ctx context.Context, node turn.Node) (problem string) {
	_ = j.engine.Until(ctx, wellTimeout, 0, node.Name+"'s health", func(ctx context.Context) (string, error) {
		problem = ""
		if machine, err := j.Machine(ctx, node); err == nil {
			problem = machine.Problem()
		}
		if nodes, err := j.machines.Nodes(ctx); err == nil && problem == "" && !nodes[node.Name].Ready {
			problem = "its Node is not Ready"
		}
		return problem, nil
	})
	return problem
}

// spares waits until the cluster can spare the API server of a node, and the checks of the stack file hold; not those if the change may be
// what fixes them.
func (j *job) spares(ctx context.Context, node turn.Node, fixes bool) error {
	return j.engine.Until(ctx, turn.SpareTimeout, 0, node.Name+"'s turn", func(ctx context.Context) (string, error) {
		for _, other := range j.serving {
			if other.Name == node.Name {
				continue
			}
			if _, err := j.Version(ctx, other); err != nil {
				return "the API server of " + other.Name + " is not ready: " + err.Error(), nil
			}
		}
		if fixes {
			return "", nil
		}
		return turn.Unmet(ctx, j.Unmet, j.Checks), nil
	})
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
