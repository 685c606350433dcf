package live

import (
	"context"
	"errors"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/talosapi"
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
	Unknown Effect = iota // the node does not answer
	Reboots
	KeepsRunning
	Refused // the node does not take the configuration
)

// Effect asks a node what a machine configuration would do. Nothing is changed.
func (c *Cluster) Effect(ctx context.Context, node turn.Node, configuration string) (Effect, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*talosapi.CallTimeout)
	defer cancel()
	reply, err := c.talos[node.Address].ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{
		Data: []byte(configuration), Mode: machine.ApplyConfigurationRequest_AUTO, DryRun: true,
	})
	if status.Code(err) == codes.InvalidArgument {
		return Refused, talosapi.Message(err)
	}
	if err != nil {
		return Unknown, talosapi.Message(err)
	}
	for _, message := range reply.GetMessages() {
		if message.GetMode() == machine.ApplyConfigurationRequest_REBOOT {
			return Reboots, nil
		}
		return KeepsRunning, nil
	}
	return Unknown, errors.New("the answer is empty")
}

// RefusedError is the error of a node that does not take a configuration, which no waiting changes.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }

// ChangeConfiguration changes the configuration that a node has, and nothing else in it, without a reboot.
func ChangeConfiguration(ctx context.Context, talos *client.Client, change func(*v1alpha1.Config) error) error {
	current, err := safe.StateGetByID[*config.MachineConfig](ctx, talos.COSI, config.ActiveID)
	if err != nil {
		return err
	}
	changed, err := current.Provider().PatchV1Alpha1(change)
	if err != nil {
		return RefusedError("its machine configuration cannot be changed") // the cause may quote the configuration
	}
	text, err := changed.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return RefusedError("its machine configuration cannot be written")
	}
	_, err = talos.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{Data: text, Mode: machine.ApplyConfigurationRequest_NO_REBOOT})
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
