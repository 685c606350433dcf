package readiness

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/internal/health/mesh"
	"github.com/slipway-platform/slipway/internal/probe"
)

// upMesh runs a program with a mesh gate, after a change of its arguments.
func upMesh(e *engine, change func(*MeshGateArgs)) error {
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
		args := &MeshGateArgs{
			Steps:    component.Steps{Name: "infra", Kubeconfig: pulumi.String("KUBE"), CommandProvider: provider},
			Lifetime: component.Lifetime{DependsOn: []pulumi.Resource{cluster}, DeletedWith: cluster},
			Declared: mesh.Spec{Name: "infra", ID: 1, Address: netip.MustParseAddr("10.25.11.100"),
				Peers: []mesh.Peer{{Name: "apps", ID: 2, Nodes: 5, Address: netip.MustParseAddr("10.25.12.100")}}},
			Verifies: map[string]pulumi.Input{"network": pulumi.String("abc")}, Timeout: 10 * time.Minute,
		}
		change(args)
		g, err := NewMeshGate(ctx, "mesh", args)
		if err != nil {
			return err
		}
		_, err = custom("reader", pulumi.Map{"report": g.Report, "spec": g.Spec}, pulumi.DependsOn(g.Leaves()))
		return err
	}, pulumi.WithMocks("slipway", "infra", e))
}

func TestMeshGate_TheSpecIsSecretAndComplete(t *testing.T) {
	e := &engine{}
	require.NoError(t, upMesh(e, func(*MeshGateArgs) {}))
	stdin := e.registered["mesh-probe"].Inputs["stdin"]
	require.True(t, stdin.IsSecret(), "stdin holds the kubeconfig")
	spec := new(mesh.Spec)
	require.NoError(t, probe.Read(strings.NewReader(stdin.SecretValue().Element.StringValue()), spec))
	assert.Equal(t, "KUBE", spec.Kubeconfig)
	assert.Equal(t, "infra", spec.Cluster)
	assert.Equal(t, 10*time.Minute, time.Duration(spec.Timeout))
	assert.Equal(t, "apps", spec.Peers[0].Name)
}

func TestMeshGate_PublishesItsReportAndItsSpecWithoutCredentials(t *testing.T) {
	e := &engine{}
	require.NoError(t, upMesh(e, func(*MeshGateArgs) {}))
	reader := e.registered["reader"]
	assert.Equal(t, resource.NewProperty(report), reader.Inputs["report"])
	require.True(t, reader.Inputs["spec"].IsString(), "it is not secret")
	assert.NotContains(t, reader.Inputs["spec"].StringValue(), "KUBE")
	require.NoError(t, probe.Decode(strings.NewReader(reader.Inputs["spec"].StringValue()), new(mesh.Spec)))
	assert.Contains(t, reader.RegisterRPC.GetDependencies()[0], "mesh-probe")
}

func TestMeshGate_NamesEveryProblemBeforeAnythingIsRegistered(t *testing.T) {
	e := &engine{}
	err := upMesh(e, func(args *MeshGateArgs) { *args = MeshGateArgs{} })
	for _, problem := range []string{
		"name: is missing", "kubeconfig: is missing", "commandProvider: is missing", "deletedWith: is missing", "timeout: is missing",
		"peers: is empty", "id: 0 is not a cluster id",
	} {
		assert.ErrorContains(t, err, problem)
	}
	assert.NotContains(t, e.registered, "mesh")
	require.ErrorContains(t, pulumi.RunErr(func(ctx *pulumi.Context) error {
		_, err := NewMeshGate(ctx, "mesh", nil)
		return err
	}, pulumi.WithMocks("slipway", "infra", e)), "args: are missing")
}
