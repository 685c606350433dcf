package cilium_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pulumi/pulumi-tls/sdk/v5/go/tls"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// inline changes args to those of mode inline, without a cluster.
func inline(args *cilium.CiliumCoreArgs) {
	args.Cluster.Cilium.Mode = cluster.CiliumInline
}

// machine registers a resource with the manifests as input, in place of a machine configuration.
func machine(ctx *pulumi.Context, core *cilium.CiliumCore, args *cilium.CiliumCoreArgs) error {
	_, err := tls.NewPrivateKey(ctx, "machine", &tls.PrivateKeyArgs{Algorithm: core.InlineManifests}, pulumi.Provider(args.TLSProvider))
	return err
}

func TestInline_PassesManifestsToTheMachinesAndRegistersNoRelease(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, program{
		args: func(args *cilium.CiliumCoreArgs) {
			inline(args)
			args.InCluster, args.Kubeconfig = component.InCluster{}, nil
			args.Cluster.Cilium.GatewayAPI = true
		},
		after: func(ctx *pulumi.Context, core *cilium.CiliumCore, args *cilium.CiliumCoreArgs) error {
			assert.Empty(t, core.Leaves())
			return machine(ctx, core, args)
		},
	}.run(t, rec))
	assert.Empty(t, rec.OfType(releaseType))
	got := rec.Resource(t, "machine")
	assert.True(t, got.SecretInput("algorithm"))
	manifests, _ := got.Input("algorithm").(string)
	for _, want := range []string{
		"name: cilium-config\n  namespace: kube-system", "cluster-name: infra", "kubernetes: v1.36.6",
		"kind: GatewayClass", "meta.helm.sh/release-name: cilium", "app.kubernetes.io/managed-by: Helm",
		"tls.crt: " + base64.StdEncoding.EncodeToString([]byte("CERT infra-cilium-hubble-server")),
		"tls.key: " + base64.StdEncoding.EncodeToString([]byte("KEY infra-cilium-hubble-server")),
		"ca.crt: " + base64.StdEncoding.EncodeToString([]byte("CERT infra-cilium-ca")),
	} {
		assert.Contains(t, manifests, want)
	}
	assert.Equal(t, 5, strings.Count(manifests, "---\n"))
	assert.NotContains(t, manifests, "namespace: kube-system\nspec: {}", "a GatewayClass has no namespace")
}

func TestInline_ManifestsDependOnTheCertificatesAndNotOnTheCluster(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, program{args: inline, after: machine}.run(t, rec))
	got := rec.Resource(t, "machine")
	for _, cert := range rec.OfType(signedType) {
		assert.True(t, rec.After(got, cert), "%s is in the manifests", cert.Name)
		assert.False(t, rec.After(cert, rec.Resource(t, "bootstrap")), "%s needs no cluster", cert.Name)
	}
}

func TestInline_ManifestsAreUnknownButSecretInAFirstPreview(t *testing.T) {
	rec := &mocks.Recorder{DryRun: true}
	require.NoError(t, program{args: inline, after: machine}.run(t, rec))
	got := rec.Resource(t, "machine").Inputs["algorithm"]
	assert.True(t, got.ContainsUnknowns())
	assert.True(t, got.ContainsSecrets())
}

func TestInline_TheProviderRendersTheDeclaredChartOnceWithoutKeys(t *testing.T) {
	for _, dryRun := range []bool{true, false} {
		rec := &mocks.Recorder{DryRun: dryRun}
		require.NoError(t, program{
			args: func(args *cilium.CiliumCoreArgs) {
				inline(args)
				args.Cluster.Cilium.Repository, args.Cluster.Cilium.Version = "https://charts.example.com/", "1.18.6"
				args.Cluster.Cilium.GatewayAPI = true
			},
			after: machine,
		}.run(t, rec))
		require.Len(t, rec.Calls(), 1)
		call := rec.Calls()[0]
		assert.Equal(t, mocks.FunctionTemplate, call.Token)
		assert.Contains(t, call.Provider, rec.Resource(t, "kube").URN)
		var options map[string]any
		require.NoError(t, json.Unmarshal([]byte(call.Args["jsonOpts"].StringValue()), &options))
		values := options["values"].(map[string]any)
		assert.Equal(t, "infra", values["cluster"].(map[string]any)["name"])
		delete(options, "values")
		assert.Equal(t, map[string]any{
			"release_name": "cilium", "namespace": "kube-system", "chart": "cilium", "version": "1.18.6",
			"fetch_opts":   map[string]any{"repo": "https://charts.example.com/"},
			"kube_version": "v1.36.6", "api_versions": []any{"gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1/GatewayClass"},
			"include_test_hook_resources": true, "skip_crd_rendering": true,
		}, options)
		for _, secret := range []string{"KEY", "CERT"} {
			assert.NotContains(t, call.Args["jsonOpts"].StringValue(), base64.StdEncoding.EncodeToString([]byte(secret+" infra-cilium")))
		}
	}
}

