package core_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi-command/sdk/go/command/local"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/core"
	"github.com/slipway-platform/slipway/components/core/pins"
	"github.com/slipway-platform/slipway/internal/health/workloads"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/internal/step"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func newServices(t *testing.T, c *chain, mutate func(*core.CoreServicesArgs)) error {
	t.Helper()
	return c.run(t, func(ctx *pulumi.Context) error {
		args := c.services()
		if mutate != nil {
			mutate(args)
		}
		services, err := core.NewCoreServices(ctx, "core", args)
		if err != nil {
			return err
		}
		_, err = local.NewCommand(ctx, "next", &local.CommandArgs{}, pulumi.Provider(c.commands), pulumi.DependsOn(services.Leaves()))
		return err
	})
}

func TestCoreServices_InstallTheReleasesThatFluxCanAdopt(t *testing.T) {
	c := &chain{}
	require.NoError(t, newServices(t, c, nil))
	for name, want := range map[string]map[string]any{
		"core-coredns": {"name": "coredns", "namespace": "kube-system", "chart": "coredns", "version": pins.CoreDNSVersion, "repositoryOpts.repo": pins.CoreDNSRepository},
		"core-spegel":  {"name": "spegel", "namespace": "spegel", "chart": pins.SpegelChart, "version": pins.SpegelVersion, "repositoryOpts.repo": nil},
		"core-cert-manager": {"name": "cert-manager", "namespace": "cert-manager", "chart": "cert-manager", "version": pins.CertManagerVersion,
			"repositoryOpts.repo": pins.CertManagerRepository},
	} {
		release := c.Resource(t, name)
		for path, value := range want {
			assert.Equal(t, value, release.Input(path), "%s %s", name, path)
		}
		assert.Len(t, release.BeforeCreate, 1, "%s makes way for itself", name)
	}
	assert.Len(t, c.OfType(releaseType), 3)
}

func TestCoreServices_ComeInOrderWhereItMatters(t *testing.T) {
	for range 20 { // a dependency on a component instead of a leaf would be missing now and then
		c := &chain{}
		require.NoError(t, newServices(t, c, nil))
		gate, dns := c.Resource(t, "gate"), c.Resource(t, "core-coredns")
		spegel, certManager := c.Resource(t, "core-spegel"), c.Resource(t, "core-cert-manager")
		assert.True(t, c.After(dns, gate))
		for release, waits := range map[string]mocks.Registration{"core-coredns": dns, "core-spegel": spegel, "core-cert-manager": certManager} {
			probe := c.Resource(t, release+"-probe")
			assert.Contains(t, probe.Dependencies, waits.URN)
			assert.Contains(t, c.Resource(t, "next").Dependencies, probe.URN)
		}
		runs := c.Resource(t, "core-coredns-probe")
		assert.Contains(t, spegel.Dependencies, runs.URN, "names resolve by then")
		assert.Contains(t, certManager.Dependencies, runs.URN, "names resolve by then")
		assert.Contains(t, spegel.Dependencies, c.Resource(t, "core-spegel-namespace").URN)
		assert.Contains(t, certManager.Dependencies, c.Resource(t, "core-cert-manager-namespace").URN)
		assert.False(t, c.After(spegel, certManager), "side by side")
		assert.False(t, c.After(certManager, spegel), "side by side")
		for _, namespace := range c.OfType("kubernetes:core/v1:Namespace") {
			assert.True(t, c.After(namespace, gate), namespace.Name)
		}
	}
}

func TestCoreServices_NameTheirProviderAndGoWithTheCluster(t *testing.T) {
	c := &chain{}
	require.NoError(t, newServices(t, c, nil))
	objects := append(c.OfType(releaseType), c.OfType("kubernetes:core/v1:Namespace")...)
	require.Len(t, objects, 5)
	for _, object := range objects {
		assert.Equal(t, c.Resource(t, "kubernetes").URN, object.ProviderURN(), object.Name)
		assert.Equal(t, c.Resource(t, "bootstrap").URN, object.DeletedWith, object.Name)
		assert.Empty(t, object.PlainPaths("c2VjcmV0"), object.Name)
	}
}

