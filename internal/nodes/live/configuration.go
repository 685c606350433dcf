package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/slipway-platform/slipway/cluster/machineconfig"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// Credentials are those of a client of the Talos APIs, base64 of PEM; secret.
type Credentials struct{ CA, Certificate, Key string }

// Config returns a client configuration with the credentials.
func (c Credentials) Config() *clientconfig.Config {
	const name = "turn"
	return &clientconfig.Config{Context: name, Contexts: map[string]*clientconfig.Context{
		name: {CA: c.CA, Crt: c.Certificate, Key: c.Key},
	}}
}

// Effect is what a change of a machine configuration does to its node.
type Effect int

// Effects.
const (
	Unknown                   Effect = iota // the node does not answer
	Reboots                                 // Talos reboots the node
	NeedsReboot                             // takes effect only after a reboot, which Talos does not make
	RestartsCRI                             // Talos restarts containerd of the pods
	MayIsolate                              // nobody may reach the node any more
	MayIsolateAndRestartsPods               // both
	RestartsPods                            // the kubelet starts static pods of the control plane again
	KeepsRunning
	Unchanged    // the node runs this configuration already
	Refused      // the node does not take the configuration
	NeedsMachine // the change cannot be made on a node, although Talos takes the configuration
	NeedsCluster // the change cannot be made in a cluster that has Nodes
)

// ofRule are the effects by what machineconfig says.
var ofRule = map[machineconfig.Effect]Effect{
	machineconfig.AtOnce: KeepsRunning, machineconfig.RestartsPods: RestartsPods, machineconfig.MayIsolate: MayIsolate,
	machineconfig.MayIsolateAndRestartsPods: MayIsolateAndRestartsPods,
	machineconfig.RestartsCRI:               RestartsCRI,
	machineconfig.NeedsReboot:               NeedsReboot, machineconfig.NeedsMachine: NeedsMachine,
}

// Effect asks a node what a machine configuration would do. Nothing is changed. part is the part of the configuration for which a node
// needs something, and has no value of it. From 1.14 on, Talos reboots for nothing, and no release says what waits for a reboot.
func (c *Cluster) Effect(ctx context.Context, node turn.Node, configuration string) (effect Effect, part string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*talosapi.CallTimeout)
	defer cancel()
	reply, err := c.talos[node.Address].ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{
		Data: []byte(configuration), Mode: machine.ApplyConfigurationRequest_AUTO, DryRun: true,
	})
	if status.Code(err) == codes.InvalidArgument {
		return Refused, "", talosapi.Message(err)
	}
	if err != nil {
		return Unknown, "", talosapi.Message(err)
	}
	if len(reply.GetMessages()) == 0 {
		return Unknown, "", errors.New("the answer is empty")
	}
	effect, part, err = c.compare(ctx, node, configuration)
	if effect != NeedsMachine && effect != NeedsCluster && reply.GetMessages()[0].GetMode() == machine.ApplyConfigurationRequest_REBOOT {
		return Reboots, part, nil
	}
	return effect, part, err
}

// compare says what a node needs for another configuration than it has. One that this program does not read, because a person has applied
// documents of a later release, may hold anything: the node reboots.
func (c *Cluster) compare(ctx context.Context, node turn.Node, configuration string) (Effect, string, error) {
	talos := c.talos[node.Address]
	version, err := talos.Version(ctx)
	if err != nil {
		return Unknown, "", talosapi.Message(err)
	}
	if len(version.GetMessages()) == 0 {
		return Unknown, "", errors.New("the answer has no version")
	}
	current, err := safe.StateGetByID[*config.MachineConfig](ctx, talos.COSI, config.ActiveID)
	if _, ofCall := status.FromError(err); err != nil && (ofCall || state.IsNotFoundError(err)) {
		return Unknown, "", talosapi.Message(err)
	}
	next, unread := configloader.NewFromBytes([]byte(configuration))
	if err != nil || unread != nil {
		return NeedsReboot, "a document that Slipway does not know", nil // the cause may quote the configuration
	}
	tag := version.GetMessages()[0].GetVersion().GetTag()
	if same, err := machineconfig.Same(current.Provider(), next); err == nil && same {
		return Unchanged, "", nil
	}
	if part := c.stray(ctx, current.Provider(), next); part != "" {
		return NeedsCluster, part, nil
	}
	if part := c.misfit(ctx, node, next); part != "" {
		return NeedsMachine, part, nil
	}
	needs, part, err := machineconfig.EffectOf(tag, node.Role, current.Provider(), next)
	if err != nil {
		return NeedsReboot, "a document that Slipway does not know", nil // the cause may quote the configuration
	}
	return ofRule[needs], part, nil
}

