package turn

import (
	"context"
	"fmt"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// apis are the control planes' Talos APIs, each reached at its own address and never through another node.
type apis map[string]*client.Client

func dial(ctx context.Context, t Turn) (apis, error) {
	const name = "turn"
	config := &clientconfig.Config{Context: name, Contexts: map[string]*clientconfig.Context{
		name: {CA: t.Credentials.CA, Crt: t.Credentials.Certificate, Key: t.Credentials.Key},
	}}
	// Nodes reboot under us: gRPC's own backoff would have grown to minutes by the time they are back.
	params := grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.5, MaxDelay: interval},
		MinConnectTimeout: callTimeout,
	}
	all := apis{}
	for _, node := range append([]string{t.Node}, t.Others...) {
		one, err := client.New(ctx, client.WithConfig(config), client.WithEndpoints(node), client.WithGRPCDialOptions(grpc.WithConnectParams(params)))
		if err != nil {
			all.close()
			return nil, fmt.Errorf("%s: %w", node, err)
		}
		all[node] = one
	}
	return all, nil
}

func (a apis) close() {
	for _, one := range a {
		_ = one.Close() // nothing is left to be lost
	}
}

// look asks one node for its stage and its etcd.
func (a apis) look(ctx context.Context, node string) sight {
	machine, err := safe.StateGetByID[*runtime.MachineStatus](ctx, a[node].COSI, runtime.MachineStatusID)
	if err != nil {
		return sight{err: err}
	}
	seen := sight{stage: machine.TypedSpec().Stage, etcd: "not there"}
	services, err := a[node].ServiceList(ctx)
	if err != nil {
		return sight{err: err}
	}
	for _, message := range services.GetMessages() {
		for _, service := range message.GetServices() {
			if service.GetId() == "etcd" {
				seen.etcd, seen.healthy = service.GetState(), service.GetHealth().GetHealthy()
			}
		}
	}
	return seen
}
