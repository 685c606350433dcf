package readiness

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/mesh"
	"github.com/slipway-platform/slipway/internal/health/storage"
	"github.com/slipway-platform/slipway/internal/probe"
)

func TestMeshGate(t *testing.T) {
	testLaterGate(t, NewMeshGate, mesh.Spec{
		Name: "infra", ID: 1, Address: netip.MustParseAddr("10.25.11.100"),
		Peers: []mesh.Peer{{Name: "apps", ID: 2, Nodes: 5, Address: netip.MustParseAddr("10.25.12.100")}},
	}, "peers: is empty", "id: 0 is not a cluster id")
}

func TestStorageGate(t *testing.T) {
	testLaterGate(t, NewStorageGate, storage.Spec{Classes: []string{"ceph-block"}, Nodes: []string{"infra-worker-1"}}, "classes: is empty")
}

// newGate is the constructor of a gate with a spec.
type newGate[S any] func(*pulumi.Context, string, *LaterGateArgs[S], ...pulumi.ResourceOption) (*LaterGate, error)

// up runs a program with a gate of what is declared, after a change of its arguments.
func (n newGate[S]) up(e *engine, spec S, change func(*LaterGateArgs[S])) error {
	return pulumi.RunErr(func(ctx *pulumi.Context) error {
		custom := func(name string, inputs pulumi.Map, opts ...pulumi.ResourceOption) (pulumi.Resource, error) {
			r := &struct{ pulumi.CustomResourceState }{}
			return r, ctx.RegisterResource("test:index:Release", name, inputs, r, opts...)
		}
		cluster, err := custom("cluster", nil)
		if err != nil {
			return err
		}
		provider := &struct{ pulumi.ProviderResourceState }{}
		if err := ctx.RegisterResource("pulumi:providers:command", "command", pulumi.Map{}, provider); err != nil {
			return err
		}
		args := &LaterGateArgs[S]{
			Steps:    component.Steps{Name: "infra", Kubeconfig: pulumi.String("KUBE"), CommandProvider: provider},
			Lifetime: component.Lifetime{DependsOn: []pulumi.Resource{cluster}, DeletedWith: cluster},
			Declared: spec, Verifies: map[string]pulumi.Input{"network": pulumi.String("abc")}, Timeout: 10 * time.Minute,
		}
		change(args)
		g, err := n(ctx, "gate", args)
		if err != nil {
			return err
		}
		_, err = custom("reader", pulumi.Map{"report": g.Report, "spec": g.Spec}, pulumi.DependsOn(g.Leaves()))
		return err
	}, pulumi.WithMocks("slipway", "infra", e))
}

// testLaterGate tests what all later gates have in common. problems are those of an empty spec.
func testLaterGate[S any, P health.Declared[S]](t *testing.T, create newGate[S], spec S, problems ...string) {
	e := &engine{}
	require.NoError(t, create.up(e, spec, func(*LaterGateArgs[S]) {}))
	t.Run("TheSpecIsSecretAndComplete", func(t *testing.T) {
		stdin := e.registered["gate-probe"].Inputs["stdin"]
		require.True(t, stdin.IsSecret(), "stdin holds the kubeconfig")
		text := stdin.SecretValue().Element.StringValue()
		var target health.Target
		require.NoError(t, json.Unmarshal([]byte(text), &target))
		assert.Equal(t, health.Target{Cluster: "infra", Kubeconfig: "KUBE", Timeout: probe.Duration(10 * time.Minute)}, target)
		passed := P(new(S))
		require.NoError(t, probe.Decode(strings.NewReader(text), passed))
		require.NoError(t, passed.Validate())
		passed.SetTarget(health.Target{})
		assert.Equal(t, spec, *passed)
	})
	t.Run("PublishesItsReportAndItsSpecWithoutCredentials", func(t *testing.T) {
		reader := e.registered["reader"]
		assert.Equal(t, resource.NewProperty(report), reader.Inputs["report"])
		require.True(t, reader.Inputs["spec"].IsString(), "it is not secret")
		assert.NotContains(t, reader.Inputs["spec"].StringValue(), "KUBE")
		require.NoError(t, probe.Decode(strings.NewReader(reader.Inputs["spec"].StringValue()), P(new(S))))
		assert.Contains(t, reader.RegisterRPC.GetDependencies()[0], "gate-probe")
	})
	t.Run("NamesEveryProblemBeforeAnythingIsRegistered", func(t *testing.T) {
		e := &engine{}
		err := create.up(e, spec, func(args *LaterGateArgs[S]) { *args = LaterGateArgs[S]{} })
		for _, problem := range append([]string{
			"name: is missing", "kubeconfig: is missing", "commandProvider: is missing", "deletedWith: is missing", "timeout: is missing",
		}, problems...) {
			assert.ErrorContains(t, err, problem)
		}
		assert.NotContains(t, e.registered, "gate")
		require.ErrorContains(t, pulumi.RunErr(func(ctx *pulumi.Context) error {
			_, err := create(ctx, "gate", nil)
			return err
		}, pulumi.WithMocks("slipway", "infra", e)), "args: are missing")
	})
}
