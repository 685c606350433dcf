package readiness

import (
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/internal/health/storage"
	"github.com/slipway-platform/slipway/internal/probe"
)

// upStorage runs a program with a storage gate, after a change of its arguments.
func upStorage(e *engine, change func(*StorageGateArgs)) error {
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
		args := &StorageGateArgs{
			Steps:    component.Steps{Name: "infra", Kubeconfig: pulumi.String("KUBE"), CommandProvider: provider},
			Lifetime: component.Lifetime{DependsOn: []pulumi.Resource{cluster}, DeletedWith: cluster},
			Declared: storage.Spec{Classes: []string{"ceph-block"}, Nodes: []string{"infra-worker-1"}},
			Verifies: map[string]pulumi.Input{"network": pulumi.String("abc")}, Timeout: 10 * time.Minute,
		}
		change(args)
		g, err := NewStorageGate(ctx, "storage", args)
		if err != nil {
			return err
		}
		_, err = custom("reader", pulumi.Map{"report": g.Report, "spec": g.Spec}, pulumi.DependsOn(g.Leaves()))
		return err
	}, pulumi.WithMocks("slipway", "infra", e))
}

func TestStorageGate_TheSpecIsSecretAndComplete(t *testing.T) {
	e := &engine{}
	require.NoError(t, upStorage(e, func(*StorageGateArgs) {}))
	stdin := e.registered["storage-probe"].Inputs["stdin"]
	require.True(t, stdin.IsSecret(), "stdin holds the kubeconfig")
	spec := new(storage.Spec)
	require.NoError(t, probe.Read(strings.NewReader(stdin.SecretValue().Element.StringValue()), spec))
	assert.Equal(t, "KUBE", spec.Kubeconfig)
	assert.Equal(t, "infra", spec.Cluster)
	assert.Equal(t, 10*time.Minute, time.Duration(spec.Timeout))
	assert.Equal(t, []string{"ceph-block"}, spec.Classes)
}

func TestStorageGate_PublishesItsReportAndItsSpecWithoutCredentials(t *testing.T) {
	e := &engine{}
	require.NoError(t, upStorage(e, func(*StorageGateArgs) {}))
	reader := e.registered["reader"]
	assert.Equal(t, resource.NewProperty(report), reader.Inputs["report"])
	require.True(t, reader.Inputs["spec"].IsString(), "it is not secret")
	assert.NotContains(t, reader.Inputs["spec"].StringValue(), "KUBE")
	require.NoError(t, probe.Decode(strings.NewReader(reader.Inputs["spec"].StringValue()), new(storage.Spec)))
	assert.Contains(t, reader.RegisterRPC.GetDependencies()[0], "storage-probe")
}

func TestStorageGate_NamesEveryProblemBeforeAnythingIsRegistered(t *testing.T) {
	e := &engine{}
	err := upStorage(e, func(args *StorageGateArgs) { *args = StorageGateArgs{} })
	for _, problem := range []string{
		"name: is missing", "kubeconfig: is missing", "commandProvider: is missing", "deletedWith: is missing", "timeout: is missing",
		"classes: is empty",
	} {
		assert.ErrorContains(t, err, problem)
	}
	assert.NotContains(t, e.registered, "storage")
	require.ErrorContains(t, pulumi.RunErr(func(ctx *pulumi.Context) error {
		_, err := NewStorageGate(ctx, "storage", nil)
		return err
	}, pulumi.WithMocks("slipway", "infra", e)), "args: are missing")
}
