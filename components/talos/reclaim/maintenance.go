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

// errHoldsTalos is the certainty that a machine was given a configuration, now or earlier: it does not help to wait.
var errHoldsTalos = errors.New("it holds a Talos")

// inMaintenance asks Talos for its disks without a client certificate. Only a machine without a configuration answers:
// it has no certificate authority to know anybody by. A configured one asks for a certificate. One that was configured
// once and lost its configuration still has Talos on a disk, and maybe more.
func inMaintenance(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var asked atomic.Bool
	talos, err := client.New(ctx, client.WithEndpoints(address), client.WithTLSConfig(&tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // nothing is told to the server, so it need not prove who it is
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked.Store(true)
			return &tls.Certificate{}, nil
		},
	}))
	if err != nil {
		return err
	}
	defer talos.Close() //nolint:errcheck // nothing is left to be lost
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
