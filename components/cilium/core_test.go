package cilium_test

import (
	"encoding/base64"
	"maps"
	"slices"
	"testing"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-tls/sdk/v5/go/tls"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/syntax"
	"github.com/slipway-platform/slipway/components/cilium"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const (
	releaseType = "kubernetes:helm.sh/v3:Release"
	signedType  = "tls:index/locallySignedCert:LocallySignedCert"
)

// validCluster returns the committed infra cluster, without gateways.
func validCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	return clusters.Infra(t, func(c *cluster.Cluster) { c.Cilium.GatewayAPI = false })
}

func hubble(enabled, relay, ui bool) cluster.Hubble {
	return cluster.Hubble{Enabled: enabled, Relay: &relay, UI: ui}
}

// program registers one CiliumCore, after a resource that represents the cluster's bootstrap.
type program struct {
	args  func(*cilium.CiliumCoreArgs)                                                          // changes the arguments; nil changes nothing
	after func(ctx *pulumi.Context, core *cilium.CiliumCore, args *cilium.CiliumCoreArgs) error // runs after the CiliumCore; optional
}

func (p program) run(t *testing.T, rec *mocks.Recorder) error {
	t.Helper()
	if rec.OnCall == nil {
		rec.OnCall = mocks.CiliumTemplate
	}
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
			Cluster: validCluster(t), TLSProvider: signer,
			InCluster: component.InCluster{
				Lifetime:           component.Lifetime{DependsOn: []pulumi.Resource{bootstrap}, DeletedWith: bootstrap},
				KubernetesProvider: kube,
			},
			Kubeconfig: pulumi.String("kubeconfig"), Renderer: kube,
		}
		if p.args != nil {
			p.args(args)
		}
		core, err := cilium.NewCiliumCore(ctx, "infra-cilium", args)
		if err != nil || p.after == nil {
			return err
		}
		return p.after(ctx, core, args)
	})
}

// run registers one CiliumCore in a new stack.
func run(t *testing.T, rec *mocks.Recorder, mutate func(*cilium.CiliumCoreArgs)) error {
	t.Helper()
	return program{args: mutate}.run(t, rec)
}

func TestCiliumCore_InstallsTheReleaseThatFluxCanAdopt(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, program{
		after: func(_ *pulumi.Context, core *cilium.CiliumCore, _ *cilium.CiliumCoreArgs) error {
			assert.Len(t, core.Leaves(), 1)
			return nil
		},
	}.run(t, rec))
	release := rec.Only(t, releaseType)
	assert.Equal(t, "cilium", release.Input("name"))
	assert.Equal(t, "kube-system", release.Input("namespace"))
	assert.Equal(t, "cilium", release.Input("chart"))
	assert.Equal(t, cluster.New("").Cilium.Version, release.Input("version"))
	assert.Equal(t, cluster.New("").Cilium.Repository, release.Input("repositoryOpts.repo"))
	assert.Equal(t, true, release.Input("skipAwait"), "the gate waits, not Helm")
	assert.Equal(t, "infra", release.Input("values.cluster.name"))

	bootstrap := rec.Resource(t, "bootstrap")
	assert.True(t, rec.After(release, bootstrap))
	assert.Equal(t, bootstrap.URN, release.DeletedWith)
	assert.True(t, release.RetainOnDelete, "the network of a running cluster is never uninstalled")
	assert.Equal(t, rec.Resource(t, "kube").URN, release.ProviderURN())
}

func TestCiliumCore_PassesStableCertificatesToTheChart(t *testing.T) {
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
	assert.Equal(t, false, release.Input("values.hubble.tls.auto.enabled"), "the chart generates no certificates")
	assert.True(t, release.SecretInput("values.hubble.tls.server.key"))
	assert.True(t, release.SecretInput("values.hubble.relay.tls.client.key"))
	assert.False(t, release.SecretInput("values.cluster.name"), "one secret leaf does not hide the rest")
	assert.Nil(t, release.Input("values.tls.ca.key"), "the CA's key is not in the cluster")
	assert.Equal(t, []string{"infra-cilium-hubble-relay", "infra-cilium-hubble-server"}, signed(rec))
}

// signed returns the names of the certificates that a CA signed, sorted.
func signed(rec *mocks.Recorder) []string {
	var names []string
	for _, cert := range rec.OfType(signedType) {
		names = append(names, cert.Name)
	}
	slices.Sort(names)
	return names
}

