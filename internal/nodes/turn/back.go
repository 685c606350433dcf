package turn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
)

// awaitBack waits until a changed node is in service again: with another boot id if the change reboots it, with all that the change's own
// check demands, its Talos services healthy, its Node object Ready with an agent of Cilium, and a control plane a voting member of etcd.
func (e *Engine) awaitBack(ctx context.Context, c Change, boot string) error {
	last := ""
	err := e.Until(ctx, e.ReturnTimeout.Duration, StableFor, c.Node.Name+"'s return", func(ctx context.Context) (string, error) {
		waiting, err := e.missing(ctx, c, boot)
		if err != nil && last != "" {
			err = fmt.Errorf("%w; before that, %s", err, last)
		}
		last = waiting
		return waiting, err
	})
	if err != nil {
		stays := ", and stays cordoned"
		if c.Quiet {
			stays = ""
		}
		return fmt.Errorf("%s is not back%s: %w; no other node is changed. Fix it, and run up again%s", c.Node.Name, stays, err,
			e.Quote(ctx, c.Node))
	}
	return nil
}

// AwaitJoined waits until a node with another machine is a part of the cluster again: its Talos services are healthy, it has a Node object,
// and a control plane is a voting member of etcd. It need not be Ready, because what it lacks may come later in the run.
func (e *Engine) AwaitJoined(ctx context.Context, node Node) error {
	err := e.Until(ctx, e.ReturnTimeout.Duration, StableFor, node.Name+"'s return", func(ctx context.Context) (string, error) {
		if waiting, err := e.missing(ctx, Change{Node: node, Unready: true}, ""); waiting != "" || err != nil {
			return waiting, err
		}
		nodes, err := e.Cluster.Nodes(ctx)
		if err != nil {
			return "the Kubernetes API does not answer: " + err.Error(), nil
		}
		if _, exists := nodes[node.Name]; !exists {
			return "it has no Node object", nil
		}
		return "", nil
	})
	if err != nil {
		return fmt.Errorf("%s has not joined again: %w; no other node is changed. Fix it, and run up again%s", node.Name, err,
			e.Quote(ctx, node))
	}
	e.Say("%s: has joined again", node.Name)
	return nil
}

// Quote returns what the components of a node that are not well have written last, below each other; "" if nothing. It asks although ctx
// may have ended.
func (e *Engine) Quote(ctx context.Context, node Node) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	var text strings.Builder
	for _, line := range e.Cluster.LastLines(ctx, node) {
		text.WriteString("\n  " + line)
	}
	return text.String()
}

// missing returns what a changed node lacks; an error if waiting cannot fix it.
func (e *Engine) missing(ctx context.Context, c Change, boot string) (string, error) {
	machine, err := e.Cluster.Machine(ctx, c.Node)
	if err != nil {
		return "its Talos API does not answer: " + err.Error(), nil
	}
	if c.Reboots && boot != "" && machine.Boot == boot {
		return "it has not rebooted yet", nil
	}
	nodes, err := e.Cluster.Nodes(ctx)
	if err != nil && !c.Unready {
		return "the Kubernetes API does not answer: " + err.Error(), nil
	}
	at, exists := nodes[c.Node.Name]
	if c.Check != nil {
		if waiting, err := c.Check(ctx, boot, machine, at); waiting != "" || err != nil {
			return waiting, err
		}
	}
	switch {
	case machine.Stage != stageRunning:
		return machine.StageProblem(), nil
	case servicesProblem(machine) != "":
		return servicesProblem(machine), nil
	case c.Unready:
	case !exists:
		return "it has no Node object", nil
	case !at.Serves():
		return at.problem(), nil
	case at.Boot != "" && machine.Boot != "" && at.Boot != machine.Boot:
		return "its kubelet has not reported since the reboot", nil
	}
	if c.Node.IsControlPlane() {
		return e.memberProblem(ctx, c.Node)
	}
	return "", nil
}

// Restarted returns a check of a change for which Talos restarts a service by itself, some time after it has taken the change. before is
// what the machine reported before the change. A restart that has not come within RestartTimeout does not come: what the service reads may
// be the same as before. Then the static pods must be ready, too.
func Restarted(service string, before Machine) Check {
	var since time.Time
	return func(_ context.Context, _ string, machine Machine, _ KubeNode) (string, error) {
		if since.IsZero() {
			since = time.Now()
		}
		same := machine.Boot == before.Boot && machine.Services[service].Since.Equal(before.Services[service].Since)
		if same && time.Since(since) < RestartTimeout {
			return service + " has not restarted yet", nil
		}
		return machine.staticPodsProblem(), nil
	}
}

// Follows returns a check of a change that a node takes over without a reboot. Talos's kubelet counts only once its health was checked: one
// that ends at a wrong argument runs for a moment. staticPods returns why the static pods of the node do not run as configured; nil if they
// do not matter.
func Follows(staticPods func(context.Context, Node) (problem string, err error), node Node) Check {
	return func(ctx context.Context, _ string, machine Machine, _ KubeNode) (string, error) {
		if kubelet := machine.Services["kubelet"]; kubelet.State == talosapi.Running && !kubelet.Known {
			return "the health of its kubelet is not known yet", nil
		}
		if staticPods == nil {
			return "", nil
		}
		problem, err := staticPods(ctx, node)
		if err != nil {
			return "its static pods are unknown: " + err.Error(), nil
		}
		return problem, nil
	}
}

// memberProblem returns why a control plane is no voting member of etcd; "" if it is one.
func (e *Engine) memberProblem(ctx context.Context, node Node) (string, error) {
	members, err := e.Cluster.Members(ctx, node)
	if err != nil {
		return "it cannot list the members of etcd: " + err.Error(), nil
	}
	for _, member := range members {
		switch {
		case member.Name != node.Name:
		case member.Learner:
			return "it is a member of etcd without a vote yet", nil
		default:
			return "", nil
		}
	}
	return "it is no member of etcd", nil
}

// StageProblem says in which stage a machine is that does not run, and which services keep it from running: it boots for as long as one of
// them waits.
func (m Machine) StageProblem() string {
	stage := "the machine is " + m.Stage
	if services := servicesProblem(m); services != "" {
		return stage + ", and " + services
	}
	return stage
}

// Problem returns why a machine that answers is not well; "" if it is.
func (m Machine) Problem() string {
	if m.Stage != stageRunning {
		return m.StageProblem()
	}
	return cmp.Or(servicesProblem(m), m.staticPodsProblem())
}

// staticPodsProblem returns which static pods are not ready, in Talos's words; "" if all are.
func (m Machine) staticPodsProblem() string {
	if reason := m.Unmet["staticPods"]; reason != "" {
		return "its static pods are not ready: " + reason
	}
	return ""
}

// servicesProblem returns which Talos services are not healthy; "" if all are. Some have no health check. Extensions are left to the gate:
// the configuration of one that an upgrade has added comes after the upgrade.
func servicesProblem(machine Machine) string {
	var problems []string
	for _, id := range slices.Sorted(maps.Keys(machine.Services)) {
		switch service := machine.Services[id]; {
		case strings.HasPrefix(id, "ext-"), service.State == "Skipped":
		case service.State != talosapi.Running:
			problem := id + " is " + cmp.Or(service.State, "in no state")
			if service.Message != "" {
				problem += " (" + service.Message + ")"
			}
			problems = append(problems, problem)
		case service.Known && !service.Healthy:
			problems = append(problems, id+" is not healthy")
		}
	}
	return list(problems)
}
