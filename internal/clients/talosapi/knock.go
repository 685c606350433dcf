package talosapi

import (
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"

	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// Knock opens a connection to the Talos API of a machine, and closes it again. The error is the operating system's: a machine that refuses
// the connection has its address, and no API.
func Knock(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(constants.ApidPort)))
	if err != nil {
		return err
	}
	return conn.Close()
}

// ClosedHint is what a machine that is Closed may mean.
const ClosedHint = "it has its address, and refuses connections to Talos's API: look at its console. If Talos is already installed to " +
	"disk there, its installation has failed; if it does not get on, it cannot pull its installer"

// Closed reports whether a machine has its address and no Talos API. One that cannot be reached is not closed.
func Closed(ctx context.Context, address string) bool {
	return errors.Is(Knock(ctx, address), syscall.ECONNREFUSED)
}