func TestCiliumCore_IssuesTheCertificatesThatItsPartsNeed(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(*cilium.CiliumCoreArgs)
		want []string
	}{
		"hubble off": {func(a *cilium.CiliumCoreArgs) { a.Cluster.Cilium.Hubble = hubble(false, false, false) }, nil},
		"relay off":  {func(a *cilium.CiliumCoreArgs) { a.Cluster.Cilium.Hubble = hubble(true, false, false) }, []string{"c-hubble-server"}},
		"hubble with UI": {
			func(a *cilium.CiliumCoreArgs) { a.Cluster.Cilium.Hubble = hubble(true, true, true) },
			[]string{"c-hubble-relay", "c-hubble-server"},
		},
		"mesh": {
			func(a *cilium.CiliumCoreArgs) {
				a.Cluster.Cilium.Hubble = hubble(false, false, false)
				clusters.Meshed(a.Cluster)
			},
			[]string{"c-mesh-admin", "c-mesh-local", "c-mesh-remote", "c-mesh-server"},
		},
	} {
		rec := &mocks.Recorder{}
		require.NoError(t, run(t, rec, test.set), name)
		var want []string
		for _, short := range test.want {
			want = append(want, "infra-cilium"+short[1:])
		}
		assert.Equal(t, want, signed(rec), name)
	}
}

func TestCiliumCore_NamesEachCertificateAsItsPeersExpect(t *testing.T) {
	rec := &mocks.Recorder{}
	var shared syntax.KeyPair
	require.NoError(t, run(t, rec, func(args *cilium.CiliumCoreArgs) {
		args.Cluster.Identity.Name = "in-fra"
		clusters.Meshed(args.Cluster)
		shared = args.Cluster.MeshAuthority()
	}))
	type identity struct{ use, commonName, names, ips any }
	want := map[string]identity{
		"hubble-server": {"server_auth", "*.in-fra.hubble-grpc.cilium.io", []any{"*.in-fra.hubble-grpc.cilium.io"}, nil},
		"hubble-relay":  {"client_auth", "*.hubble-relay.cilium.io", []any{"*.hubble-relay.cilium.io"}, nil},
		"mesh-server": {
			"server_auth", "clustermesh-apiserver.cilium.io",
			[]any{"clustermesh-apiserver.cilium.io", "*.mesh.cilium.io", "clustermesh-apiserver.kube-system.svc"}, []any{"127.0.0.1", "::1"},
		},
		"mesh-admin":  {"client_auth", "admin-in-fra", nil, nil},
		"mesh-remote": {"client_auth", "remote", nil, nil},
		"mesh-local":  {"client_auth", "local-in-fra", nil, nil},
	}
	got := map[string]identity{}
	for _, cert := range rec.OfType(signedType) {
		name := cert.Name[len("infra-cilium-"):]
		csr := rec.Find(func(r mocks.Registration) bool {
			return r.Type == "tls:index/certRequest:CertRequest" && r.Name == cert.Name
		})
		require.Len(t, csr, 1)
		request := csr[0]
		got[name] = identity{
			cert.Input("allowedUses[2]"), request.Input("subject.commonName"), request.Input("dnsNames"), request.Input("ipAddresses"),
		}
		assert.Equal(t, shared.Certificate, cert.Input("caCertPem"))
		assert.Equal(t, 2160.0, cert.Input("earlyRenewalHours"), "renewed 90 days before it expires")
		assert.Equal(t, 26280.0, cert.Input("validityPeriodHours"), "three years")
	}
	assert.Equal(t, want, got)
}

func TestCiliumCore_KeepsPrivateKeysSecret(t *testing.T) {
	for _, mode := range []cluster.CiliumMode{cluster.CiliumHelm, cluster.CiliumInline} {
		rec := &mocks.Recorder{}
		require.NoError(t, program{args: func(args *cilium.CiliumCoreArgs) {
			inline(args)
			args.Cluster.Cilium.Mode = mode
			clusters.Meshed(args.Cluster)
		}}.run(t, rec))
		require.NotEmpty(t, rec.Resources())
		for _, reg := range rec.Resources() {
			for _, name := range signed(rec) {
				assert.Empty(t, reg.PlainPaths("KEY "+name), reg.Name)
				assert.Empty(t, reg.PlainPaths(base64.StdEncoding.EncodeToString([]byte("KEY "+name))), reg.Name)
			}
		}
	}
}

func TestCiliumCore_IsSignedByTheMeshsAuthority(t *testing.T) {
	rec := &mocks.Recorder{}
	var shared syntax.KeyPair
	require.NoError(t, run(t, rec, func(args *cilium.CiliumCoreArgs) {
		clusters.Meshed(args.Cluster)
		shared = args.Cluster.MeshAuthority()
	}))
	assert.Empty(t, rec.OfType("tls:index/selfSignedCert:SelfSignedCert"))
	for _, cert := range rec.OfType(signedType) {
		assert.Equal(t, shared.Certificate, cert.Input("caCertPem"))
		assert.True(t, cert.SecretInput("caPrivateKeyPem"))
	}
	for _, reg := range rec.Resources() {
		assert.Empty(t, reg.PlainPaths(shared.Key), reg.Name)
	}
}

