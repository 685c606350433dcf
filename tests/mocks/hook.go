package mocks

import (
	"context"
	"errors"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// Hook is a resource hook that the program registered. Registration.BeforeCreate names the hooks of a resource.
type Hook struct {
	Name     string
	OnDryRun bool // also runs in previews

	callback *pulumirpc.Callback
}

func (p *engineMonitor) RegisterResourceHook(_ context.Context, in *pulumirpc.RegisterResourceHookRequest) (*emptypb.Empty, error) {
	return p.registerHook(Hook{Name: in.GetName(), OnDryRun: in.GetOnDryRun(), callback: in.GetCallback()})
}

// RegisterErrorHook records a hook that runs after a failure. The recorder never calls it.
func (p *engineMonitor) RegisterErrorHook(_ context.Context, in *pulumirpc.RegisterErrorHookRequest) (*emptypb.Empty, error) {
	return p.registerHook(Hook{Name: in.GetName(), callback: in.GetCallback()})
}

func (p *engineMonitor) registerHook(hook Hook) (*emptypb.Empty, error) {
	p.monitor.mu.Lock()
	defer p.monitor.mu.Unlock()
	for _, other := range p.monitor.hooks {
		if other.Name == hook.Name {
			return nil, fmt.Errorf("hook %q is registered twice", hook.Name)
		}
	}
	p.monitor.hooks = append(p.monitor.hooks, hook)
	return &emptypb.Empty{}, nil
}

// before runs the hooks that are bound to the resource's creation, or to the update of one that exists. An error of a hook prevents it.
func (m monitor) before(ctx context.Context, in *pulumirpc.RegisterResourceRequest, urn string) error {
	names := in.GetHooks().GetBeforeCreate()
	former, exists := m.Former[in.GetName()]
	if exists {
		names = in.GetHooks().GetBeforeUpdate()
	}
	outputs, err := plugin.MarshalProperties(former, marshalling)
	if err != nil {
		return err
	}
	for _, name := range names {
		hook, found := m.hook(name)
		if !found {
			return fmt.Errorf("hook %q was not registered", name)
		}
		if !m.RunHooks || m.DryRun && !hook.OnDryRun {
			continue
		}
		if err := hook.call(ctx, in, urn, outputs); err != nil {
			return fmt.Errorf("before hook %q failed: %w", name, err)
		}
	}
	return nil
}

func (m monitor) hook(name string) (Hook, bool) {
	for _, hook := range m.Hooks() {
		if hook.Name == name {
			return hook, true
		}
	}
	return Hook{}, false
}

// call sends a request to the program, which serves its hooks on the loopback.
func (h Hook) call(ctx context.Context, in *pulumirpc.RegisterResourceRequest, urn string, former *structpb.Struct) error {
	conn, err := grpc.NewClient(h.callback.GetTarget(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close() // the reply is read by then
	request, err := proto.Marshal(&pulumirpc.ResourceHookRequest{
		Urn: urn, Name: in.GetName(), Type: in.GetType(), NewInputs: in.GetObject(), OldOutputs: former,
	})
	if err != nil {
		return err
	}
	reply, err := pulumirpc.NewCallbacksClient(conn).Invoke(ctx, &pulumirpc.CallbackInvokeRequest{
		Token: h.callback.GetToken(), Request: request,
	})
	if err != nil {
		return err
	}
	var response pulumirpc.ResourceHookResponse
	if err := proto.Unmarshal(reply.GetResponse(), &response); err != nil {
		return err
	}
	if response.GetError() != "" {
		return errors.New(response.GetError())
	}
	return nil
}
