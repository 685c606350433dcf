package local

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi-go-provider/infer"
	"github.com/pulumi/pulumi/pkg/v3/resource/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// engine records the messages that a plugin sends to the engine.
type engine struct {
	rpc.UnimplementedEngineServer
	mu       sync.Mutex
	messages []*rpc.LogRequest
}

func (e *engine) Log(_ context.Context, message *rpc.LogRequest) (*emptypb.Empty, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.messages = append(e.messages, message)
	return new(emptypb.Empty), nil
}

// create creates a Command through the plugin's RPC server and returns what the engine was sent.
func create(t *testing.T, inputs resource.PropertyMap) []*rpc.LogRequest {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e, server := new(engine), grpc.NewServer()
	rpc.RegisterEngineServer(server, e)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	host, err := provider.NewHostClient(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	built, err := infer.NewProviderBuilder().WithResources(infer.Resource(&Command{})).Build()
	if err != nil {
		t.Fatal(err)
	}
	command, err := p.RawServer("command", "1.2.1", built)(host)
	if err != nil {
		t.Fatal(err)
	}
	properties, err := plugin.MarshalProperties(inputs, plugin.MarshalOptions{KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	urn := "urn:pulumi:test::test::command:local:Command::c"
	if _, err := command.Create(t.Context(), &rpc.CreateRequest{Urn: urn, Properties: properties}); err != nil {
		t.Fatal(err)
	}
	return e.messages
}

func TestCommand_ShowsStatusMessagesWhichAreNoDiagnostics(t *testing.T) {
	for logging, want := range map[Logging][]string{"": {"err", "out"}, LogStderr: {"err"}, LogNone: nil} {
		inputs := resource.PropertyMap{"create": resource.NewProperty("echo err >&2; echo out")}
		if logging != "" {
			inputs["logging"] = resource.NewProperty(string(logging))
		}
		var got []string
		for _, message := range create(t, inputs) {
			got = append(got, message.GetMessage())
			if !message.GetEphemeral() {
				t.Errorf("%q is not a status message: it would be among the diagnostics", message.GetMessage())
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("logging %q: got %q, want %q", logging, got, want)
		}
	}
}
