// Package retire removes the nodes from a running cluster that are not declared any more, before their machines are deleted: each in its
// turn. It compares the nodes that were declared at the last run with those that are declared now: a second run finishes
// what an interrupted one began.
package retire

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/semver"

	"github.com/slipway-platform/slipway/internal/nodes/live"
	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Run removes the nodes of a record that a valid spec with its defaults does not declare any more. It writes to progress what it does and
// waits for. Before etcd loses or gets a member, it takes a snapshot. Without such nodes it connects to nothing.
func Run(ctx context.Context, spec Spec, former Record, progress io.Writer) (Report, error) {
	return run(ctx, spec, former, progress, func(ctx context.Context, nodes []turn.Node) (remover, func(), error) {
		cluster, err := live.Open(ctx, spec.Talosconfig, nodes)
		if err != nil {
			return nil, nil, err
		}
		return cluster, cluster.Close, nil
	})
}

// dial connects to the nodes of a cluster.
type dial func(ctx context.Context, nodes []turn.Node) (on remover, hangUp func(), err error)

// remover is a cluster that nodes can be removed from.
type remover interface {
	turn.Remover
	snapshot.Source
	Answers(ctx context.Context, node turn.Node) bool            // whether the machine's Talos API takes connections
	HoldsEtcd(ctx context.Context, node turn.Node) (bool, error) // whether the machine has data of etcd
	Version(ctx context.Context, node turn.Node) (string, error) // of the API server of a control plane, if it is ready
}

func run(ctx context.Context, spec Spec, former Record, progress io.Writer, connect dial) (Report, error) {
	log := probe.Begin(progress)
	report := Report{Head: probe.Head{Kind: "retire", Cluster: spec.Cluster}, Record: spec.Record()}
	plan, err := NewPlan(former, &spec, spec.Recovers)
	if err != nil {
		return report, fmt.Errorf("nothing was changed: %w", err)
	}
	if len(plan.Leave) == 0 && len(plan.Join) == 0 && plan.Moved == nil {
		return report, nil
	}
	ctx, cancel := probe.Within(ctx, spec.Longest())
	defer cancel()
	if err := refuseMoved(ctx, plan, former, log, connect); err != nil {
		return report, fmt.Errorf("nothing was changed: %w", err)
	}
	if len(plan.Leave) == 0 && len(plan.Join) == 0 {
		return report, nil
	}
	on, hangUp, err := connect(ctx, slices.Concat(plan.Stay, plan.Leave, spec.skipped()))
	if err != nil {
		return report, err
	}
	defer hangUp()
	if len(plan.Leave) == 0 {
		return saveBeforeJoin(ctx, on, &spec, plan, log, report)
	}
	log.Say("%s", plan)
	spec.SaySkipped(log.Say)
	switch err := awaitEtcd(ctx, on, slices.Concat(plan.Stay, plan.Leave), log.Say); {
	case err != nil && context.Cause(ctx) == nil && spec.Recovers:
		log.Say("%v", err)
		if err := refuseLiving(ctx, plan, on, log.Say); err != nil {
			return report, fmt.Errorf("nothing was removed: %w", err)
		}
		report = report.Lost(plan.Leave)
		report.Took = log.Took()
		return report, nil
	case err != nil:
		return report, fmt.Errorf("nothing was removed: %w; fix a control plane, or declare lifecycle.snapshots.recoverFrom if the cluster is "+
			"lost, or declare the nodes that leave again", err)
	}
	if _, err := NewPlan(former, &spec, false); err != nil {
		return report, fmt.Errorf("nothing was changed: %w", err)
	}
	if err := refuseNewer(ctx, on, plan, spec.Kubernetes); err != nil {
		return report, fmt.Errorf("nothing was changed: %w", err)
	}
	engine := &turn.Engine{Cluster: on, Declared: spec.Declared, Say: log.Say}
	engine.Nodes = plan.Stay
	// A node that an earlier run has left cordoned counts as out of service, so that no other one could be spared.
	if err := engine.Release(ctx); err != nil {
		return report, fmt.Errorf("nothing was removed: %w", err)
	}
	if err := engine.CheckPods(ctx, plan.Leave...); err != nil {
		return report, fmt.Errorf("nothing was removed: %w", err)
	}
	if err := awaitVoters(ctx, on, &spec, plan, log.Say); err != nil {
		return report, fmt.Errorf("nothing was removed: %w", err)
	}
	leaving := leavingOSDs(ctx, on, plan, len(spec.Declared.Storage) > 0, log.Say)
	if err := saveEtcd(ctx, on, &spec, plan, log, &report); err != nil {
		return report, fmt.Errorf("nothing was removed: %w", err)
	}
	var mu sync.Mutex
	err = engine.InOrder(plan.Leave, func(node turn.Node) error {
		if err := engine.Remove(ctx, on, node); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		report.Removed = append(report.Removed, node.Name)
		if purge := leaving.purge(plan, node.Name); purge != "" {
			report.Purge = append(report.Purge, purge)
		}
		return nil
	})
	switch {
	case err == nil:
		err = spec.Snapshots.Prune(spec.Cluster, report.Snapshot)
	case len(report.Removed) > 0: // of which no later run knows if the former stack file comes back
		err = fmt.Errorf("%w; removed are: %s: to keep one after all, declare it again, and start its machine, or raise the generation of a "+
			"control plane%s", err, strings.Join(report.Removed, ", "), report.purgeText())
	}
	report.Took = log.Took()
	return report, err
}