// Try makes a node run a machine configuration. If no other one comes within this time, the node takes its former one back.
func (c *Cluster) Try(ctx context.Context, node turn.Node, configuration string, within time.Duration) error {
	return c.apply(ctx, node, &machine.ApplyConfigurationRequest{
		Data: []byte(configuration), Mode: machine.ApplyConfigurationRequest_TRY, TryModeTimeout: durationpb.New(within),
	})
}

// Runs reports whether a node runs a machine configuration.
func (c *Cluster) Runs(ctx context.Context, node turn.Node, configuration string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	current, err := safe.StateGetByID[*config.MachineConfig](ctx, c.talos[node.Address].COSI, config.ActiveID)
	if err != nil {
		return false, talosapi.Message(err)
	}
	wanted, err := configloader.NewFromBytes([]byte(configuration))
	if err != nil {
		return false, RefusedError("its machine configuration cannot be read") // the cause may quote the configuration
	}
	return machineconfig.Same(current.Provider(), wanted)
}

// Stage gives a node a machine configuration that it has from its next boot on. undo gives it the one that it kept before.
func (c *Cluster) Stage(ctx context.Context, node turn.Node, configuration string) (undo func(context.Context) error, err error) {
	kept, unread := safe.StateGetByID[*config.MachineConfig](ctx, c.talos[node.Address].COSI, config.PersistentID)
	undo = func(ctx context.Context) error {
		if unread != nil {
			return fmt.Errorf("the configuration that it kept before is not known: %w", talosapi.Message(unread))
		}
		former, err := kept.Provider().Bytes()
		if err != nil {
			return err
		}
		return c.stage(ctx, node, former)
	}
	return undo, c.stage(ctx, node, []byte(configuration))
}

func (c *Cluster) stage(ctx context.Context, node turn.Node, configuration []byte) error {
	return c.apply(ctx, node, &machine.ApplyConfigurationRequest{Data: configuration, Mode: machine.ApplyConfigurationRequest_STAGED})
}

func (c *Cluster) apply(ctx context.Context, node turn.Node, request *machine.ApplyConfigurationRequest) error {
	ctx, cancel := context.WithTimeout(ctx, 2*talosapi.CallTimeout)
	defer cancel()
	_, err := c.talos[node.Address].ApplyConfiguration(ctx, request)
	return talosapi.Message(err)
}

// Reboot makes a node reboot. It returns before the node does.
func (c *Cluster) Reboot(ctx context.Context, node turn.Node) error {
	ctx, cancel := context.WithTimeout(ctx, 2*talosapi.CallTimeout)
	defer cancel()
	return talosapi.Message(c.talos[node.Address].Reboot(ctx))
}

// RefusedError is the error of a node that does not take a configuration, which no waiting changes.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }

// ChangeConfiguration changes the configuration that a node runs, and nothing else in it: at once without a reboot, or from the next boot
// on, by the mode. A node that has stepped aside takes part in the election of the virtual IP again.
func ChangeConfiguration(
	ctx context.Context, talos *client.Client, mode machine.ApplyConfigurationRequest_Mode, change func(*v1alpha1.Config) error,
) error {
	current, err := lasting(ctx, talos)
	if err != nil {
		return err
	}
	changed, err := current.PatchV1Alpha1(change)
	if err != nil {
		return RefusedError("its machine configuration cannot be changed") // the cause may quote the configuration
	}
	text, err := changed.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return RefusedError("its machine configuration cannot be written")
	}
	_, err = talos.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{Data: text, Mode: mode})
	if status.Code(err) == codes.InvalidArgument {
		return RefusedError(talosapi.Message(err).Error())
	}
	return err
}

// Configured reports whether a node has a machine configuration; an error if it does not answer. One without is no part of the cluster.
func (c *Cluster) Configured(ctx context.Context, node turn.Node) (bool, error) {
	_, configured, err := talosapi.DisksInMaintenance(ctx, node.Address.String(), c.options...)
	return configured, talosapi.Message(err)
}

// Configure gives a machine without a configuration its first one.
func (c *Cluster) Configure(ctx context.Context, node turn.Node, configuration string) error {
	configured, err := talosapi.ConfigureInMaintenance(ctx, node.Address.String(), configuration, c.options...)
	if configured {
		return errors.New("it has a configuration")
	}
	return talosapi.Message(err)
}
