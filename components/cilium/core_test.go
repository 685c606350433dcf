package cilium_test

import (
	"encoding/base64"
	"net/netip"
	"testing"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-tls/sdk/v5/go/tls"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/cilium"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const releaseType = "kubernetes:helm.sh/v3:Release"

func validValues() cilium.Values {
	return cilium.Values{
		ClusterName: "infra", ClusterID: 1, PodCIDR: netip.MustParsePrefix("10.244.0.0/16"), KubePrismPort: 7445,
	}
}

// run registers one CiliumCore behind a resource that stands for the cluster's bootstrap.
func run(t *testing.T, rec *mocks.Recorder, mutate func(*cilium.CiliumCoreArgs)) error {
	t.Helper()
	rec.OnResource = func(reg mocks.Registration) (resource.PropertyMap, error) {
		secret := func(s string) resource.PropertyValue { return resource.MakeSecret(resource.NewProperty(s)) }
		return resource.PropertyMap{
			"certPem":        resource.NewProperty("CERT " + reg.Name),
			"privateKeyPem":  secret("KEY " + reg.Name),
			"certRequestPem": resource.NewProperty("CSR " + reg.Name),
		}, nil
	}
	return rec.Run(func(ctx *pulumi.Context) error {
		kube, err := kubernetes.NewProvider(ctx, "kube", &kubernetes.ProviderArgs{})
		if err != nil {
			return err
		}
		signer, err := tls.NewProvider(ctx, "tls", &tls.ProviderArgs{})
		if err != nil {
			return err
		}
		bootstrap, err := tls.NewPrivateKey(ctx, "bootstrap", &tls.PrivateKeyArgs{Algorithm: pulumi.String("ED25519")},
			pulumi.Provider(signer))
		if err != nil {
			return err
		}
		args := &cilium.CiliumCoreArgs{
			Values: validValues(), KubernetesProvider: kube, TLSProvider: signer,
			DependsOn: []pulumi.Resource{bootstrap}, DeletedWith: bootstrap,
		}
		if mutate != nil {
			mutate(args)
		}
		_, err = cilium.NewCiliumCore(ctx, "infra-cilium", args)
		return err
	})
}

func TestCiliumCore_InstallsTheReleaseThatFluxCanAdopt(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, nil))
	release := rec.Only(t, releaseType)
	assert.Equal(t, "cilium", release.Input("name"))
	assert.Equal(t, "kube-system", release.Input("namespace"))
	assert.Equal(t, "cilium", release.Input("chart"))
	assert.Equal(t, cilium.ChartVersion, release.Input("version"))
	assert.Equal(t, cilium.DefaultRepository, release.Input("repositoryOpts.repo"))
	assert.Equal(t, true, release.Input("skipAwait"), "the gate decides, not Helm")

	bootstrap := rec.Resource(t, "bootstrap")
	assert.True(t, rec.After(release, bootstrap))
	assert.Equal(t, bootstrap.URN, release.DeletedWith)
	assert.Equal(t, rec.Resource(t, "kube").URN, release.ProviderURN())
}

func TestCiliumCore_HandsStableCertificatesOver(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, nil))
	release := rec.Only(t, releaseType)
	for path, want := range map[string]string{
		"values.tls.ca.cert":                  "CERT infra-cilium-ca",
		"values.hubble.tls.server.cert":       "CERT infra-cilium-hubble-server",
		"values.hubble.tls.server.key":        "KEY infra-cilium-hubble-server",
		"values.hubble.relay.tls.client.cert": "CERT infra-cilium-hubble-relay",
		"values.hubble.relay.tls.client.key":  "KEY infra-cilium-hubble-relay",
	} {
		assert.Equal(t, base64.StdEncoding.EncodeToString([]byte(want)), release.Input(path), path)
	}
	assert.Equal(t, false, release.Input("values.hubble.tls.auto.enabled"), "the chart makes none of its own")
	assert.True(t, release.SecretInput("values.hubble.tls.server.key"))
	assert.True(t, release.SecretInput("values.hubble.relay.tls.client.key"))
	assert.False(t, release.SecretInput("values.cluster.name"), "one secret leaf does not hide the rest")
	assert.Nil(t, release.Input("values.tls.ca.key"), "the CA's key stays out of the cluster")

	server := rec.Find(func(r mocks.Registration) bool {
		return r.Type == "tls:index/locallySignedCert:LocallySignedCert" && r.Name == "infra-cilium-hubble-server"
	})
	require.Len(t, server, 1)
	assert.Equal(t, "CERT infra-cilium-ca", server[0].Input("caCertPem"))
	requests := rec.OfType("tls:index/certRequest:CertRequest")
	require.Len(t, requests, 2)
	for _, request := range requests {
		want := map[string]any{
			"infra-cilium-hubble-server": "*.infra.hubble-grpc.cilium.io",
			"infra-cilium-hubble-relay":  "*.hubble-relay.cilium.io",
		}[request.Name]
		assert.Equal(t, []any{want}, request.Input("dnsNames"))
	}
}

func TestCiliumCore_UsesASharedAuthority(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, func(args *cilium.CiliumCoreArgs) {
		args.Authority = &cilium.Authority{
			Certificate: pulumi.String("MESH CA"), PrivateKey: pulumi.ToSecret(pulumi.String("MESH KEY")).(pulumi.StringOutput),
		}
	}))
	assert.Empty(t, rec.OfType("tls:index/selfSignedCert:SelfSignedCert"))
	for _, cert := range rec.OfType("tls:index/locallySignedCert:LocallySignedCert") {
		assert.Equal(t, "MESH CA", cert.Input("caCertPem"))
		assert.True(t, cert.SecretInput("caPrivateKeyPem"))
	}
	for _, reg := range rec.Resources() {
		assert.Empty(t, reg.PlainPaths("MESH KEY"), reg.Name)
	}
}

func TestCiliumCore_RejectsArgsBeforeAnythingIsRegistered(t *testing.T) {
	for problem, mutate := range map[string]func(*cilium.CiliumCoreArgs){
		"clusterName: \"Infra\"":      func(a *cilium.CiliumCoreArgs) { a.Values.ClusterName = "Infra" },
		"clusterName: \"default\"":    func(a *cilium.CiliumCoreArgs) { a.Values.ClusterName = "default" },
		"clusterID: 0":                func(a *cilium.CiliumCoreArgs) { a.Values.ClusterID = 0 },
		"clusterID: 256":              func(a *cilium.CiliumCoreArgs) { a.Values.ClusterID = 256 },
		"podCIDR: 10.244.0.1/16":      func(a *cilium.CiliumCoreArgs) { a.Values.PodCIDR = netip.MustParsePrefix("10.244.0.1/16") },
		"podCIDR: fd00::/56":          func(a *cilium.CiliumCoreArgs) { a.Values.PodCIDR = netip.MustParsePrefix("fd00::/56") },
		"kubePrismPort: 0":            func(a *cilium.CiliumCoreArgs) { a.Values.KubePrismPort = 0 },
		"kubernetesProvider: missing": func(a *cilium.CiliumCoreArgs) { a.KubernetesProvider = nil },
		"tlsProvider: missing":        func(a *cilium.CiliumCoreArgs) { a.TLSProvider = nil },
		"authority: half given":       func(a *cilium.CiliumCoreArgs) { a.Authority = &cilium.Authority{} },
	} {
		rec := &mocks.Recorder{}
		assert.ErrorContains(t, run(t, rec, mutate), problem)
		assert.Empty(t, rec.OfType("slipway:cilium:CiliumCore"), problem)
	}
}
