// Package turn waits until a control plane may be changed: the change may reboot it, and meanwhile the other control planes must
// keep etcd's quorum. It imports no Pulumi.
package turn

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/slipway-platform/slipway/internal/talosapi"
)

const (
	// DefaultTimeout is the longest wait for the others. It covers the reboot of a machine with slow disks.
	DefaultTimeout = 10 * time.Minute
	// StableFor is how long the others must have been healthy without a break. A machine whose new configuration needs a reboot
	// reports the stage rebooting at once.
	StableFor = 3 * time.Second
)

// Turn is a planned change of one control plane.
type Turn struct {
	Credentials Credentials
	Node        string   // address of the control plane that is to be changed
	Others      []string // addresses of the other control planes
}

// Credentials are the client credentials for the Talos API, base64 of PEM; secret.
type Credentials struct{ CA, Certificate, Key string }

// Await returns once the node may be changed: all others run and have a healthy etcd, for StableFor. A node whose etcd does not
// run may be changed at any time: before the cluster is bootstrapped, or to repair it. Cancelling ctx ends it.
func (t Turn) Await(ctx context.Context) error {
	if len(t.Others) == 0 {
		return nil // nobody to wait for
	}
	apis, err := dial(ctx, t)
	if err != nil {
		return err
	}
	defer apis.Close()
	return t.await(ctx, apis.look)
}

// observation is what a control plane reports about itself.
type observation struct {
	stage   runtime.MachineStage
	etcd    string // state of the service, as Talos words it: Preparing, Running, …
	healthy bool   // of etcd
	err     error
}

// problem returns why a control plane does not contribute to etcd's quorum now; empty means that it does.
func (s observation) problem() string {
	switch {
	case s.err != nil:
		return fmt.Sprintf("no answer from the Talos API (%s)", status.Convert(s.err).Message())
	case s.stage != runtime.MachineStageRunning:
		return "the machine is " + s.stage.String()
	case s.etcd != running:
		return "etcd is " + s.etcd
	case !s.healthy:
		return "etcd is not healthy"
	}
	return ""
}

const running = "Running"

func (t Turn) await(ctx context.Context, look func(ctx context.Context, node string) observation) error {
	ctx, cancel := context.WithTimeoutCause(ctx, DefaultTimeout, fmt.Errorf("gave up after %s", DefaultTimeout))
	defer cancel()
	ticker := time.NewTicker(talosapi.Interval)
	defer ticker.Stop()
	var healthySince time.Time // since when all others are healthy; zero if one is not
	last := "no answer yet"
	for {
		seen := t.look(ctx, look)
		if own := seen[0]; own.err == nil && own.etcd != running {
			return nil
		}
		if ctx.Err() == nil {
			if last = t.reasons(seen[1:]); last != "" {
				healthySince = time.Time{}
			} else if healthySince.IsZero() {
				healthySince = time.Now()
			} else if time.Since(healthySince) >= StableFor {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not changed while another control plane is not healthy; repair that one first: %w (last: %s)",
				t.Node, context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}

// look asks the node and the others in parallel, and returns their states in this order.
func (t Turn) look(ctx context.Context, one func(ctx context.Context, node string) observation) []observation {
	ctx, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	seen := make([]observation, 1+len(t.Others))
	var all sync.WaitGroup
	for i, node := range append([]string{t.Node}, t.Others...) {
		all.Go(func() { seen[i] = one(ctx, node) })
	}
	all.Wait()
	return seen
}

func (t Turn) reasons(others []observation) string {
	var reasons []string
	for i, s := range others {
		if problem := s.problem(); problem != "" {
			reasons = append(reasons, t.Others[i]+": "+problem)
		}
	}
	return strings.Join(reasons, "; ")
}
