// Package turn tells when it is a control plane's turn to be changed: while it may reboot, the others have to carry etcd.
// It imports no Pulumi.
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
	// DefaultTimeout is the longest wait for the others: it covers the reboot of one on slow disks.
	DefaultTimeout = 10 * time.Minute
	// Steady is for how long the others have to be well. One that was just given a configuration which needs a reboot
	// says so at once.
	Steady = 3 * time.Second
)

// Turn is the turn of one control plane.
type Turn struct {
	Credentials Credentials
	Node        string   // address of the one that is to be changed
	Others      []string // addresses of the other control planes
}

// Credentials are those of a Talos client, base64 of PEM; secret.
type Credentials struct{ CA, Certificate, Key string }

// Await returns once the node may be changed: all others run and have a healthy etcd, for a while. A node that has no part
// in etcd may be changed at any time: before the cluster is bootstrapped, or to mend it. Cancelling ctx ends it.
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

// sight is what a control plane says of itself.
type sight struct {
	stage   runtime.MachineStage
	etcd    string // state of the service, as Talos words it: Preparing, Running, …
	healthy bool   // of etcd
	err     error
}

// ill says why a control plane cannot carry etcd now; empty means that it does.
func (s sight) ill() string {
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

func (t Turn) await(ctx context.Context, look func(ctx context.Context, node string) sight) error {
	ctx, cancel := context.WithTimeoutCause(ctx, DefaultTimeout, fmt.Errorf("gave up after %s", DefaultTimeout))
	defer cancel()
	ticker := time.NewTicker(talosapi.Interval)
	defer ticker.Stop()
	var well time.Time // since when all others are
	last := "nobody has answered yet"
	for {
		seen := t.look(ctx, look)
		if own := seen[0]; own.err == nil && own.etcd != running {
			return nil
		}
		if ctx.Err() == nil {
			if last = t.reasons(seen[1:]); last != "" {
				well = time.Time{}
			} else if well.IsZero() {
				well = time.Now()
			} else if time.Since(well) >= Steady {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not changed while another control plane cannot carry etcd; mend that one first: %w (last: %s)", t.Node, context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}

// look asks the node and the others, in this order, all at once.
func (t Turn) look(ctx context.Context, one func(ctx context.Context, node string) sight) []sight {
	ctx, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	seen := make([]sight, 1+len(t.Others))
	var all sync.WaitGroup
	for i, node := range append([]string{t.Node}, t.Others...) {
		all.Go(func() { seen[i] = one(ctx, node) })
	}
	all.Wait()
	return seen
}

func (t Turn) reasons(others []sight) string {
	var reasons []string
	for i, s := range others {
		if ill := s.ill(); ill != "" {
			reasons = append(reasons, t.Others[i]+": "+ill)
		}
	}
	return strings.Join(reasons, "; ")
}
