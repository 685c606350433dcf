// Package upgrade brings the nodes of a running cluster to the declared versions of Talos and Kubernetes, and to the declared extensions:
// Talos node by node, each in its turn, and then Kubernetes component by component. It compares what runs with what is declared, and does
// what is missing: a second run finishes what an interrupted one began.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
	"github.com/slipway-platform/slipway/internal/probe"
)

const (
	callTimeout = 10 * time.Second
	pullTimeout = 15 * time.Minute // of one image; the former call that upgrades pulls the installer, too

	// installTimeout is for the installer, which writes to the disk; it has no limit of its own.
	installTimeout = 15 * time.Minute

	// How long nodes that do not answer are waited for: if a control plane has a configuration; and while none that answers has one, because
	// the machines of a new cluster boot.
	reachTimeout  = 3 * time.Minute
	silentTimeout = 15 * time.Minute

	podTimeout  = 10 * time.Minute // until a static pod runs its new image, which was pulled before
	wellTimeout = 30 * time.Second // until a control plane is well again after the restart of an API server
)

// machines is what a run needs of a cluster beside turns.
type machines interface {
	turn.Cluster
	turn.VIPs
	snapshot.Source

	// Look returns what a node runs.
	Look(ctx context.Context, node turn.Node) (answer, error)
	// Next returns the version of Talos that a node boots next, if it runs another installation: an earlier run has ended between the
	// installation and the reboot. It returns "" if the node does not, or cannot tell.
	Next(ctx context.Context, node turn.Node) (version string, err error)
	// Upgrade installs Talos and makes the node reboot.
	Upgrade(ctx context.Context, node turn.Node, image string) error
	// Reboot makes a node reboot.
	Reboot(ctx context.Context, node turn.Node) error
	// Booted returns when a node has booted.
	Booted(ctx context.Context, node turn.Node) (time.Time, error)
	// Pull pulls an image before it is needed.
	Pull(ctx context.Context, node turn.Node, component versions.Component, image string) error
	// SetImage changes one image in the machine configuration.
	SetImage(ctx context.Context, node turn.Node, component versions.Component, image string) error
	// Version returns the version of the API server of a control plane, if it is ready.
	Version(ctx context.Context, node turn.Node) (string, error)
	// Image returns the image that a static pod runs, and whether the pod is Ready; "" without one.
	Image(ctx context.Context, node turn.Node, component string) (image string, ready bool, err error)
	// PodHash returns the hash by which the kubelet of a node names a static pod, and when this kubelet saw the pod first, by the node's
	// clock; "" without a pod.
	PodHash(ctx context.Context, node turn.Node, component string) (hash string, seen time.Time, err error)
	// Metrics returns the metrics of the API server of a control plane, or an error within little more than a minute.
	Metrics(ctx context.Context, node turn.Node) (string, error)
	// CiliumVersions returns the versions of Cilium's agents, as their images name them: those that run, and the one that they are changed to.
	CiliumVersions(ctx context.Context) ([]string, error)
	// Objects returns all objects of a resource; none if the cluster does not know it.
	Objects(ctx context.Context, of schema.GroupVersionResource) ([]unstructured.Unstructured, error)
}

// answer is what a node says about itself. Without a configuration it says nothing else.
type answer struct {
	configured bool
	stage      string // of the machine, such as running
	waits      string // why it does not run; "" if it does, or is not known
	running    versions.Running
}

// job is one run of a spec.
type job struct {
	*Spec
	machines
	engine *turn.Engine
	*probe.Progress

	serving []turn.Node // control planes with a configuration: others that are declared have no API server yet

	mu     sync.Mutex
	report Report
}

// Run upgrades a cluster, for a valid spec with its defaults. It writes to progress what it does and waits for.
func Run(ctx context.Context, spec Spec, progress io.Writer) (Report, error) {
	live, err := dial(ctx, &spec)
	if err != nil {
		return Report{}, err
	}
	defer live.Close()
	return run(ctx, &spec, live, progress)
}

func run(ctx context.Context, spec *Spec, on machines, progress io.Writer) (Report, error) {
	j := &job{Spec: spec, machines: on, Progress: probe.Begin(progress), report: Report{
		Head: probe.Head{Kind: "upgrade", Cluster: spec.Cluster}, Versions: Versions{Talos: spec.Talos, Kubernetes: spec.Kubernetes},
	}}
	j.engine = &turn.Engine{Cluster: on, Declared: spec.Declared, Say: j.Say}
	ctx, cancel := probe.Within(ctx, spec.Longest())
	defer cancel()
	err := j.do(ctx)
	j.report.Took = j.Took()
	return j.report, err
}

func (j *job) do(ctx context.Context) error {
	j.SaySkipped(j.Say)
	seen, err := j.observe(ctx)
	if err != nil || j.report.New {
		return err
	}
	plan, err := versions.NewPlan(j.Releases, seen.running())
	if err = errors.Join(err, j.ciliumProblem(ctx)); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	late, err := j.bootedBefore(ctx, seen)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	idle := plan.Empty() && len(late) == 0
	reasons := seen.problems()
	if idle {
		reasons = j.silentAndOlder(ctx, seen)
	}
	if len(reasons) > 0 {
		return fmt.Errorf("nothing was changed, because these nodes would be left behind: %w; fix or remove them first", errors.Join(reasons...))
	}
	if idle {
		j.report.Silent = seen.silent()
		return j.engine.TryRelease(ctx)
	}
	if err := j.unspared(seen, plan, late); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if err := j.prepare(ctx, plan, late); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	upgrades := []func() error{
		func() error {
			return j.engine.InOrder(plan.Talos, func(node turn.Node) error { return j.upgradeNode(ctx, node) })
		},
		func() error { return j.upgradeKubernetes(ctx, plan, seen.running()) },
	}
	if plan.Back { // the turns of Talos's upgrade wait for the API server that does not start
		slices.Reverse(upgrades)
	}
	for _, upgrade := range upgrades {
		if err := upgrade(); err != nil {
			return err
		}
	}
	if j.report.Left != "" && len(late) > 0 { // one that does not come back would stay cordoned, and later runs would wait for it
		j.Say("are not rebooted, because of %s: %s; declare a later lifecycle.bootedSince once all runs", j.report.Left, turn.Names(late))
		late = nil
	}
	if err := j.engine.InOrder(late, func(node turn.Node) error { return j.rebootNode(ctx, node) }); err != nil {
		return err
	}
	if err := j.engine.Release(ctx); err != nil {
		return err
	}
	return j.Snapshots.Prune(j.Cluster, j.report.Snapshot)
}

// prepare checks what an upgrade needs, and takes a snapshot of etcd before it. Reboots need none.
func (j *job) prepare(ctx context.Context, plan versions.Plan, late []turn.Node) (err error) {
	if len(late) > 0 {
		j.Say("have to be rebooted, unless an upgrade does it: %s", turn.Names(late))
	}
	if plan.Back { // no API server need answer
		j.Say("goes back to %s: %s", j.Kubernetes, plan)
	} else {
		if err := j.namesRemovedAPIs(ctx, plan); err != nil {
			return err
		}
		// A node that an earlier run has left cordoned counts as out of service, so that no other one would get its turn.
		if err := j.engine.Release(ctx); err != nil || plan.Empty() {
			return err
		}
		j.Say("has to be upgraded: %s", plan)
	}
	j.report.Snapshot, err = j.Snapshots.Take(ctx, j.machines, j.Target, j.Started, j.Say)
	return err
}
