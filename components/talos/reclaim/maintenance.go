package reclaim

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
)

// inMaintenance asks Talos for its disks without a client certificate. Only a machine without a configuration answers:
// it has no certificate authority to know anybody by. A configured one refuses the connection.
func inMaintenance(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	// Nothing is told to the server, so it does not matter that it cannot prove who it is.
	talos, err := client.New(ctx, client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}), client.WithEndpoints(address)) //nolint:gosec // see above
	if err != nil {
		return err
	}
	defer talos.Close() //nolint:errcheck // nothing is left to be lost
	_, err = talos.Disks(ctx)
	return err
}
