package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Report names a control plane with healthy etcd. It holds no secret.
type Report struct {
	Node         string `json:"node"`                // name of a control plane with healthy etcd
	Bootstrapped bool   `json:"bootstrapped"`        // this run bootstrapped it
	Recovered    string `json:"recovered,omitempty"` // file of the snapshot that this run made it from
	Unused       string `json:"unused,omitempty"`    // file of the snapshot that is declared and was not needed

	Undeclared []string `json:"undeclared,omitempty"` // nodes of the restored snapshot that are not declared
}

// Sentence returns the result in one sentence.
func (r Report) Sentence() string {
	switch {
	case r.Recovered != "":
		return fmt.Sprintf("etcd was restored from %s on %s and is healthy; remove lifecycle.snapshots.recoverFrom now", r.Recovered, r.Node) +
			r.undeclaredText()
	case r.Bootstrapped:
		return fmt.Sprintf("etcd was bootstrapped on %s and is healthy", r.Node)
	case r.Unused != "":
		return fmt.Sprintf("etcd already exists: %s is healthy, and %s is not restored; remove lifecycle.snapshots.recoverFrom", r.Node, r.Unused)
	}
	return fmt.Sprintf("etcd already exists: %s is healthy", r.Node)
}

// undeclaredText says what becomes of nodes that the restored cluster has again, as the end of a sentence; "" without any.
func (r Report) undeclaredText() string {
	if len(r.Undeclared) == 0 {
		return ""
	}
	return fmt.Sprintf("; the snapshot has nodes that are not declared: %s; if one stays NotReady after the next up: kubectl delete node NAME",
		strings.Join(r.Undeclared, ", "))
}

// Text is empty: standard output has the report as JSON only.
func (r Report) Text() string { return "" }

// Run bootstraps etcd unless the cluster has it, from the declared snapshot if there is one, and returns once it is healthy on one node. It
// writes to progress what it waits for, once for each change. The spec must be valid and have its defaults.
func Run(ctx context.Context, spec Spec, progress io.Writer) (Report, error) {
	clients, err := dial(ctx, &spec)
	if err != nil {
		return Report{}, err
	}
	defer clients.Close()
	report, err := run(ctx, spec, clients, progress)
	if err != nil && ctx.Err() == nil {
		err = withClosed(err, spec.ControlPlanes(), func(node turn.Node) bool { return talosapi.Closed(ctx, node.Address.String()) })
	}
	return report, err
}

// withClosed adds to an error which control planes have their address and no Talos API.
func withClosed(err error, nodes []turn.Node, closed func(turn.Node) bool) error {
	for _, node := range nodes {
		if closed(node) {
			err = fmt.Errorf("%w; %s: %s", err, node.Name, talosapi.ClosedHint)
		}
	}
	return err
}

// machines are the control planes' APIs.
type machines interface {
	etcd(ctx context.Context, node turn.Node) (etcd, error)                   // the node's etcd service
	upload(ctx context.Context, node turn.Node, snapshot io.Reader) error     // gives the node a snapshot to recover from
	bootstrap(ctx context.Context, node turn.Node, recovers bool) (err error) // makes the node start a new etcd cluster, or recover one
	reboot(ctx context.Context, node turn.Node) error
}

// etcd is the state of a node's etcd service.
type etcd struct {
	state   string // as Talos words it: Preparing, Running, …
	message string // why, in Talos's words
	healthy bool
	data    bool // the node has etcd's data, from this boot or an earlier one
}

// States of the service. It waits for the bootstrap, or for members that it can join, in the first one; a service with data passes through
// it while the node boots. It ends in the second one if it cannot make its data from a snapshot, and after 30 minutes without a bootstrap
// (EtcdJoinTimeout of Talos): then only the node's next boot starts it again, by itself after another 40.
const (
	awaitsBootstrap = "Preparing"
	failed          = "Failed"
)

// running reports whether the node is part of an etcd cluster. Before, the service is in an earlier state.
func (e etcd) running() bool { return e.state == "Running" }

// answerTimeout is how long a call to recover etcd whose answer was lost may still have an effect. A second upload in that time would
// change the snapshot while Talos reads it.
const answerTimeout = 30 * time.Second