func TestCoreServices_GiveDNSTheTenthAddressOfEachFamily(t *testing.T) {
	c := &chain{}
	require.NoError(t, newServices(t, c, nil))
	dns := c.Resource(t, "core-coredns")
	assert.Equal(t, "10.245.0.10", dns.Input("values.service.clusterIP"))
	assert.Equal(t, []any{"10.245.0.10"}, dns.Input("values.service.clusterIPs"))
	assert.Equal(t, "SingleStack", dns.Input("values.service.ipFamilyPolicy"))

	c = &chain{}
	require.NoError(t, newServices(t, c, func(args *core.CoreServicesArgs) {
		args.CoreDNS.ServiceCIDRs = append(args.CoreDNS.ServiceCIDRs, netip.MustParsePrefix("fd00:10:245::/112"))
	}))
	dns = c.Resource(t, "core-coredns")
	assert.Equal(t, "10.245.0.10", dns.Input("values.service.clusterIP"))
	assert.Equal(t, []any{"10.245.0.10", "fd00:10:245::a"}, dns.Input("values.service.clusterIPs"))
	assert.Equal(t, "RequireDualStack", dns.Input("values.service.ipFamilyPolicy"))
}

func TestCoreServices_KeepDNSRunningWhereNothingElseMay(t *testing.T) {
	c := &chain{}
	require.NoError(t, newServices(t, c, func(args *core.CoreServicesArgs) { args.CoreDNS.Replicas = 3 }))
	dns := c.Resource(t, "core-coredns")
	assert.Equal(t, 3.0, dns.Input("values.replicaCount"))
	assert.Equal(t, "system-cluster-critical", dns.Input("values.priorityClassName"))
	assert.Equal(t, map[string]any{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}, dns.Input("values.tolerations[0]"))
	const wish = "values.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution"
	assert.Equal(t, "kubernetes.io/hostname", dns.Input(wish+"[0].podAffinityTerm.topologyKey"))
	assert.Equal(t, "topology.kubernetes.io/zone", dns.Input(wish+"[1].podAffinityTerm.topologyKey"))
	for _, term := range []string{wish + "[0]", wish + "[1]"} {
		assert.Equal(t, dns.Input("values.k8sAppLabelOverride"), dns.Input(term+".podAffinityTerm.labelSelector.matchLabels.k8s-app"))
	}
	assert.Nil(t, dns.Input("values.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"), "one node is enough")
	assert.Nil(t, dns.Input("values.topologySpreadConstraints"), "void on nodes without a zone")
}

func TestCoreServices_FitTalosAndThePhaseBefore(t *testing.T) {
	c := &chain{}
	require.NoError(t, newServices(t, c, nil))
	assert.Equal(t, "/etc/cri/conf.d/hosts", c.Resource(t, "core-spegel").Input("values.spegel.containerdRegistryConfigPath"))
	assert.Equal(t, "privileged", c.Resource(t, "core-spegel-namespace").Input(`metadata.labels["pod-security.kubernetes.io/enforce"]`))
	assert.Equal(t, false, c.Resource(t, "core-cert-manager").Input("values.crds.enabled"))
	assert.Equal(t, false, c.Resource(t, "core-cert-manager").Input("values.startupapicheck.enabled"), "the probe asks instead")
}

func TestCoreServices_LeaveOutWhatIsNotWanted(t *testing.T) {
	c := &chain{}
	require.NoError(t, newServices(t, c, func(args *core.CoreServicesArgs) { args.Spegel, args.CertManager = nil, nil }))
	assert.Len(t, c.OfType(releaseType), 1)
	assert.Empty(t, c.OfType("kubernetes:core/v1:Namespace"))
}

