package reclaim

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
)

// errHoldsTalos means that a machine has or had a configuration: waiting does not change that.
var errHoldsTalos = errors.New("it holds a Talos")

// inMaintenance returns nil if the machine is in maintenance mode and no disk has Talos installed. It asks Talos for its disks
// without a client certificate. Only a machine without a configuration answers: it has no certificate authority to check clients
// with. A configured machine asks for a certificate. A machine that lost its configuration still has Talos on a disk, and
// maybe data.
func inMaintenance(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var asked atomic.Bool
	talos, err := client.New(ctx, client.WithEndpoints(address), client.WithTLSConfig(&tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // nothing secret is sent to the server, so it need not prove its identity
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked.Store(true)
			return &tls.Certificate{}, nil
		},
	}))
	if err != nil {
		return err
	}
	defer talos.Close() //nolint:errcheck // all replies are read by then
	reply, err := talos.Disks(ctx)
	if asked.Load() {
		return fmt.Errorf("%w with a configuration: it asks for a client certificate", errHoldsTalos)
	}
	if err != nil {
		return err
	}
	for _, message := range reply.GetMessages() {
		for _, disk := range message.GetDisks() {
			if disk.GetSystemDisk() {
				return fmt.Errorf("%w, installed on %s", errHoldsTalos, disk.GetDeviceName())
			}
		}
	}
	return nil
}