// refuseMoved refuses what a plan has as moved, if the cluster runs: if a control plane runs etcd, at the address that it had. What has
// never come up may be corrected; whether its disks fit an encryption, each node is asked later. If no control plane answers, the cluster
// may run where this computer does not reach it: its addresses may be corrected, and no disk goes.
func refuseMoved(ctx context.Context, plan Plan, former Record, log *probe.Progress, connect dial) error {
	if plan.Moved == nil {
		return nil
	}
	before := former.nodes()
	on, hangUp, err := connect(ctx, before)
	if err != nil {
		return err
	}
	defer hangUp()
	switch err := awaitEtcd(ctx, on, before, log.Say); {
	case err == nil:
		return plan.Moved
	case context.Cause(ctx) != nil:
		return err
	case plan.Erased != nil && !anyAnswers(ctx, on, before):
		return fmt.Errorf("whether the cluster runs is not known, because no control plane answers at the address that it had (%w); make them "+
			"reachable from here, or destroy the stack first if it has never run: %w", err, plan.Erased)
	default:
		log.Say("the cluster does not run, so that its machines may be others: %v", err)
		return nil
	}
}

// refuseNewer refuses to replace nodes that would join with a later minor release of Kubernetes than every API server has: they join before
// the upgrade, and no kubelet may be newer than an API server. Once one API server has the release, no other one can be declared any more.
func refuseNewer(ctx context.Context, on remover, plan Plan, kubernetes string) error {
	if len(plan.Replaced) == 0 || kubernetes == "" {
		return nil
	}
	older := ""
	for _, node := range turn.ControlPlanes(plan.Stay) {
		version, err := on.Version(ctx, node)
		switch {
		case err != nil: // another one knows
		case semver.Compare(semver.MajorMinor(version), semver.MajorMinor(kubernetes)) >= 0:
			return nil
		default:
			older = version
		}
	}
	if older == "" {
		return nil
	}
	return fmt.Errorf("kubernetes.version: is %s, and %s would join with it while the API servers run %s; declare %[3]s until they have "+
		"joined, and upgrade in the next run", kubernetes, strings.Join(plan.Replaced, ", "), older)
}

// lossTimeout is how long the control planes of a cluster that is said to be lost are waited for: longer than one of them boots.
const lossTimeout = 5 * time.Minute

