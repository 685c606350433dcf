// Package talosapi calls the Talos APIs of several nodes, each at its own address and never through another node: while a cluster starts,
// or nodes reboot, the nodes may not reach each other.
package talosapi

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
)

// CallTimeout is for one call, which a rebooting node may never answer.
const CallTimeout = 5 * time.Second

// lostAfter is how long data may stay unacknowledged until a connection is given up, and made anew. A machine that loses its power, or
// boots by kexec, says no farewell: TCP alone would try in longer and longer steps, and see a machine that is back up to a minute late.
const lostAfter = 30 * time.Second

// liveness lets gRPC set lostAfter as TCP_USER_TIMEOUT, which it does on Linux. Its own pings are rarer than the five minutes that a server
// without a policy for them, as Talos's is, takes for an attack.
var liveness = keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: lostAfter}

// Clients are Talos clients by the node's address.
type Clients map[netip.Addr]*client.Client

// Dial makes a client for each node, with the credentials of the configuration's current context. It does not connect.
func Dial(ctx context.Context, config *clientconfig.Config, nodes []netip.Addr, options ...grpc.DialOption) (Clients, error) {
	all := Clients{}
	for _, node := range nodes {
		one, err := DialEndpoint(ctx, config, node.String(), options...)
		if err != nil {
			all.Close()
			return nil, err
		}
		all[node] = one
	}
	return all, nil
}

// DialEndpoint makes a client for an endpoint as talosconfigs write it: a name or an address, with an optional port. It does not connect.
func DialEndpoint(
	ctx context.Context, config *clientconfig.Config, endpoint string, options ...grpc.DialOption,
) (*client.Client, error) {
	// By default gRPC waits for up to two minutes before it connects again, and a node that has rebooted must be seen at once.
	params := grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second},
		MinConnectTimeout: CallTimeout,
	}
	own := []grpc.DialOption{grpc.WithConnectParams(params), grpc.WithKeepaliveParams(liveness)}
	one, err := client.New(ctx, client.WithConfig(config), client.WithEndpoints(endpoint),
		client.WithGRPCDialOptions(slices.Concat(own, options)...))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", endpoint, err)
	}
	return one, nil
}

// Close closes the connections.
func (c Clients) Close() {
	for _, one := range c {
		_ = one.Close() // no data can be lost
	}
}

// Service asks a node for one of its services.
func (c Clients) Service(ctx context.Context, node netip.Addr, id string) (Service, error) {
	services, err := Services(ctx, c[node])
	return services[id], err
}

// bootID is the file in which Linux says which boot this is.
const bootID = "/proc/sys/kernel/random/boot_id"

// Boot asks a node for the id of its boot, which changes with every reboot.
func (c Clients) Boot(ctx context.Context, node netip.Addr) (string, error) {
	file, err := c[node].Read(ctx, bootID)
	if err != nil {
		return "", err
	}
	defer file.Close() // all is read by then
	text, err := io.ReadAll(io.LimitReader(file, 256))
	return strings.TrimSpace(string(text)), err
}
