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

// Result says where the cluster's etcd is. It is the same on every run against the same cluster, apart from
// Bootstrapped, and holds no secret.
type Result struct {
	Node         string `json:"node"`         // a control plane with healthy etcd
	Bootstrapped bool   `json:"bootstrapped"` // whether it was this run that bootstrapped it
}

// String is the result as a sentence.
func (r Result) String() string {
	if r.Bootstrapped {
		return fmt.Sprintf("etcd was bootstrapped on %s and is healthy", r.Node)
	}
	return fmt.Sprintf("etcd was there already: %s is healthy", r.Node)
}

// Run makes sure that the cluster has etcd, and returns once it is healthy on one node. It says on progress what it waits
// for, once for each change. Cancelling ctx ends it.
func Run(ctx context.Context, spec Spec, progress io.Writer) (Result, error) {
	if err := spec.validate(); err != nil {
		return Result{}, err
	}
	clients, err := dial(ctx, spec)
	if err != nil {
		return Result{}, err
	}
	defer clients.Close()
	return run(ctx, spec, clients, progress)
}

// machines are the control planes' APIs.
type machines interface {
	etcd(ctx context.Context, node string) (etcd, error) // what the node says of its etcd
	bootstrap(ctx context.Context, node string) error    // has the node start a new etcd cluster
}

// etcd is the state of a node's etcd service.
type etcd struct {
	state   string // as Talos words it: Preparing, Running, …
	healthy bool
}

// running tells whether the node belongs to an etcd cluster. Before that the service waits in an earlier state.
func (e etcd) running() bool { return e.state == "Running" }

func run(ctx context.Context, spec Spec, nodes machines, progress io.Writer) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, spec.Timeout.Or(DefaultTimeout), fmt.Errorf("no healthy etcd within %s", spec.Timeout.Or(DefaultTimeout)))
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
	done := false // whether this run has bootstrapped
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
				waiting = spec.Node + ": has etcd data already, etcd is starting"
			case codes.InvalidArgument, codes.PermissionDenied, codes.Unimplemented:
				return Result{}, fmt.Errorf("%s: bootstrap refused: %w", spec.Node, err)
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

// view is one look at all control planes, in the spec's order.
type view []sight

type sight struct {
	node string
	etcd etcd
	err  error
}

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

// waiting says what stands against bootstrapping now; empty means nothing. A control plane that has not answered does:
// it may have the etcd that must not be created twice.
func (v view) waiting() string {
	var reasons []string
	for _, s := range v {
		switch {
		case s.err != nil:
			reasons = append(reasons, fmt.Sprintf("%s: no answer from the Talos API (%s)", s.node, reason(s.err)))
		case s.etcd.running():
			reasons = append(reasons, s.node+": etcd runs, not healthy yet")
		}
	}
	return strings.Join(reasons, "; ")
}

// reason is an error's message without gRPC's frame around it.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timed out"
	}
	return status.Convert(err).Message()
}
