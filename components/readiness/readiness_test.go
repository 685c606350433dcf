package readiness

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pulumi/pulumi-command/sdk/go/command"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/probe"
)

const report = `{"kind":"gate","outcome":"open"}`

// engine records registered resources. A probe fails if probeFails is set.
type engine struct {
	probeFails bool

	mu         sync.Mutex
	registered map[string]pulumi.MockResourceArgs // by name
}

func (e *engine) NewResource(args pulumi.MockResourceArgs) (string, resource.PropertyMap, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.registered == nil {
		e.registered = map[string]pulumi.MockResourceArgs{}
	}
	e.registered[args.Name] = args
	state := args.Inputs.Copy()
	if args.TypeToken == "command:local:Command" {
		if e.probeFails {
			return "", nil, errors.New("exit status 1")
		}
		// The real provider marks it secret, because an input is secret.
		state["stdout"] = resource.MakeSecret(resource.NewProperty("gate of infra: open\n" + report + "\n"))
	}
	return args.Name + "-id", state, nil
}

func (e *engine) Call(pulumi.MockCallArgs) (resource.PropertyMap, error) { return nil, nil }

func (e *engine) rpc(t *testing.T, name string) *pulumirpc.RegisterResourceRequest {
	t.Helper()
	require.Contains(t, e.registered, name)
	return e.registered[name].RegisterRPC
}

func gateArgs() *ReadinessGateArgs {
	return &ReadinessGateArgs{
		Steps:       component.Steps{Name: "infra", Kubeconfig: pulumi.ToSecret(pulumi.String("KUBE")).(pulumi.StringOutput)},
		Talosconfig: pulumi.String("TALOS"),
		Nodes:       []gate.Machine{{Name: "infra-cp-1", Role: cluster.ControlPlane, Address: netip.MustParseAddr("10.25.11.11")}},
		Cilium:      &gate.Cilium{Version: "1.18.7"},
		Verifies:    map[string]pulumi.Input{"values": pulumi.String("abc"), "talos": pulumi.String("v1.12.7")},
		Timeout:     10 * time.Minute,
	}
}

// up runs a program with one gate, a resource before it and one after it.
func up(t *testing.T, e *engine, args *ReadinessGateArgs, option pulumi.RunOption) error {
	t.Helper()
	return pulumi.RunErr(func(ctx *pulumi.Context) error {
		var before pulumi.CustomResourceState
		if err := ctx.RegisterResource("test:index:Release", "before", pulumi.Map{}, &before); err != nil {
			return err
		}
		commands, err := command.NewProvider(ctx, "commands", nil)
		if err != nil {
			return err
		}
		args.DependsOn, args.CommandProvider = []pulumi.Resource{&before}, commands
		made, err := NewReadinessGate(ctx, "gate", args)
		if err != nil {
			return err
		}
		var after, reader pulumi.CustomResourceState
		return errors.Join(ctx.RegisterResource("test:index:Thing", "after", pulumi.Map{}, &after, pulumi.DependsOn(made.Leaves())),
			ctx.RegisterResource("test:index:Thing", "reader", pulumi.Map{"report": made.Report, "spec": made.Spec}, &reader))
	}, pulumi.WithMocks("slipway", "infra", e), option)
}

func noOption(*pulumi.RunInfo) {}

func TestReadinessGate_TheProbeIsOneCommandThatRunsOnCreateOnly(t *testing.T) {
	e := &engine{}
	require.NoError(t, up(t, e, gateArgs(), noOption))
	run := e.registered["gate-probe"]
	assert.Equal(t, "command:local:Command", run.TypeToken)
	assert.Equal(t, probe.Program+" gate", run.Inputs["create"].StringValue())
	for _, never := range []resource.PropertyKey{"update", "delete", "environment"} {
		assert.NotContains(t, run.Inputs, never)
	}
	assert.False(t, run.Inputs["addPreviousOutputInEnv"].BoolValue())
	assert.Equal(t, "urn:pulumi:infra::slipway::slipway:readiness:ReadinessGate::gate", run.RegisterRPC.GetParent())
}

func TestReadinessGate_TheSpecIsSecretAndComplete(t *testing.T) {
	e := &engine{}
	require.NoError(t, up(t, e, gateArgs(), noOption))
	registered := e.registered["gate-probe"]
	assert.Equal(t, []string{"stdin"}, registered.RegisterRPC.GetAdditionalSecretOutputs())
	require.True(t, registered.Inputs["stdin"].IsSecret(), "stdin holds the credentials")
	spec := new(gate.Spec)
	require.NoError(t, probe.Read(strings.NewReader(registered.Inputs["stdin"].SecretValue().Element.StringValue()), spec))
	assert.Equal(t, "KUBE", spec.Kubeconfig)
	assert.Equal(t, "TALOS", spec.Talosconfig)
	assert.Equal(t, gateArgs().Nodes, spec.Nodes)
	assert.Equal(t, "1.18.7", spec.Cilium.Version)
	for key, input := range registered.Inputs {
		if key != "stdin" {
			assert.NotContains(t, input.String(), "KUBE", key)
			assert.NotContains(t, input.String(), "TALOS", key)
		}
	}
}

func TestReadinessGate_TheSpecIsSecretEvenIfTheCredentialsAreNot(t *testing.T) {
	e, args := &engine{}, gateArgs()
	args.Kubeconfig = pulumi.String("KUBE")
	require.NoError(t, up(t, e, args, noOption))
	assert.True(t, e.registered["gate-probe"].Inputs["stdin"].IsSecret())
}

