package talosapi

import (
	"context"
	"crypto/tls"
	"sync/atomic"

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
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var asked atomic.Bool
	talos, err := client.New(ctx, client.WithEndpoints(endpoint), client.WithGRPCDialOptions(options...), client.WithTLSConfig(&tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // nothing secret is sent to the server, so it need not prove its identity
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked.Store(true)
			return &tls.Certificate{}, nil
		},
	}))
	if err != nil {
		return nil, false, err
	}
	defer talos.Close() // all replies are read by then
	reply, err := talos.Disks(ctx)
	if asked.Load() {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	for _, message := range reply.GetMessages() {
		disks = append(disks, message.GetDisks()...)
	}
	return disks, false, nil
}
