package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/probe"
)

// How long a machine has until it accepts its first connection to Talos's API.
const (
	// closedLimit is how long a machine may refuse connections before it is reset. Between its address and its API, a machine that boots
	// takes about ten seconds. On a host with fifteen times as much to do as it can, all of the boot took less than four minutes. A reset of
	// a machine that is only slow costs its boot: it has no configuration yet, so nothing is installed and no disk is to be unlocked.
	closedLimit = 2 * time.Minute
	// mostResets is how often a machine is reset: of the boots that hung, one hung again.
	mostResets = 3
	// silentLimit is how long a machine may be unreachable, or refuse connections if it must not be reset or was: as long as the Talos
	// provider would wait.
	silentLimit = 10 * time.Minute
)

// arrival waits for a machine that gets its first configuration in this run.
//
// A boot of Talos from its image, seen with 1.12.6, 1.13.9 and 1.14.1, can hang for ever before Talos's API starts: two parts compete for
// the cloud-init drive. The machine then has its address and refuses connections to port 50000, and only a reset helps.
type arrival struct {
	machines.Machine

	knock func(ctx context.Context, address string) error // opens a connection to Talos's API, and closes it
	say   func(string)                                    // prints a line of progress
}

// await returns once the machine accepts connections. It resets the machine, up to mostResets times, if this run has created it: any other
// machine may have a configuration, and a reset could interrupt an installation.
func (a arrival) await(ctx context.Context) error {
	for resets := 0; ; resets++ {
		err := a.open(ctx, a.New() && resets < mostResets)
		if err != nil && resets > 0 && !errors.Is(err, errStaysClosed) {
			err = fmt.Errorf("after %d resets: %w", resets, err)
		}
		if !errors.Is(err, errStaysClosed) {
			return err
		}
		a.say(fmt.Sprintf("%s: has its address and has refused connections to Talos's API for %s, so its boot hangs; resetting the machine",
			a.Node.Name, closedLimit))
		if err := a.Reset(ctx); err != nil {
			return fmt.Errorf("%s: its boot hangs before Talos's API, and it cannot be reset: %w; reset it by hand, and run up again",
				a.Node.Name, err)
		}
	}
}

// errStaysClosed means that a machine that may be reset has refused connections for too long.
var errStaysClosed = errors.New("stays closed")

// open waits until the machine accepts a connection. With resets it returns errStaysClosed after closedLimit without any other answer than
// refused connections.
func (a arrival) open(ctx context.Context, resets bool) error {
	var refusedSince time.Time
	var last error
	wait := probe.Wait{Limit: silentLimit, Say: func(format string, args ...any) { a.say(fmt.Sprintf(format, args...)) }}
	err := wait.Until(ctx, a.Node.Name+"'s first answer", func(ctx context.Context) (string, error) {
		last = a.knock(ctx, a.Node.Address.String())
		switch {
		case last == nil:
			return "", nil
		case !errors.Is(last, syscall.ECONNREFUSED):
			refusedSince = time.Time{}
		case refusedSince.IsZero():
			refusedSince = time.Now()
		case resets && time.Since(refusedSince) >= closedLimit:
			return "", errStaysClosed
		}
		return last.Error(), nil
	})
	switch {
	case err == nil, errors.Is(err, errStaysClosed), ctx.Err() != nil:
		return err
	case !refusedSince.IsZero():
		return fmt.Errorf("%s: has its address %s, and refuses connections to Talos's API: %w; look at the machine's console, reset the machine "+
			"by hand, and run up again; or another device has this address: in its network, ip neigh show %[2]s must show %[4]s",
			a.Node.Name, a.Node.Address, err, strings.ToLower(string(a.Node.MAC))) // as ip prints it
	}
	return fmt.Errorf("%s: cannot be reached at %s: %w; look at the machine's console and at the networks between it and this computer, and "+
		"run up again", a.Node.Name, a.Node.Address, err)
}

// arrivalOf returns the arrival of a machine.
func (r *registrar) arrivalOf(machine machines.Machine, say func(string)) arrival {
	coming := arrival{Machine: machine, knock: talosapi.Knock, say: say}
	if r.args.knock != nil {
		coming.knock = r.args.knock
	}
	return coming
}

// awaitNew returns the hook that waits for the control planes that this run has created. It comes before the step that asks all nodes what
// they run: while no control plane answers, that step cannot tell a new cluster from one that is away. It does without new workers.
func (r *registrar) awaitNew(ctx *pulumi.Context, name string, made []machines.Machine, say func(string)) (*pulumi.ResourceHook, error) {
	background := ctx.Context()
	return ctx.RegisterResourceHook(name+"-new", func(*pulumi.ResourceHookArgs) error {
		var coming []arrival
		for _, machine := range newControlPlanes(made) {
			coming = append(coming, r.arrivalOf(machine, say))
		}
		return awaitAll(background, coming)
	}, nil)
}

// newControlPlanes returns the control planes that this run has created.
func newControlPlanes(made []machines.Machine) []machines.Machine {
	return slices.DeleteFunc(slices.Clone(made), func(machine machines.Machine) bool {
		return machine.Node.Role != cluster.ControlPlane || !machine.New()
	})
}

// awaitAll awaits machines at the same time.
func awaitAll(ctx context.Context, coming []arrival) error {
	problems := make([]error, len(coming))
	probe.Each(coming, func(i int, one arrival) { problems[i] = one.await(ctx) })
	return errors.Join(problems...)
}

// awaitFirst returns the hook that waits for a machine before its first configuration. Later changes of the configuration do without:
// whoever changes a node asks it first. A preview sends nothing.
func (c configurer) awaitFirst(ctx *pulumi.Context, name string, of machines.Machine) (*pulumi.ResourceHook, error) {
	background, coming := ctx.Context(), c.arrivalOf(of, c.turns.say)
	return ctx.RegisterResourceHook(name+"-first", func(*pulumi.ResourceHookArgs) error {
		c.turns.gives(of.Node)
		return coming.await(background)
	}, nil)
}
