package cilium_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pulumi/pulumi-tls/sdk/v5/go/tls"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/cilium"
	"github.com/slipway-platform/slipway/tests/fakechart"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// inline turns args into those of inline mode, before any cluster is there.
func inline(args *cilium.CiliumCoreArgs) {
	chart, err := cilium.ReadChart(fakechart.Cilium(cilium.ChartVersion))
	if err != nil {
		panic(err)
	}
	args.Mode, args.Chart, args.KubernetesVersion = cilium.ModeInline, chart, "v1.35.8"
}

// machine stands for what takes the manifests: a resource whose input they are.
func machine(ctx *pulumi.Context, core *cilium.CiliumCore, args *cilium.CiliumCoreArgs) error {
	_, err := tls.NewPrivateKey(ctx, "machine", &tls.PrivateKeyArgs{Algorithm: core.InlineManifests}, pulumi.Provider(args.TLSProvider))
	return err
}

func TestInline_HandsManifestsToTheMachinesAndRegistersNoRelease(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, program{
		args: func(args *cilium.CiliumCoreArgs) {
			inline(args)
			args.KubernetesProvider, args.DependsOn, args.DeletedWith = nil, nil, nil
			args.Values.GatewayAPI = true
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
		"name: cilium-config\n  namespace: kube-system", "cluster-name: infra", `cluster-id: "1"`, "kubernetes: v1.35.8",
		`gateway-api: "true"`, "meta.helm.sh/release-name: cilium", "app.kubernetes.io/managed-by: Helm",
		"tls.crt: " + base64.StdEncoding.EncodeToString([]byte("CERT infra-cilium-hubble-server")),
		"tls.key: " + base64.StdEncoding.EncodeToString([]byte("KEY infra-cilium-hubble-server")),
		"ca.crt: " + base64.StdEncoding.EncodeToString([]byte("CERT infra-cilium-ca")),
	} {
		assert.Contains(t, manifests, want)
	}
	assert.Equal(t, 3, strings.Count(manifests, "---\n"))
}

func TestInline_ComesBeforeTheClusterAndAfterItsCertificates(t *testing.T) {
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

func TestInline_FetchesTheChartFromTheRepository(t *testing.T) {
	archive := fakechart.Cilium("1.18.7")
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			_, _ = w.Write(archive)
			return
		}
		_, _ = w.Write([]byte("entries: {cilium: [{version: 1.18.7, urls: [cilium-1.18.7.tgz]}]}"))
	}))
	t.Cleanup(repository.Close)
	rec := &mocks.Recorder{}
	require.NoError(t, program{
		args:  func(args *cilium.CiliumCoreArgs) { inline(args); args.Chart, args.Repository = nil, repository.URL },
		after: machine,
	}.run(t, rec))
	assert.Contains(t, rec.Resource(t, "machine").Input("algorithm"), "cluster-name: infra")

	rec = &mocks.Recorder{}
	err := run(t, rec, func(args *cilium.CiliumCoreArgs) {
		inline(args)
		args.Chart, args.Repository, args.Version = nil, repository.URL, "1.18.8"
	})
	assert.ErrorContains(t, err, "chart cilium 1.18.8 from "+repository.URL+": not in the repository's index")
	assert.Empty(t, rec.OfType("slipway:cilium:CiliumCore"))
}

const patchType = "kubernetes:apps/v1:DeploymentPatch"

// restart asks for the operator's restart in a program of the given args.
func restart(t *testing.T, mutate func(*cilium.CiliumCoreArgs), crds *cilium.CRDsArgs) (*mocks.Recorder, error) {
	t.Helper()
	rec := &mocks.Recorder{}
	return rec, program{
		args: mutate,
		after: func(ctx *pulumi.Context, core *cilium.CiliumCore, args *cilium.CiliumCoreArgs) error {
			if crds != nil {
				crds.KubernetesProvider, crds.DependsOn, crds.DeletedWith = args.KubernetesProvider, args.DependsOn, args.DeletedWith
			}
			return core.RestartOperatorForCRDs(ctx, crds)
		},
	}.run(t, rec)
}

func TestRestart_HasTheOperatorSeeCRDsThatCameAfterIt(t *testing.T) {
	rec, err := restart(t, func(args *cilium.CiliumCoreArgs) { inline(args); args.Values.GatewayAPI = true },
		&cilium.CRDsArgs{CRDs: pulumi.String("v1.3.0")})
	require.NoError(t, err)
	patch := rec.Only(t, patchType)
	assert.Equal(t, "cilium-operator", patch.Input("metadata.name"))
	assert.Equal(t, "kube-system", patch.Input("metadata.namespace"))
	assert.Equal(t, "true", patch.Input(`metadata.annotations["pulumi.com/skipAwait"]`))
	assert.Equal(t, "v1.3.0", patch.Input(`spec.template.metadata.annotations["slipway-platform.github.io/gateway-api-crds"]`))
	bootstrap := rec.Resource(t, "bootstrap")
	assert.True(t, rec.After(patch, bootstrap))
	assert.Equal(t, bootstrap.URN, patch.DeletedWith)
	assert.Equal(t, rec.Resource(t, "kube").URN, patch.ProviderURN())
}

func TestRestart_IsNotNeededOtherwise(t *testing.T) {
	for name, mutate := range map[string]func(*cilium.CiliumCoreArgs){
		"helm, whose operator comes after the CRDs": func(args *cilium.CiliumCoreArgs) {
			args.Mode, args.Values.GatewayAPI = cilium.ModeHelm, true
		},
		"inline without the Gateway API": inline,
	} {
		rec, err := restart(t, mutate, nil)
		require.NoError(t, err, name)
		assert.Empty(t, rec.OfType(patchType), name)
	}
}

func TestRestart_WantsToKnowWhatIsInstalled(t *testing.T) {
	_, err := restart(t, func(args *cilium.CiliumCoreArgs) { inline(args); args.Values.GatewayAPI = true }, &cilium.CRDsArgs{})
	assert.ErrorContains(t, err, "crds, kubernetesProvider: missing")
}