// answering makes the provider return the objects or the error instead of Cilium's objects.
func answering(rec *mocks.Recorder, err error, objects ...any) {
	rec.OnCall = func(pulumi.MockCallArgs) (resource.PropertyMap, error) {
		return resource.NewPropertyMapFromMap(map[string]any{"result": objects}), err
	}
}

func TestInline_RefusesWhatCannotWorkBeforeAnythingIsRegistered(t *testing.T) {
	object := func(kind string, metadata map[string]any) any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": metadata}
	}
	for problem, answer := range map[string]func(*mocks.Recorder){
		"chart cilium 1.20.2 from https://helm.cilium.io/: ": func(r *mocks.Recorder) { answering(r, errors.New("unreachable")) },
		"unreachable":       func(r *mocks.Recorder) { answering(r, errors.New("unreachable")) },
		"renders no object": func(r *mocks.Recorder) { answering(r, nil) },
		"Job late: is a hook, which Talos does not run": func(r *mocks.Recorder) {
			answering(r, nil, object("Job", map[string]any{"name": "late", "annotations": map[string]any{"helm.sh/hook": "post-install"}}))
		},
		"List without metadata: is no Kubernetes object": func(r *mocks.Recorder) { answering(r, nil, map[string]any{"kind": "List"}) },
		"no object holds the value hubble.relay.tls.client.key": func(r *mocks.Recorder) {
			answering(r, nil, object("Namespace", map[string]any{"name": "there"}))
		},
	} {
		rec := &mocks.Recorder{DryRun: true}
		answer(rec)
		assert.ErrorContains(t, run(t, rec, inline), problem)
		assert.Empty(t, rec.OfType("slipway:cilium:CiliumCore"), problem)
	}
}

const patchType = "kubernetes:apps/v1:DeploymentPatch"

// restart runs a program that calls RestartOperatorForCRDs.
func restart(t *testing.T, mutate func(*cilium.CiliumCoreArgs)) *mocks.Recorder {
	t.Helper()
	rec := &mocks.Recorder{}
	require.NoError(t, program{
		args: mutate,
		after: func(ctx *pulumi.Context, core *cilium.CiliumCore, args *cilium.CiliumCoreArgs) error {
			return core.RestartOperatorForCRDs(ctx, args.InCluster)
		},
	}.run(t, rec))
	return rec
}

func TestRestart_RestartsTheOperatorAfterTheCRDs(t *testing.T) {
	rec := restart(t, func(args *cilium.CiliumCoreArgs) { inline(args); args.Cluster.Cilium.GatewayAPI = true })
	patch := rec.Only(t, patchType)
	assert.Equal(t, "cilium-operator", patch.Input("metadata.name"))
	assert.Equal(t, "kube-system", patch.Input("metadata.namespace"))
	assert.Equal(t, "true", patch.Input(`metadata.annotations["pulumi.com/skipAwait"]`))
	assert.Equal(t, "v1.6.3", patch.Input(`spec.template.metadata.annotations["slipway-platform.github.io/gateway-api-crds"]`))
	bootstrap := rec.Resource(t, "bootstrap")
	assert.True(t, rec.After(patch, bootstrap))
	assert.Equal(t, bootstrap.URN, patch.DeletedWith)
	assert.Equal(t, rec.Resource(t, "kube").URN, patch.ProviderURN())
}

