package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/internal/talosapi"
)

// Result names a control plane with healthy etcd. It holds no secret.
type Result struct {
	Node         string `json:"node"`         // a control plane with healthy etcd
	Bootstrapped bool   `json:"bootstrapped"` // this run bootstrapped it
}

// String returns the result as a sentence.
func (r Result) String() string {
	if r.Bootstrapped {
		return fmt.Sprintf("etcd was bootstrapped on %s and is healthy", r.Node)
	}
	return fmt.Sprintf("etcd already exists: %s is healthy", r.Node)
}

// Run bootstraps etcd unless the cluster has it, and returns once it is healthy on one node. It writes to progress what it waits for, once
// for each change. The spec must be valid and have its defaults.
func Run(ctx context.Context, spec Spec, progress io.Writer) (Result, error) {
	clients, err := dial(ctx, &spec)
	if err != nil {
		return Result{}, err
	}
	defer clients.Close()
	return run(ctx, spec, clients, progress)
}

// machines are the control planes' APIs.
type machines interface {
	etcd(ctx context.Context, node string) (etcd, error) // the node's etcd service
	bootstrap(ctx context.Context, node string) error    // makes the node start a new etcd cluster
}

// etcd is the state of a node's etcd service.
type etcd struct {
	state   string // as Talos words it: Preparing, Running, …
	healthy bool
	data    bool // the node has etcd's data, from this boot or an earlier one
}

// awaitsBootstrap is the state in which the service waits for the bootstrap, or for members that it can join. A service with data passes
// through it while the node boots.
const awaitsBootstrap = "Preparing"

// running reports whether the node is part of an etcd cluster. Before, the service is in an earlier state.
func (e etcd) running() bool { return e.state == "Running" }

func run(ctx context.Context, spec Spec, nodes machines, progress io.Writer) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(spec.Timeout), fmt.Errorf("no healthy etcd within %s", spec.Timeout))
	defer cancel()
	ticker := time.NewTicker(talosapi.Interval)
	defer ticker.Stop()

	said := ""
	say := func(message string) {
		if message != said {
			fmt.Fprintln(progress, message)
			said = message
		}
	}
	done := false // this run has bootstrapped
	for {
		seen := look(ctx, spec.ControlPlanes, nodes)
		if node, ok := seen.healthy(); ok {
			return Result{Node: node, Bootstrapped: done}, nil
		}
		waiting := seen.waiting()
		if !done && waiting == "" {
			say("bootstrapping etcd on " + spec.Node)
			switch err := call(ctx, spec.Node, nodes.bootstrap); status.Code(err) {
			case codes.OK:
				done = true
				continue
			case codes.AlreadyExists:
				waiting = spec.Node + ": already has etcd data, etcd is starting"
			case codes.InvalidArgument, codes.PermissionDenied, codes.Unimplemented:
				return Result{}, fmt.Errorf("%s: refuses to bootstrap: %w", spec.Node, err)
			default:
				waiting = fmt.Sprintf("%s: bootstrap: %v", spec.Node, err)
			}
		} else if done && waiting == "" {
			waiting = spec.Node + ": bootstrapped, etcd is starting"
		}
		if ctx.Err() == nil {
			say("waiting: " + waiting)
		}

		select {
		case <-ctx.Done():
			return Result{}, fmt.Errorf("%w (last: %s)", context.Cause(ctx), strings.TrimPrefix(said, "waiting: "))
		case <-ticker.C:
		}
	}
}

func call(ctx context.Context, node string, do func(context.Context, string) error) error {
	ctx, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	return do(ctx, node)
}

// view is the state of all control planes, in the spec's order.
type view []controlPlane

type controlPlane struct {
	node string
	etcd etcd
	err  error
}

// look asks all control planes for etcd.
func look(ctx context.Context, names []string, nodes machines) view {
	seen := make(view, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			seen[i].node = name
			seen[i].err = call(ctx, name, func(ctx context.Context, node string) (err error) {
				seen[i].etcd, err = nodes.etcd(ctx, node)
				return err
			})
		})
	}
	all.Wait()
	return seen
}

// healthy returns the first node whose etcd runs and is healthy.
func (v view) healthy() (string, bool) {
	for _, s := range v {
		if s.err == nil && s.etcd.running() && s.etcd.healthy {
			return s.node, true
		}
	}
	return "", false
}

// waiting returns why etcd must not be bootstrapped now; "" if it may. It may only if every control plane has answered, waits for the
// bootstrap, and has no data of etcd: a control plane that is booting may be a member of an etcd cluster, and beside it a replaced node
// would become a second one.
func (v view) waiting() string {
	var reasons []string
	for _, s := range v {
		switch {
		case s.err != nil:
			reasons = append(reasons, fmt.Sprintf("%s: no answer from the Talos API (%s)", s.node, reason(s.err)))
		case s.etcd.running():
			reasons = append(reasons, s.node+": etcd runs, not healthy yet")
		case s.etcd.data:
			reasons = append(reasons, s.node+": has etcd data, and its etcd is "+s.etcd.state)
		case s.etcd.state != awaitsBootstrap:
			reasons = append(reasons, s.node+": its etcd is "+s.etcd.state)
		}
	}
	return strings.Join(reasons, "; ")
}

// reason returns an error's message without the text that gRPC adds.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timed out"
	}
	return status.Convert(err).Message()
}
