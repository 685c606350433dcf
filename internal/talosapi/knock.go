package talosapi

import (
	"context"
	"net"
	"strconv"

	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// Knock opens a connection to the Talos API of a machine, and closes it again. The error is that of the operating system: a machine that
// refuses the connection has its address, and no API.
func Knock(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(constants.ApidPort)))
	if err != nil {
		return err
	}
	return conn.Close()
}
