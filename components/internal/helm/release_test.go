package helm_test

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/helm"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func validArgs() *helm.ReleaseArgs {
	return &helm.ReleaseArgs{
		Service: cluster.Service{
			Name: "cilium", Namespace: "kube-system", Chart: "cilium", Version: "1.18.7", Repository: "https://helm.cilium.io/",
		},
		Values: map[string]any{"a": pulumi.ToSecret(pulumi.String("hidden")), "b": 2},
	}
}

func TestRelease_IsRegisteredLikeTheSDKsType(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, rec.Run(func(ctx *pulumi.Context) error {
		_, err := helm.NewRelease(ctx, "infra-cilium", validArgs())
		return err
	}))
	release := rec.Only(t, "kubernetes:helm.sh/v3:Release")
	assert.Equal(t, "cilium", release.Input("name"))
	assert.Equal(t, "true", release.Input("compat"))
	assert.Equal(t, "https://helm.cilium.io/", release.Input("repositoryOpts.repo"))
	assert.Equal(t, true, release.Input("skipAwait"), "a gate checks whether it runs")
	assert.True(t, release.SecretInput("values.a"))
	assert.Empty(t, release.PlainPaths("hidden"))
	assert.Equal(t, "4.25.0", release.RPC.GetVersion(), "the plugin of the SDK in go.mod")
}

func TestRelease_LooksForALeftoverExactlyWithAKubeconfig(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, rec.Run(func(ctx *pulumi.Context) error {
		if _, err := helm.NewRelease(ctx, "without", validArgs()); err != nil {
			return err
		}
		args := validArgs()
		args.Kubeconfig = pulumi.ToSecret(pulumi.String("clusters: []")).(pulumi.StringOutput)
		_, err := helm.NewRelease(ctx, "with", args)
		return err
	}))
	for _, release := range rec.OfType("kubernetes:helm.sh/v3:Release") {
		if release.Name == "without" {
			assert.Empty(t, release.BeforeCreate)
			continue
		}
		assert.Equal(t, []string{"with-leftover"}, release.BeforeCreate)
		assert.Empty(t, release.PlainPaths("clusters: []"), "the kubeconfig is no input of the release")
	}
}

func TestRelease_IsNotCreatedIfTheCheckForALeftoverFails(t *testing.T) {
	rec := &mocks.Recorder{RunHooks: true}
	args := validArgs()
	args.Kubeconfig = pulumi.String("nonsense")
	err := rec.Run(func(ctx *pulumi.Context) error {
		_, err := helm.NewRelease(ctx, "infra-cilium", args)
		return err
	})
	require.ErrorContains(t, err, "kubeconfig: ")
	assert.Empty(t, rec.OfType("kubernetes:helm.sh/v3:Release"))
}
