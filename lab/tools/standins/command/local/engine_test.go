package local

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
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
	"google.golang.org/protobuf/types/known/structpb"
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

// serve returns the plugin's RPC server, and the engine that it sends messages to.
func serve(t *testing.T) (rpc.ResourceProviderServer, *engine) {
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
	return command, e
}

// urn is that of a Command.
const urn = "urn:pulumi:test::test::command:local:Command::c"

// marshal returns properties as the engine sends them.
func marshal(t *testing.T, properties resource.PropertyMap) *structpb.Struct {
	t.Helper()
	marshalled, err := plugin.MarshalProperties(properties, plugin.MarshalOptions{KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	return marshalled
}

// create creates a Command through the plugin's RPC server and returns what the engine was sent.
func create(t *testing.T, inputs resource.PropertyMap) []*rpc.LogRequest {
	t.Helper()
	command, e := serve(t)
	if _, err := command.Create(t.Context(), &rpc.CreateRequest{Urn: urn, Properties: marshal(t, inputs)}); err != nil {
		t.Fatal(err)
	}
	return e.messages
}

// The program has a Command that runs something when it is deleted, and whose inputs change.
func TestCommand_WithOnlyDeleteRunsNothingUntilItIsDeleted(t *testing.T) {
	command, _ := serve(t)
	file := filepath.Join(t.TempDir(), "ran")
	inputs := func(stdin string, deletes bool) *structpb.Struct {
		properties := resource.PropertyMap{"stdin": resource.MakeSecret(resource.NewProperty(stdin))}
		if deletes {
			properties["delete"] = resource.NewProperty("cat >>" + file)
		}
		return marshal(t, properties)
	}
	news := inputs("first", false)
	created, err := command.Create(t.Context(), &rpc.CreateRequest{Urn: urn, Properties: news})
	if err != nil {
		t.Fatal(err)
	}
	id, state := created.GetId(), created.GetProperties()
	for _, next := range []*structpb.Struct{
		inputs("second", false), inputs("second", true), inputs("third", true), inputs("third", false), inputs("last", true),
	} {
		olds := news
		news = next
		diff, err := command.Diff(t.Context(), &rpc.DiffRequest{Id: id, Urn: urn, Olds: state, News: news, OldInputs: olds})
		if err != nil {
			t.Fatal(err)
		}
		if diff.GetChanges() != rpc.DiffResponse_DIFF_SOME || len(diff.GetReplaces()) > 0 {
			t.Errorf("%v: changes %v, replaces %v; it is to be updated in place", next, diff.GetChanges(), diff.GetReplaces())
		}
		updated, err := command.Update(t.Context(), &rpc.UpdateRequest{Id: id, Urn: urn, Olds: state, News: news, OldInputs: olds})
		if err != nil {
			t.Fatal(err)
		}
		state = updated.GetProperties()
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has run before it was deleted: %v", err)
	}
	if _, err := command.Delete(t.Context(), &rpc.DeleteRequest{Id: id, Urn: urn, Properties: state, OldInputs: news}); err != nil {
		t.Fatal(err)
	}
	if ran, err := os.ReadFile(file); err != nil || string(ran) != "last" {
		t.Errorf("on delete it got %q as its standard input: %v", ran, err)
	}
}

// The program has a Command that compares its environment with its former output. A failed run must not lose that.
func TestCommand_AnUpdateGetsTheOutputOfTheLastRunThatSucceeded(t *testing.T) {
	command, _ := serve(t)
	inputs := func(record string) *structpb.Struct {
		return marshal(t, resource.PropertyMap{
			"create":                 resource.NewProperty(`echo "$RECORD"`),
			"update":                 resource.NewProperty(`test "$RECORD" != fails && echo "$RECORD after $PULUMI_COMMAND_STDOUT"`),
			"environment":            resource.NewProperty(resource.PropertyMap{"RECORD": resource.NewProperty(record)}),
			"stdin":                  resource.MakeSecret(resource.NewProperty(record)),
			"addPreviousOutputInEnv": resource.NewProperty(true),
		})
	}
	news := inputs("first")
	created, err := command.Create(t.Context(), &rpc.CreateRequest{Urn: urn, Properties: news})
	if err != nil {
		t.Fatal(err)
	}
	id, state := created.GetId(), created.GetProperties()
	for _, record := range []string{"fails", "second", "third"} {
		olds := news
		next := inputs(record)
		diff, err := command.Diff(t.Context(), &rpc.DiffRequest{Id: id, Urn: urn, Olds: state, News: next, OldInputs: olds})
		if err != nil {
			t.Fatal(err)
		}
		if diff.GetChanges() != rpc.DiffResponse_DIFF_SOME || len(diff.GetReplaces()) > 0 {
			t.Errorf("%s: changes %v, replaces %v; it is to be updated in place", record, diff.GetChanges(), diff.GetReplaces())
		}
		updated, err := command.Update(t.Context(), &rpc.UpdateRequest{Id: id, Urn: urn, Olds: state, News: next, OldInputs: olds})
		if failed := err != nil; failed != (record == "fails") {
			t.Fatalf("%s: %v", record, err)
		}
		if err == nil { // otherwise the engine keeps the former state
			news, state = next, updated.GetProperties()
		}
	}
	outputs, err := plugin.UnmarshalProperties(state, plugin.MarshalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := outputs["stdout"].StringValue(); got != "third after second after first" {
		t.Errorf("got %q", got)
	}
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