func TestCoreServices_AreSeenToRunByTheProbe(t *testing.T) {
	c := &chain{}
	require.NoError(t, newServices(t, c, func(args *core.CoreServicesArgs) { args.Timeout = 90 * time.Second }))
	for name, accepts := range map[string]string{"coredns": "", "spegel": "", "cert-manager": "Certificate cert-manager/slipway-probe"} {
		run := c.Resource(t, "core-"+name+"-probe")
		assert.Equal(t, step.Program+" workloads", run.Input("create"))
		assert.True(t, run.SecretInput("stdin"))
		assert.Empty(t, run.PlainPaths("c2VjcmV0"))
		assert.Equal(t, c.Resource(t, "bootstrap").URN, run.DeletedWith)
		assert.Equal(t, c.Resource(t, "command").URN, run.ProviderURN())
		assert.Equal(t, c.Resource(t, "core-"+name).Input("name").(string)+" "+c.Resource(t, "core-"+name).Input("version").(string), run.Input("triggers[0]"))

		spec := new(workloads.Spec)
		require.NoError(t, probe.Read(strings.NewReader(run.Input("stdin").(string)), spec))
		assert.Equal(t, []workloads.Release{{Namespace: c.Resource(t, "core-"+name).Input("namespace").(string), Name: name}}, spec.Releases)
		assert.Equal(t, 90*time.Second, time.Duration(spec.Timeout))
		var samples []string
		for _, sample := range spec.Accepts {
			samples = append(samples, sample.Title())
		}
		assert.Equal(t, accepts, strings.Join(samples, " "))
	}
}

func TestCoreServices_AreLookedAtAgainWhenTheirValuesChange(t *testing.T) {
	values := func(replicas int) any {
		c := &chain{}
		require.NoError(t, newServices(t, c, func(args *core.CoreServicesArgs) { args.CoreDNS.Replicas = replicas }))
		return c.Resource(t, "core-coredns-probe").Input("triggers[1]")
	}
	assert.Equal(t, values(2), values(2))
	assert.NotEqual(t, values(2), values(3))
}

func TestCoreServices_RejectArgsBeforeAnythingIsRegistered(t *testing.T) {
	prefixes := func(texts ...string) []netip.Prefix {
		var list []netip.Prefix
		for _, text := range texts {
			list = append(list, netip.MustParsePrefix(text))
		}
		return list
	}
	for problem, mutate := range map[string]func(*core.CoreServicesArgs){
		"kubernetesProvider: missing":   func(a *core.CoreServicesArgs) { a.KubernetesProvider = nil },
		"coreDNS.serviceCIDRs: missing": func(a *core.CoreServicesArgs) { a.CoreDNS.ServiceCIDRs = nil },
		"are not IPv4 and then IPv6":    func(a *core.CoreServicesArgs) { a.CoreDNS.ServiceCIDRs = prefixes("fd00::/112", "10.245.0.0/16") },
		"10.245.0.0/29 has no tenth":    func(a *core.CoreServicesArgs) { a.CoreDNS.ServiceCIDRs = prefixes("10.245.0.0/29") },
		"are more than one a family": func(a *core.CoreServicesArgs) {
			a.CoreDNS.ServiceCIDRs = prefixes("10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16")
		},
		"coreDNS.replicas: -1 is negative": func(a *core.CoreServicesArgs) { a.CoreDNS.Replicas = -1 },
		"timeout: -1s is negative":         func(a *core.CoreServicesArgs) { a.Timeout = -time.Second },
		"cluster: missing":                 func(a *core.CoreServicesArgs) { a.Cluster = "" },
		"kubeconfig: missing":              func(a *core.CoreServicesArgs) { a.Kubeconfig = nil },
		"commandProvider: missing":         func(a *core.CoreServicesArgs) { a.CommandProvider = nil },
	} {
		c := &chain{}
		require.ErrorContains(t, newServices(t, c, mutate), problem)
		assert.Empty(t, c.OfType(releaseType))
	}
}
