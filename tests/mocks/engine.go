package mocks

import (
	"context"
	"net"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// run runs the program against an engine on the loopback. It does not use pulumi.WithMocks, whose monitor fails on an input that is
// both unknown and secret (in a preview, a kubeconfig is both) and on every resource hook.
func (r *Recorder) run(program pulumi.RunFunc) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	pulumirpc.RegisterResourceMonitorServer(server, &engineMonitor{monitor: monitor{r}})
	pulumirpc.RegisterEngineServer(server, &engine{})
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(listener) }) //nolint:errcheck // it ends with Stop; after any other end, the program fails
	defer serving.Wait()
	defer server.Stop()

	return pulumi.RunErr(program, func(info *pulumi.RunInfo) {
		r.configure(info)
		info.Project, info.Stack = r.project(), r.stack()
		info.MonitorAddr, info.EngineAddr = listener.Addr().String(), listener.Addr().String()
	})
}

// marshalling preserves unknown and secret values.
var marshalling = plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true, KeepResources: true}

// engineMonitor implements the engine's part of registrations and invokes, as far as a program depends on it.
type engineMonitor struct {
	pulumirpc.UnimplementedResourceMonitorServer
	monitor monitor
}

func (p *engineMonitor) SupportsFeature(
	_ context.Context, in *pulumirpc.SupportsFeatureRequest,
) (*pulumirpc.SupportsFeatureResponse, error) {
	switch in.GetId() {
	case "secrets", "resourceReferences", "aliasSpecs", "deletedWith", "replaceWith", "resourceHooks", "errorHooks":
		return &pulumirpc.SupportsFeatureResponse{HasSupport: true}, nil
	}
	return &pulumirpc.SupportsFeatureResponse{}, nil
}

func (p *engineMonitor) RegisterResource(
	ctx context.Context, in *pulumirpc.RegisterResourceRequest,
) (*pulumirpc.RegisterResourceResponse, error) {
	args := pulumi.MockResourceArgs{
		TypeToken: in.GetType(), Name: in.GetName(), Provider: in.GetProvider(), ID: in.GetImportId(), Custom: in.GetCustom(),
		RegisterRPC: in,
	}
	var err error
	if args.Inputs, err = plugin.UnmarshalProperties(in.GetObject(), marshalling); err != nil {
		return nil, err
	}
	urn := p.monitor.urn(newRegistration(args))
	if in.GetType() == string(resource.RootStackType) && in.GetParent() == "" {
		return &pulumirpc.RegisterResourceResponse{Urn: urn}, nil
	}
	if err := p.monitor.before(ctx, in, urn); err != nil {
		return nil, err
	}
	id, state, err := p.answer(args)
	if err != nil {
		return nil, err
	}
	return &pulumirpc.RegisterResourceResponse{Urn: urn, Id: id, Object: state}, nil
}

func (p *engineMonitor) ReadResource(_ context.Context, in *pulumirpc.ReadResourceRequest) (*pulumirpc.ReadResourceResponse, error) {
	args := pulumi.MockResourceArgs{
		TypeToken: in.GetType(), Name: in.GetName(), Provider: in.GetProvider(), ID: in.GetId(), ReadRPC: in,
	}
	var err error
	if args.Inputs, err = plugin.UnmarshalProperties(in.GetProperties(), marshalling); err != nil {
		return nil, err
	}
	_, state, err := p.answer(args)
	if err != nil {
		return nil, err
	}
	return &pulumirpc.ReadResourceResponse{Urn: p.monitor.urn(newRegistration(args)), Properties: state}, nil
}

func (p *engineMonitor) answer(args pulumi.MockResourceArgs) (id string, state *structpb.Struct, err error) {
	id, properties, err := p.monitor.NewResource(args)
	if err != nil {
		return "", nil, err
	}
	state, err = plugin.MarshalProperties(properties, marshalling)
	return id, state, err
}

func (p *engineMonitor) Invoke(_ context.Context, in *pulumirpc.ResourceInvokeRequest) (*pulumirpc.InvokeResponse, error) {
	args, err := plugin.UnmarshalProperties(in.GetArgs(), marshalling)
	if err != nil {
		return nil, err
	}
	result, err := p.monitor.call(Call{
		MockCallArgs: pulumi.MockCallArgs{Token: in.GetTok(), Args: args, Provider: in.GetProvider()}, Version: in.GetVersion(),
	})
	if err != nil {
		return nil, err
	}
	properties, err := plugin.MarshalProperties(result, marshalling)
	return &pulumirpc.InvokeResponse{Return: properties}, err
}

func (p *engineMonitor) RegisterResourceOutputs(context.Context, *pulumirpc.RegisterResourceOutputsRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

// engine stores the root resource, and discards log messages.
type engine struct {
	pulumirpc.UnimplementedEngineServer
	mu   sync.Mutex
	root string
}

func (p *engine) Log(context.Context, *pulumirpc.LogRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (p *engine) GetRootResource(context.Context, *pulumirpc.GetRootResourceRequest) (*pulumirpc.GetRootResourceResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &pulumirpc.GetRootResourceResponse{Urn: p.root}, nil
}

func (p *engine) SetRootResource(_ context.Context, in *pulumirpc.SetRootResourceRequest) (*pulumirpc.SetRootResourceResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.root = in.GetUrn()
	return &pulumirpc.SetRootResourceResponse{}, nil
}