// settles is how long after a bootstrap the service may still be in a state from before it.
const settles = 10 * time.Second

// maintenanceLimit is how long a control plane may be in maintenance mode: it leaves it right after its configuration has come, which may
// come again at the beginning of this run.
const maintenanceLimit = time.Minute

// run is a job until etcd is healthy. One look may upload a snapshot, which takes any time.
func run(ctx context.Context, spec Spec, nodes machines, progress io.Writer) (Report, error) {
	j := job{Spec: spec, machines: nodes, Progress: probe.Begin(progress), node: spec.first(), woken: map[string]bool{}}
	defer j.close()
	var node string
	err := probe.Wait{Limit: Longest, Look: Longest, Say: j.Say}.Until(ctx, "healthy etcd", func(ctx context.Context) (string, error) {
		seen, healthy := look(ctx, spec.ControlPlanes(), nodes), false
		if node, healthy = seen.healthy(); healthy {
			return "", nil
		}
		return j.step(ctx, seen)
	})
	if err != nil {
		return Report{}, err
	}
	return j.report(node), nil
}

// job is a run that has not ended.
type job struct {
	Spec
	machines

	*probe.Progress
	node   turn.Node        // the one to bootstrap
	from   *snapshot.Opened // what is restored; nil until it is needed
	others []string         // nodes that it has, and the declaration has not
	done   bool             // this run has bootstrapped
	since  time.Time        // when it did
	silent time.Time        // until then, a call to recover whose answer was lost may have an effect; zero without such a call
	woken  map[string]bool  // nodes that this run has rebooted, by name
	bare   time.Time        // since when a control plane has been in maintenance mode; zero while none is
}

func (j *job) close() {
	if j.from != nil {
		_ = j.from.Close() // it was only read
	}
}

func (j *job) report(node string) Report {
	report := Report{Node: node, Bootstrapped: j.done || !j.silent.IsZero()} // the call without an answer had the effect
	switch {
	case !j.Recovery.restores():
	case report.Bootstrapped:
		report.Recovered, report.Undeclared = j.Recovery.From, j.others
	default:
		report.Unused = j.Recovery.From
	}
	return report
}

// starts is what is waited for after a bootstrap.
const starts = ": bootstrapped, etcd is starting"

// step bootstraps if that is safe. Otherwise, or if it did not succeed, it returns what is waited for.
func (j *job) step(ctx context.Context, seen view) (waiting string, err error) {
	again := "" // a node whose failed service may be bootstrapped again: it has no data
	if j.Recovery.restores() {
		again = j.node.Name
	}
	if err := j.unconfigured(seen); err != nil {
		return "", err
	}
	switch waiting = seen.waiting(again); {
	case j.done:
		if time.Since(j.since) > settles {
			err = seen.failed(j.node.Name)
		}
		return cmp.Or(waiting, j.node.Name+starts), err
	case waiting != "":
		return waiting + j.wake(ctx, seen, again), nil
	case time.Now().Before(j.silent):
		return j.node.Name + ": a bootstrap was sent to it, whose answer was lost", nil
	}
	if err := j.prepare(ctx); err != nil {
		return retry(j.node, err)
	}
	j.Once("bootstrapping etcd on %s", j.node.Name)
	err = call(ctx, j.node, func(ctx context.Context, node turn.Node) error { return j.bootstrap(ctx, node, j.Recovery.restores()) })
	switch status.Code(err) {
	case codes.OK:
		j.done, j.since = true, time.Now()
		return j.node.Name + starts, nil
	case codes.AlreadyExists:
		return j.node.Name + ": already has etcd data, etcd is starting", nil
	case codes.FailedPrecondition:
	default:
		if j.Recovery.restores() {
			j.silent = time.Now().Add(answerTimeout)
		}
	}
	return retry(j.node, err)
}

// unconfigured returns which control planes have been in maintenance mode for too long.
func (j *job) unconfigured(seen view) error {
	var problems []error
	for _, s := range seen {
		if errors.Is(s.err, talosapi.ErrMaintenance) && !j.Skip.Has(s.node) {
			problems = append(problems, fmt.Errorf("%s %w", s.node, s.err))
		}
	}
	switch {
	case len(problems) == 0:
		j.bare = time.Time{}
	case j.bare.IsZero():
		j.bare = time.Now()
	case time.Since(j.bare) >= maintenanceLimit:
		return errors.Join(problems...)
	}
	return nil
}