func TestReadinessGate_RunsAgainWhenAnInputChanges(t *testing.T) {
	triggers := func(change func(*ReadinessGateArgs)) string {
		e, args := &engine{}, gateArgs()
		change(args)
		require.NoError(t, up(t, e, args, noOption))
		text, err := json.Marshal(e.registered["gate-probe"].Inputs["triggers"].Mappable())
		require.NoError(t, err)
		return string(text)
	}
	same := triggers(func(*ReadinessGateArgs) {})
	assert.Equal(t, `[{"talos":"v1.12.7"},{"values":"abc"}]`, same)
	for range 20 {
		assert.Equal(t, same, triggers(func(*ReadinessGateArgs) {}), "the order must not change by itself")
	}
	assert.NotEqual(t, same, triggers(func(a *ReadinessGateArgs) { a.Verifies["values"] = pulumi.String("abd") }))
}

func TestReadinessGate_WaitsForItsDependenciesAndItsLeafIsTheProbe(t *testing.T) {
	for range 50 {
		e := &engine{}
		require.NoError(t, up(t, e, gateArgs(), noOption))
		assert.Contains(t, e.rpc(t, "gate-probe").GetDependencies(), "urn:pulumi:infra::slipway::test:index:Release::before")
		assert.Contains(t, e.rpc(t, "after").GetDependencies(),
			"urn:pulumi:infra::slipway::slipway:readiness:ReadinessGate$command:local:Command::gate-probe")
	}
}

func TestReadinessGate_AFailedProbeRegistersNothingAfterIt(t *testing.T) {
	e := &engine{probeFails: true}
	require.Error(t, up(t, e, gateArgs(), noOption))
	assert.Contains(t, e.registered, "gate-probe")
	assert.NotContains(t, e.registered, "after")
}

func TestReadinessGate_TheResourcesTimeoutIsLongerThanTheProbes(t *testing.T) {
	for timeout, limit := range map[time.Duration]string{time.Minute: "6m0s", time.Hour: "1h5m0s"} {
		e, args := &engine{}, gateArgs()
		args.Timeout = timeout
		require.NoError(t, up(t, e, args, noOption))
		assert.Equal(t, limit, e.rpc(t, "gate-probe").GetCustomTimeouts().GetCreate())
		assert.Equal(t, limit, e.rpc(t, "gate-probe").GetCustomTimeouts().GetUpdate())
	}
}

func TestReadinessGate_TheReportIsTheLastLineAndNoSecret(t *testing.T) {
	e := &engine{}
	require.NoError(t, up(t, e, gateArgs(), noOption))
	assert.Equal(t, resource.NewProperty(report), e.registered["reader"].Inputs["report"])
}

func TestReadinessGate_PublishesItsSpecWithoutCredentials(t *testing.T) {
	e, args := &engine{}, gateArgs()
	args.Others = []gate.Machine{{Name: "infra-worker-1", Role: cluster.Worker, Address: netip.MustParseAddr("10.25.11.21")}}
	args.Network = &gate.Network{
		PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}, ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.245.0.0/16")},
	}
	args.Services, args.Approve = []string{"ext-qemu-guest-agent"}, true
	require.NoError(t, up(t, e, args, func(info *pulumi.RunInfo) { info.DryRun = true }))
	text := e.registered["reader"].Inputs["spec"]
	require.True(t, text.IsString(), "it is known in a preview and not secret: %v", text)
	assert.NotContains(t, text.StringValue(), "KUBE")
	assert.NotContains(t, text.StringValue(), "TALOS")
	public, full := new(gate.Spec), new(gate.Spec)
	require.NoError(t, probe.Decode(strings.NewReader(text.StringValue()), public))
	require.NoError(t, probe.Decode(strings.NewReader(e.registered["gate-probe"].Inputs["stdin"].SecretValue().Element.StringValue()), full))
	assert.True(t, full.Approve)
	full.Kubeconfig, full.Talosconfig, full.Approve = "", "", false
	assert.Equal(t, full, public, "by hand, the gate changes nothing")
	assert.Equal(t, args.Others, public.Others)
	assert.Equal(t, args.Services, public.Services)
}

func TestReadinessGate_APreviewRegistersTheSameResources(t *testing.T) {
	e := &engine{}
	require.NoError(t, up(t, e, gateArgs(), func(info *pulumi.RunInfo) { info.DryRun = true }))
	for _, name := range []string{"gate", "gate-probe", "after"} {
		assert.Contains(t, e.registered, name)
	}
}

func TestReadinessGate_NamesEveryProblemBeforeAnythingIsRegistered(t *testing.T) {
	e := &engine{}
	err := up(t, e, &ReadinessGateArgs{
		Timeout: -time.Second, Nodes: []gate.Machine{{Name: "a", Role: "boss"}},
	}, noOption)
	require.Error(t, err)
	for _, problem := range []string{
		"cluster:", "kubeconfig:", "talosconfig:", "nodes[0].role:", "nodes[0].address:", "timeout:",
	} {
		assert.ErrorContains(t, err, problem)
	}
	assert.NotContains(t, e.registered, "gate")
}

func TestReadinessGate_RequiresATimeout(t *testing.T) {
	e, args := &engine{}, gateArgs()
	args.Timeout = 0
	require.ErrorContains(t, up(t, e, args, noOption), "timeout: is missing; pass a duration such as 10m")
	assert.NotContains(t, e.registered, "gate")
}