func TestRestart_IsNotNeededOtherwise(t *testing.T) {
	for name, mutate := range map[string]func(*cilium.CiliumCoreArgs){
		"helm, whose operator starts after the CRDs": func(args *cilium.CiliumCoreArgs) { args.Cluster.Cilium.GatewayAPI = true },
		"inline without the Gateway API":             inline,
	} {
		assert.Empty(t, restart(t, mutate).OfType(patchType), name)
	}
}

func TestInline_AnEngineThatOwnsCiliumGetsTheValuesThatSlipwaySets(t *testing.T) {
	given := func(mutate func(*cilium.CiliumCoreArgs)) *mocks.Recorder {
		rec := &mocks.Recorder{}
		require.NoError(t, program{
			args: func(args *cilium.CiliumCoreArgs) {
				args.Cluster.Cilium.Owner = cluster.OwnerArgoCD
				args.OwnedValues = &component.OwnedValues{Namespace: "argocd", Prefix: "gitops-values-", Options: pulumi.Composite()}
				inline(args)
				mutate(args)
			},
			after: func(ctx *pulumi.Context, core *cilium.CiliumCore, args *cilium.CiliumCoreArgs) error {
				if err := core.HandToEngine(ctx, args.InCluster, args.Kubeconfig); err != nil {
					return err
				}
				byEngine := args.Cluster.Cilium.Owner.IsEngine() && args.OwnedValues != nil
				assert.Equal(t, !byEngine, core.ExpectedMesh(false).Inline, "it applies a changed mesh by itself")
				return machine(ctx, core, args)
			},
		}.run(t, rec))
		return rec
	}
	rec := given(func(*cilium.CiliumCoreArgs) {})
	assert.Empty(t, rec.OfType(releaseType))
	secret := rec.Only(t, "kubernetes:core/v1:Secret")
	assert.Equal(t, "cilium-values", secret.Input("metadata.name"))
	assert.Equal(t, "argocd", secret.Input("metadata.namespace"))
	assert.True(t, secret.SecretInput(`data["values.yaml"]`))
	assert.True(t, rec.After(secret, rec.Resource(t, "bootstrap")))
	assert.False(t, rec.After(rec.Resource(t, "machine"), secret), "the manifests are there before the cluster")
	text, err := base64.StdEncoding.DecodeString(secret.Input(`data["values.yaml"]`).(string))
	require.NoError(t, err)
	assert.Contains(t, string(text), base64.StdEncoding.EncodeToString([]byte("KEY infra-cilium-hubble-server")))
	assert.NotContains(t, string(text), "slipway.mesh", "the chart does not take them")

	rec = given(func(args *cilium.CiliumCoreArgs) { clusters.Meshed(args.Cluster) })
	values := rec.Resource(t, "gitops-values-cilium")
	var names []any
	for _, secret := range rec.OfType("kubernetes:core/v1:Secret") {
		if secret.Name != values.Name {
			names = append(names, secret.Input("metadata.name"))
			assert.True(t, secret.SecretInput(`data["tls.key"]`))
			assert.Equal(t, base64.StdEncoding.EncodeToString([]byte("KEY "+secret.Name)), secret.Input(`data["tls.key"]`))
			assert.True(t, rec.After(values, secret), "another CA replaces the pods, which then read these Secrets")
		}
	}
	assert.ElementsMatch(t, []any{
		"clustermesh-apiserver-server-cert", "clustermesh-apiserver-admin-cert", "clustermesh-apiserver-remote-cert",
		"clustermesh-apiserver-local-cert",
	}, names, "Talos would not change them")

	for name, mutate := range map[string]func(*cilium.CiliumCoreArgs){
		"Pulumi owns it":     func(args *cilium.CiliumCoreArgs) { args.Cluster.Cilium.Owner = cluster.OwnerPulumi },
		"there is no engine": func(args *cilium.CiliumCoreArgs) { args.OwnedValues = nil },
	} {
		assert.Empty(t, given(mutate).OfType("kubernetes:core/v1:Secret"), name)
	}
}
