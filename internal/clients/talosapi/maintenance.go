package talosapi

import (
	"context"
	"crypto/tls"
	"errors"
	"sync/atomic"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc"
)

// DisksInMaintenance asks a machine for its disks without a client certificate. Only a machine without a configuration answers: it has no
// certificate authority to check clients with. A configured machine asks for a certificate; then configured is true, and the rest is not
// set.
func DisksInMaintenance(
	ctx context.Context, endpoint string, options ...grpc.DialOption,
) (disks []*storage.Disk, configured bool, err error) {
	configured, err = inMaintenance(ctx, endpoint, options, func(ctx context.Context, talos *client.Client) error {
		reply, err := talos.Disks(ctx)
		for _, message := range reply.GetMessages() {
			disks = append(disks, message.GetDisks()...)
		}
		return err
	})
	return disks, configured, err
}

// ErrMaintenance is the state of a machine that was given its configuration and has none.
var ErrMaintenance = errors.New("is in maintenance mode, without a configuration. If it has never joined, its installation has failed, " +
	"such as for an installer that it could not pull: its console had the reason, and the next up gives it its configuration again. If it " +
	"has, its disk is empty: raise its generation (docs/nodes.md, Replacing a node)")

// InMaintenance reports whether a machine answers and has no configuration.
func InMaintenance(ctx context.Context, endpoint string, options ...grpc.DialOption) bool {
	_, configured, err := DisksInMaintenance(ctx, endpoint, options...)
	return err == nil && !configured
}

// Hint returns why a machine without an answer has none; "" if nothing is known.
func Hint(ctx context.Context, address string) string {
	switch {
	case Closed(ctx, address):
		return ClosedHint
	case InMaintenance(ctx, address):
		return "it " + ErrMaintenance.Error()
	}
	return ""
}

// ConfigureInMaintenance gives a machine without a configuration its first one, as the Talos provider does: such a machine cannot prove its
// identity. configured is true, and nothing is sent, if it has one.
func ConfigureInMaintenance(ctx context.Context, endpoint, configuration string, options ...grpc.DialOption) (configured bool, err error) {
	return inMaintenance(ctx, endpoint, options, func(ctx context.Context, talos *client.Client) error {
		_, err := talos.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{Data: []byte(configuration)})
		return err
	})
}

// inMaintenance calls a machine without a client certificate. configured is true if the machine asks for one: then nothing is sent.
func inMaintenance(
	ctx context.Context, endpoint string, options []grpc.DialOption, call func(context.Context, *client.Client) error,
) (configured bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var asked atomic.Bool
	talos, err := client.New(ctx, client.WithEndpoints(endpoint), client.WithGRPCDialOptions(options...), client.WithTLSConfig(&tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // a machine without a configuration has no identity that it could prove
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked.Store(true)
			return nil, errors.New("the machine asks for a client certificate")
		},
	}))
	if err != nil {
		return false, err
	}
	defer talos.Close() // all replies are read by then
	if err = call(ctx, talos); asked.Load() {
		return true, nil
	}
	return false, err
}