// A release of an earlier Slipway contains three of them, so Helm deletes these three when it installs a release without them, unless they
// have its annotation by then.
func TestCiliumCore_MakesTheMeshsSecretsAndKeepsThemFromHelmBeforeTheRelease(t *testing.T) {
	for _, version := range []string{"1.18.7", "1.19.6", "1.20.2"} {
		rec := &mocks.Recorder{}
		require.NoError(t, run(t, rec, func(args *cilium.CiliumCoreArgs) {
			clusters.Meshed(args.Cluster)
			args.Cluster.Cilium.Version = version
		}))
		release := rec.Resource(t, "infra-cilium-release")
		var names []any
		for _, secret := range rec.OfType("kubernetes:core/v1:Secret") {
			names = append(names, secret.Input("metadata.name"))
			assert.Equal(t, "kubernetes.io/tls", secret.Input("type"))
			assert.Equal(t, "kube-system", secret.Input("metadata.namespace"))
			assert.Contains(t, release.Dependencies, secret.URN)
			assert.True(t, secret.RetainOnDelete, "in mode inline, Talos has found it already when Pulumi would delete it")
			assert.Equal(t, map[string]any{"pulumi.com/patchForce": "true", "helm.sh/resource-policy": "keep"},
				secret.Input("metadata.annotations"))
			assert.Equal(t, rec.Resource(t, "bootstrap").URN, secret.DeletedWith)
			for key, want := range map[string]string{"tls.crt": "CERT ", "tls.key": "KEY "} {
				assert.Equal(t, base64.StdEncoding.EncodeToString([]byte(want+secret.Name)), secret.Input(`data["`+key+`"]`),
					"of the certificate that the state has had under this name")
			}
		}
		assert.ElementsMatch(t, []any{
			"clustermesh-apiserver-server-cert", "clustermesh-apiserver-admin-cert", "clustermesh-apiserver-remote-cert",
			"clustermesh-apiserver-local-cert",
		}, names, version)
		assert.Nil(t, release.Input("values.clustermesh.apiserver.tls.server"), version)
	}
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, nil))
	assert.Empty(t, rec.OfType("kubernetes:core/v1:Secret"), "without a mesh")
}

func TestCiliumCore_RejectsArgsBeforeAnythingIsRegistered(t *testing.T) {
	for problem, mutate := range map[string]func(*cilium.CiliumCoreArgs){
		"cluster: is missing": func(a *cilium.CiliumCoreArgs) { a.Cluster = nil },
		"kubernetesProvider: is missing; pass the provider of the": func(a *cilium.CiliumCoreArgs) { a.KubernetesProvider = nil },
		"kubeconfig: is missing; pass TalosCluster's":              func(a *cilium.CiliumCoreArgs) { a.Kubeconfig = nil },
		"renderer: is missing; pass a Kubernetes provider without": func(a *cilium.CiliumCoreArgs) { inline(a); a.Renderer = nil },
		"tlsProvider: is missing":                                  func(a *cilium.CiliumCoreArgs) { a.TLSProvider = nil },
		"cluster.meshCA: is missing": func(a *cilium.CiliumCoreArgs) {
			clusters.Meshed(a.Cluster)
			a.Cluster.MeshCA = cluster.Secret{}
		},
	} {
		rec := &mocks.Recorder{}
		assert.ErrorContains(t, run(t, rec, mutate), problem)
		assert.Empty(t, rec.OfType("slipway:cilium:CiliumCore"), problem)
	}
}

func TestCiliumCore_HasTheSameCertificatesInEachMode(t *testing.T) {
	made := map[cluster.CiliumMode][]string{}
	for _, mode := range []cluster.CiliumMode{cluster.CiliumHelm, cluster.CiliumInline} {
		rec := &mocks.Recorder{}
		require.NoError(t, run(t, rec, func(args *cilium.CiliumCoreArgs) { inline(args); args.Cluster.Cilium.Mode = mode }))
		urns := map[string]bool{}
		for _, reg := range rec.Resources() {
			if reg.Parent == rec.Only(t, "slipway:cilium:CiliumCore").URN && reg.Type != releaseType {
				urns[reg.URN] = true
			}
		}
		made[mode] = slices.Sorted(maps.Keys(urns))
	}
	assert.Len(t, made[cluster.CiliumHelm], 8, "CA, and two keys with request and certificate")
	assert.Equal(t, made[cluster.CiliumHelm], made[cluster.CiliumInline])
}
