package cilium

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestRememberMode_ChecksEachChangeInPreviewsToo(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, rec.Run(func(ctx *pulumi.Context) error {
		_, err := RememberMode(ctx, "cilium", cluster.CiliumInline)
		return err
	}))
	stash := rec.Only(t, "pulumi:index:Stash")
	assert.Equal(t, "inline", stash.Input("input"))
	require.Len(t, rec.Hooks(), 1)
	assert.True(t, rec.Hooks()[0].OnDryRun)
	assert.Equal(t, []string{rec.Hooks()[0].Name}, stash.RPC.GetHooks().GetBeforeUpdate())
	assert.Empty(t, stash.BeforeCreate, "a new cluster and a manual switch accept any mode")
}

func TestRefuseSwitch_NamesTheManualSteps(t *testing.T) {
	change := func(from, to cluster.CiliumMode) error {
		return refuseSwitch(&pulumi.ResourceHookArgs{
			URN:       "urn:mode",
			OldInputs: resource.PropertyMap{"input": resource.NewProperty(string(from))},
			NewInputs: resource.PropertyMap{"input": resource.NewProperty(string(to))},
		})
	}
	assert.EqualError(t, change(cluster.CiliumInline, cluster.CiliumHelm),
		"cilium.mode: helm, but this cluster was brought up with inline; set it back, "+
			"or switch by hand: run pulumi up --replace 'urn:mode', which adopts the objects unchanged (docs/components.md)")
	assert.ErrorContains(t, change(cluster.CiliumHelm, cluster.CiliumInline), "delete secret -l owner=helm,name=cilium")
	assert.NoError(t, change(cluster.CiliumHelm, cluster.CiliumHelm))
}
