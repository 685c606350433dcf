package live

import (
	"context"
	"errors"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
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

// Configured reports whether a node has a machine configuration; an error if it does not answer. One without is no part of the cluster.
func (c *Cluster) Configured(ctx context.Context, node turn.Node) (bool, error) {
	_, configured, err := talosapi.DisksInMaintenance(ctx, node.Address.String(), c.options...)
	return configured, talosapi.Message(err)
}
