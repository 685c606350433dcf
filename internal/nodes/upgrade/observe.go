package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
	"github.com/slipway-platform/slipway/internal/probe"
)

// view is what all declared nodes say, in their order.
type view []sight

type sight struct {
	node   turn.Node
	answer answer
	err    error // it does not answer
	joined bool  // it has a Node object, or may have one
	exists bool  // it has a Node object
}

// running returns what the configured nodes run.
func (v view) running() []versions.Running {
	var running []versions.Running
	for _, s := range v {
		if s.err == nil && s.answer.configured {
			running = append(running, s.answer.running)
		}
	}
	return running
}

// pending returns why a sight is no final one; "" if it is.
func (s sight) pending() string {
	switch {
	case s.err != nil:
		return s.node.Name + ": its Talos API does not answer: " + s.err.Error()
	case s.answer.configured && s.answer.stage != runtime.MachineStageRunning.String():
		return s.node.Name + ": " + cmp.Or(s.answer.waits, "the machine is "+s.answer.stage)
	}
	return ""
}

// needed reports whether a node is a part of the cluster: a control plane, or a worker that has joined. A worker that was only declared may
// not exist yet.
func (s sight) needed() bool { return s.node.IsControlPlane() || s.joined }

// problems returns the nodes of the cluster of which it is not known what they run.
func (v view) problems() []error {
	var problems []error
	for _, s := range v {
		if why := s.pending(); why != "" && s.needed() {
			problems = append(problems, errors.New(why))
		}
	}
	return problems
}

// silentAndOlder returns the nodes that do not answer, and of which their Node objects say that they run another version than the declared
// one: this step would not run again for them. Without an answer of the Kubernetes API, it is not known of any.
func (j *job) silentAndOlder(ctx context.Context, seen view) (problems []error) {
	if len(seen.silent()) == 0 {
		return nil
	}
	nodes, err := j.machines.Nodes(ctx)
	if err != nil {
		j.Say("what the silent nodes run is not known: %v", err)
		return nil
	}
	for _, s := range seen {
		node, exists := nodes[s.node.Name]
		current := (node.Kubelet == "" || node.Kubelet == j.Kubernetes) && (node.System == "" || node.System == "Talos ("+j.Talos+")")
		if s.err != nil && exists && !current {
			problems = append(problems, fmt.Errorf("%s, and it has run kubelet %s on %s", s.pending(), node.Kubelet, node.System))
		}
	}
	return problems
}

// unspared returns why turns would wait in vain for machines that get their configurations only after this step: etcd has two members, and
// the third control plane is one of them; or as many workers of the cluster are as may be out of service, mostly one.
func (j *job) unspared(seen view, plan versions.Plan, late []turn.Node) error {
	var members, wait, missing []string
	for _, s := range seen {
		switch {
		case s.err != nil:
		case !s.node.IsControlPlane():
			if s.exists && !s.answer.configured {
				missing = append(missing, s.node.Name)
			}
		case s.answer.configured:
			members = append(members, s.node.Name)
		default:
			wait = append(wait, s.node.Name)
		}
	}
	const remedy = "take back the version, extensions or lifecycle.bootedSince for one run, so that it joins first"
	reboot := slices.Concat(plan.Talos, late)
	change := slices.Concat(reboot, plan.Kubernetes[versions.Kubelet])
	most := j.MaxUnavailable.Of(len(seen) - len(j.ControlPlanes()))
	switch {
	case len(members) == 2 && len(wait) > 0 && len(turn.ControlPlanes(reboot)) > 0:
		return fmt.Errorf("etcd needs both of %s, and %s gets its configuration after this step; "+remedy,
			strings.Join(members, ", "), strings.Join(wait, ", "))
	case len(missing) >= most && len(change) > len(turn.ControlPlanes(change)):
		return fmt.Errorf("%s has another machine, which gets its configuration after this step, and no other worker can be spared until "+
			"then; "+remedy+", or raise its generation", strings.Join(missing, ", "))
	}
	return nil
}

func (v view) silent() []string {
	var names []string
	for _, s := range v {
		if s.err != nil {
			names = append(names, s.node.Name)
		}
	}
	return names
}

// silentHint is what to do about control planes that do not answer.
const silentHint = "look at the console of each that does not answer, reset its machine by hand if its boot hangs, and run up again"

// observe asks all nodes what they run. It waits for those that do not answer and for those that reboot, for a while. The cluster is new if
// all control planes answer and none has a configuration: it may run on one that does not answer.
func (j *job) observe(ctx context.Context) (view, error) {
	var seen view
	start := time.Now()
	err := j.engine.Until(ctx, silentTimeout+time.Minute, 0, "the nodes", func(ctx context.Context) (string, error) {
		seen = j.look(ctx)
		answers, configured := 0, 0
		var reasons []string
		for _, s := range seen {
			if s.node.IsControlPlane() && s.err == nil {
				answers++
				if s.answer.configured {
					configured++
				}
			}
			if why := s.pending(); why != "" && s.needed() {
				reasons = append(reasons, why)
			}
		}
		waited := time.Since(start)
		switch {
		case configured == 0 && answers == len(j.ControlPlanes()):
			j.report.New = true
			return "", nil
		case configured == 0 && waited < silentTimeout:
		case answers == 0:
			return "", fmt.Errorf("no control plane answers, so it is not known what runs: %s; %s", strings.Join(reasons, "; "), silentHint)
		case configured == 0:
			return "", fmt.Errorf("nothing was changed: no control plane that answers has a configuration, so it is not known whether the "+
				"cluster is new: %s; %s", strings.Join(reasons, "; "), silentHint)
		case waited >= reachTimeout:
			return "", nil
		}
		return strings.Join(reasons, "; "), nil
	})
	return seen, err
}

// look asks all nodes at once, and then which of them have joined, if one is in doubt.
func (j *job) look(ctx context.Context) view {
	seen := make(view, len(j.Spec.Nodes))
	probe.Each(j.Spec.Nodes, func(i int, node turn.Node) {
		seen[i].node = node
		seen[i].answer, seen[i].err = j.Look(ctx, node)
	})
	configured, doubt := false, false
	for _, s := range seen {
		configured = configured || s.err == nil && s.answer.configured && s.node.IsControlPlane()
		doubt = doubt || !s.node.IsControlPlane() && (s.pending() != "" || !s.answer.configured)
	}
	if !configured || !doubt {
		return seen
	}
	nodes, err := j.machines.Nodes(ctx)
	for i := range seen {
		_, seen[i].exists = nodes[seen[i].node.Name]
		seen[i].joined = seen[i].exists || err != nil
	}
	return seen
}
