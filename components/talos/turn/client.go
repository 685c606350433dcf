package turn

import (
	"context"

	"github.com/cosi-project/runtime/pkg/safe"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/slipway-platform/slipway/internal/talosapi"
)

// apis are clients of the control planes' Talos APIs.
type apis struct{ talosapi.Clients }

func dial(ctx context.Context, t Turn) (apis, error) {
	const name = "turn"
	config := &clientconfig.Config{Context: name, Contexts: map[string]*clientconfig.Context{
		name: {CA: t.Credentials.CA, Crt: t.Credentials.Certificate, Key: t.Credentials.Key},
	}}
	all, err := talosapi.Dial(ctx, config, append([]string{t.Node}, t.Others...)...)
	return apis{all}, err
}

// look asks one node for the stage of the machine and the state of etcd.
func (a apis) look(ctx context.Context, node string) observation {
	stage, err := a.stage(ctx, node)
	if err != nil {
		return observation{err: err}
	}
	etcd, err := a.Service(ctx, node, "etcd")
	if err != nil {
		return observation{err: err}
	}
	seen := observation{stage: stage, etcd: etcd.State, healthy: etcd.Healthy}
	if etcd.State == "" {
		seen.etcd = "not there"
	}
	return seen
}

// stage asks one node for the stage of the machine.
func (a apis) stage(ctx context.Context, node string) (runtime.MachineStage, error) {
	machine, err := safe.StateGetByID[*runtime.MachineStatus](ctx, a.Clients[node].COSI, runtime.MachineStatusID)
	if err != nil {
		return runtime.MachineStageUnknown, err
	}
	return machine.TypedSpec().Stage, nil
}