// wake reboots, once, each node whose etcd has failed without data, unless there may be an etcd cluster: it has waited too long for the
// bootstrap, because an earlier run ended before. Its own next boot may come later than this run's end. It returns which do not reboot.
func (j *job) wake(ctx context.Context, seen view, again string) (problems string) {
	if !seen.blank() {
		return ""
	}
	for i, s := range seen {
		if s.etcd.state != failed || s.node == again || j.woken[s.node] {
			continue
		}
		if err := call(ctx, j.ControlPlanes()[i], j.reboot); err != nil { // it is asked again
			problems += fmt.Sprintf("; %s does not reboot: %v", s.node, talosapi.Message(err))
			continue
		}
		j.Say("%s: reboots, because its etcd has failed without data: %s", s.node, s.etcd.message)
		j.woken[s.node] = true
	}
	return problems
}

// retry returns a temporary error of a node as what is waited for, and any other one as an error.
func retry(node turn.Node, err error) (waiting string, final error) {
	switch code := status.Code(err); {
	case errors.As(err, new(refusal)):
		return "", err
	case code == codes.InvalidArgument, code == codes.PermissionDenied, code == codes.Unimplemented:
		return "", fmt.Errorf("%s: refuses to bootstrap: %w", node.Name, err)
	}
	return fmt.Sprintf("%s: bootstrap: %v", node.Name, err), nil
}

func call(ctx context.Context, node turn.Node, do func(context.Context, turn.Node) error) error {
	ctx, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	return do(ctx, node)
}

// view is the state of all control planes, in the spec's order.
type view []controlPlane

type controlPlane struct {
	node string // name
	etcd etcd
	err  error
}

// look asks all control planes for etcd.
func look(ctx context.Context, nodes []turn.Node, on machines) view {
	seen := make(view, len(nodes))
	probe.Each(nodes, func(i int, node turn.Node) {
		seen[i].node = node.Name
		seen[i].err = call(ctx, node, func(ctx context.Context, node turn.Node) (err error) {
			seen[i].etcd, err = on.etcd(ctx, node)
			return err
		})
	})
	return seen
}

// healthy returns the name of the first node whose etcd runs and is healthy.
func (v view) healthy() (string, bool) {
	for _, s := range v {
		if s.err == nil && s.etcd.running() && s.etcd.healthy {
			return s.node, true
		}
	}
	return "", false
}

// blank reports whether every node has answered, and none has etcd's data or runs it.
func (v view) blank() bool {
	return !slices.ContainsFunc(v, func(s controlPlane) bool { return s.err != nil || s.etcd.running() || s.etcd.data })
}

// failed returns the error of a node whose etcd has failed.
func (v view) failed(node string) error {
	for _, s := range v {
		if s.node == node && s.err == nil && s.etcd.state == failed {
			return fmt.Errorf("%s: etcd failed after the bootstrap: %s", node, s.etcd.message)
		}
	}
	return nil
}

// waiting returns why etcd must not be bootstrapped now; "" if it may. It may only if every control plane has answered, waits for the
// bootstrap, and has no data of etcd: a control plane that is booting may be a member of an etcd cluster, and beside it a replaced node
// would become a second one. Of the node again, etcd may have failed instead.
func (v view) waiting(again string) string {
	var reasons []string
	for _, s := range v {
		switch {
		case s.err != nil:
			reasons = append(reasons, fmt.Sprintf("%s: no answer from the Talos API (%v)", s.node, talosapi.Message(s.err)))
		case s.etcd.running():
			reasons = append(reasons, s.node+": etcd runs, not healthy yet")
		case s.etcd.data:
			reasons = append(reasons, s.node+": has etcd data, and its etcd is "+s.etcd.state)
		case s.etcd.state == failed && s.node == again:
		case s.etcd.state != awaitsBootstrap:
			reason := s.node + ": its etcd is " + s.etcd.state
			if s.etcd.message != "" {
				reason += " (" + s.etcd.message + ")"
			}
			reasons = append(reasons, reason)
		}
	}
	return strings.Join(reasons, "; ")
}