// refuseLiving refuses to take a cluster for lost, although its recovery is declared, if a control plane has data of etcd: it may only
// boot. If none answers, the cluster may run where this computer does not reach it. Nodes that are not declared any more then leave all
// the same: their machines are deleted only after a bootstrap. But a machine that is replaced would be deleted at once.
func refuseLiving(ctx context.Context, plan Plan, on remover, say func(string, ...any)) error {
	controlPlanes := turn.ControlPlanes(slices.Concat(plan.Stay, plan.Leave))
	var holds []bool
	wait := probe.Wait{Limit: lossTimeout, Say: say}
	err := wait.Until(ctx, "control planes without data of etcd", func(ctx context.Context) (string, error) {
		reasons := make([]string, len(controlPlanes))
		holds = make([]bool, len(controlPlanes))
		probe.Each(controlPlanes, func(i int, node turn.Node) {
			var err error
			switch holds[i], err = on.HoldsEtcd(ctx, node); {
			case err != nil:
				reasons[i] = node.Name + ": " + err.Error()
			case holds[i]:
				reasons[i] = node.Name + ": has data of etcd"
			}
		})
		return strings.Join(slices.DeleteFunc(reasons, func(reason string) bool { return reason == "" }), "; "), nil
	})
	switch {
	case err == nil:
		return nil
	case context.Cause(ctx) != nil:
		return err
	case slices.Contains(holds, true):
		return fmt.Errorf("lifecycle.snapshots.recoverFrom is declared, and the cluster is not lost: %w; run up again once its etcd runs, or "+
			"reset that control plane if its data cannot be used (docs/recovery.md)", err)
	case len(plan.Replaced) > 0 && !anyAnswers(ctx, on, controlPlanes):
		return fmt.Errorf("whether the cluster is lost is not known: %w; make a control plane reachable from here, or declare the former "+
			"generation of %s: a machine that is gone is made anew without another one", err, strings.Join(plan.Replaced, ", "))
	}
	return nil
}

// anyAnswers reports whether the Talos API of one of the control planes takes connections.
func anyAnswers(ctx context.Context, on remover, nodes []turn.Node) bool {
	return slices.ContainsFunc(turn.ControlPlanes(nodes), func(node turn.Node) bool { return on.Answers(ctx, node) })
}

// saveEtcd takes a snapshot of etcd before one of its members is removed, or one is added. A control plane that leaves may be the only one
// that gives it.
func saveEtcd(ctx context.Context, from snapshot.Source, spec *Spec, plan Plan, log *probe.Progress, report *Report) (err error) {
	if len(turn.ControlPlanes(plan.Leave)) == 0 && len(plan.Join) == 0 {
		return nil
	}
	of := turn.Target{Cluster: spec.Cluster, Nodes: slices.Concat(plan.Stay, plan.Leave)}
	report.Snapshot, err = spec.Snapshots.Take(ctx, from, of, log.Started, log.Say)
	return err
}

// etcdTimeout is how long a control plane that runs etcd is waited for: no node can be removed from a cluster without one, and a cluster
// that is lost must not wait for each of the steps of a removal.
const etcdTimeout = time.Minute

// awaitEtcd waits until one of the control planes says that its etcd runs, healthy or not.
func awaitEtcd(ctx context.Context, on turn.Cluster, nodes []turn.Node, say func(string, ...any)) error {
	wait := probe.Wait{Limit: etcdTimeout, Say: say}
	return wait.Until(ctx, "a control plane that runs etcd", func(ctx context.Context) (string, error) {
		controlPlanes := turn.ControlPlanes(nodes)
		reasons := make([]string, len(controlPlanes))
		probe.Each(controlPlanes, func(i int, node turn.Node) {
			switch machine, err := on.Machine(ctx, node); {
			case err != nil:
				reasons[i] = node.Name + ": " + err.Error()
			case !machine.Runs("etcd"):
				reasons[i] = node.Name + ": its etcd does not run"
			}
		})
		if slices.Contains(reasons, "") {
			return "", nil
		}
		return strings.Join(reasons, "; "), nil
	})
}
