package core_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/core"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const coreServicesType = "slipway:core:CoreServices"

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
		return c.next(ctx, services.Leaves())
	})
}

func TestCoreServices_InstallTheReleasesThatFluxCanAdopt(t *testing.T) {
	c := &chain{}
	require.NoError(t, newServices(t, c, nil))
	dns, spegel, certManager := c.model.CoreDNS, c.model.Spegel, c.model.CertManager
	for name, want := range map[string]map[string]any{
		"core-coredns": {"name": "coredns", "namespace": "kube-system", "chart": "coredns", "version": dns.Version,
			"repositoryOpts.repo": dns.Repository},
		"core-spegel": {"name": "spegel", "namespace": "spegel", "chart": spegel.Chart, "version": spegel.Version, "repositoryOpts.repo": nil},
		"core-cert-manager": {"name": "cert-manager", "namespace": "cert-manager", "chart": "cert-manager", "version": certManager.Version,
			"repositoryOpts.repo": certManager.Repository},
	} {
		release := c.Resource(t, name)
		for path, value := range want {
			assert.Equal(t, value, release.Input(path), "%s %s", name, path)
		}
		assert.Len(t, release.BeforeCreate, 1, "%s clears its own leftover", name)
	}
	assert.Len(t, c.OfType(releaseType), len(c.model.Services()))
}

func TestCoreServices_WaitForDNSAndOtherwiseInstallInParallel(t *testing.T) {
	infra := clusters.Infra(t)
	for range 20 { // a dependency on a component instead of a leaf is missing in some runs
		c := &chain{model: infra}
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
		assert.Contains(t, spegel.Dependencies, runs.URN, "it needs DNS")
		assert.Contains(t, certManager.Dependencies, runs.URN, "it needs DNS")
		assert.Contains(t, spegel.Dependencies, c.Resource(t, "core-spegel-namespace").URN)
		assert.Contains(t, certManager.Dependencies, c.Resource(t, "core-cert-manager-namespace").URN)
		assert.False(t, c.After(spegel, certManager), "in parallel")
		assert.False(t, c.After(certManager, spegel), "in parallel")
		for _, namespace := range c.OfType(namespaceType) {
			assert.True(t, c.After(namespace, gate), namespace.Name)
			assert.False(t, c.After(namespace, dns), "%s needs no DNS", namespace.Name)
		}
	}
}

func TestCoreServices_NameTheirProviderAndAreDeletedWithTheCluster(t *testing.T) {
	c := &chain{}
	require.NoError(t, newServices(t, c, nil))
	objects := append(c.OfType(releaseType), c.OfType(namespaceType)...)
	require.Greater(t, len(objects), len(c.model.Services()), "releases and namespaces")
	for _, object := range objects {
		assert.Equal(t, c.Resource(t, "kubernetes").URN, object.ProviderURN(), object.Name)
		assert.Equal(t, c.Resource(t, "bootstrap").URN, object.DeletedWith, object.Name)
		assert.Empty(t, object.PlainPaths("c2VjcmV0"), object.Name)
	}
}

func TestCoreServices_AnOrdinaryNamespaceHasNoLabels(t *testing.T) {
	c := &chain{}
	require.NoError(t, newServices(t, c, nil))
	assert.Equal(t, map[string]any{"name": "cert-manager"}, c.Resource(t, "core-cert-manager-namespace").Input("metadata"),
		"an empty map of labels would show as a change")
}

func TestCoreServices_GiveDNSTheTenthAddressOfEachFamily(t *testing.T) {
	c := &chain{}
	require.NoError(t, newServices(t, c, nil))
	dns := c.Resource(t, "core-coredns")
	assert.Equal(t, "10.245.0.10", dns.Input("values.service.clusterIP"))
	assert.Equal(t, []any{"10.245.0.10"}, dns.Input("values.service.clusterIPs"))
	assert.Equal(t, "SingleStack", dns.Input("values.service.ipFamilyPolicy"))

	c = &chain{model: clusters.Infra(t)}
	c.model.Network.IPv6 = &cluster.IPv6{ServiceCIDR: netip.MustParsePrefix("fd00:10:245::/112")} // DNS reads no other field of the section
	require.NoError(t, newServices(t, c, nil))
	dns = c.Resource(t, "core-coredns")
	assert.Equal(t, "10.245.0.10", dns.Input("values.service.clusterIP"))
	assert.Equal(t, []any{"10.245.0.10", "fd00:10:245::a"}, dns.Input("values.service.clusterIPs"))
	assert.Equal(t, "RequireDualStack", dns.Input("values.service.ipFamilyPolicy"))
}

func TestCoreServices_TakeTheUsersValuesBesideTheirOwn(t *testing.T) {
	set := func(replicas string) *chain {
		c := &chain{model: clusters.Infra(t, func(c *cluster.Cluster) {
			c.CertManager.Values = cluster.ChartValues(`{"replicaCount":` + replicas + `,"crds":{"keep":true}}`)
		})}
		require.NoError(t, newServices(t, c, nil))
		return c
	}
	c := set("2")
	release := c.Resource(t, "core-cert-manager")
	assert.Equal(t, 2.0, release.Input("values.replicaCount"))
	assert.Equal(t, true, release.Input("values.crds.keep"))
	assert.Equal(t, false, release.Input("values.crds.enabled"))
	assert.NotEqual(t, c.Resource(t, "core-cert-manager-probe").Input("triggers[1]"),
		set("3").Resource(t, "core-cert-manager-probe").Input("triggers[1]"), "the probe runs again")
}

func TestCoreServices_DNSRunsOnControlPlanesWithPriority(t *testing.T) {
	c := &chain{model: clusters.Infra(t, func(c *cluster.Cluster) { c.CoreDNS.Replicas = 3 })}
	require.NoError(t, newServices(t, c, nil))
	dns := c.Resource(t, "core-coredns")
	assert.Equal(t, 3.0, dns.Input("values.replicaCount"))
	assert.Equal(t, "system-cluster-critical", dns.Input("values.priorityClassName"))
	assert.Equal(t, map[string]any{
		"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule",
	}, dns.Input("values.tolerations[0]"))
	const wish = "values.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution"
	assert.Equal(t, "kubernetes.io/hostname", dns.Input(wish+"[0].podAffinityTerm.topologyKey"))
	assert.Equal(t, "topology.kubernetes.io/zone", dns.Input(wish+"[1].podAffinityTerm.topologyKey"))
	for _, term := range []string{wish + "[0]", wish + "[1]"} {
		assert.Equal(t, "kube-dns", dns.Input("values.k8sAppLabelOverride"))
		assert.Equal(t, "kube-dns", dns.Input(term+".podAffinityTerm.labelSelector.matchLabels.k8s-app"))
	}
	assert.Nil(t, dns.Input("values.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"), "one node is enough")
	assert.Nil(t, dns.Input("values.topologySpreadConstraints"), "ignored on nodes without a zone")
}

func TestCoreServices_MatchTalosAndTheInstalledCRDs(t *testing.T) {
	c := &chain{}
	require.NoError(t, newServices(t, c, nil))
	assert.Equal(t, "/etc/cri/conf.d/hosts", c.Resource(t, "core-spegel").Input("values.spegel.containerdRegistryConfigPath"))
	for _, mode := range []string{"enforce", "audit", "warn"} {
		label := `metadata.labels["pod-security.kubernetes.io/` + mode + `"]`
		assert.Equal(t, "privileged", c.Resource(t, "core-spegel-namespace").Input(label))
		assert.Nil(t, c.Resource(t, "core-cert-manager-namespace").Input(label), "it needs no privileges")
	}
	assert.Equal(t, false, c.Resource(t, "core-cert-manager").Input("values.crds.enabled"))
	assert.Equal(t, false, c.Resource(t, "core-cert-manager").Input("values.startupapicheck.enabled"), "the probe checks that instead")
}

func TestCoreServices_SpegelKeepsTheMirrorsOfTalos(t *testing.T) {
	c := &chain{model: clusters.Infra(t, func(c *cluster.Cluster) {
		c.Talos.RegistryMirrors = map[string][]string{"*": {"https://cache.home.arpa"}, "ghcr.io": {"https://mirror.home.arpa"}}
	})}
	require.NoError(t, newServices(t, c, nil))
	release := c.Resource(t, "core-spegel")
	assert.Equal(t, true, release.Input("values.spegel.prependExisting"))
	assert.Equal(t, []any{"_default", "https://ghcr.io"}, release.Input("values.spegel.mirroredRegistries"))
}

func TestCoreServices_OmitDisabledServices(t *testing.T) {
	c := &chain{model: clusters.Infra(t, func(c *cluster.Cluster) { c.Spegel.Enabled, c.CertManager.Enabled = false, false })}
	require.NoError(t, newServices(t, c, nil))
	releases := c.OfType(releaseType)
	assert.Len(t, releases, len(clusters.Infra(t).Services())-2)
	for _, made := range slices.Concat(releases, c.OfType(namespaceType)) {
		assert.NotRegexp(t, "spegel|cert-manager", made.Name)
	}
}

func TestCoreServices_TheProbeChecksEachRelease(t *testing.T) {
	c := &chain{}
	require.NoError(t, newServices(t, c, func(args *core.CoreServicesArgs) { args.Timeout = 90 * time.Second }))
	for name, sample := range map[string]string{
		"coredns": "", "spegel": "", "cert-manager": "certificates Certificate cert-manager/slipway-probe",
	} {
		run, release := c.Resource(t, "core-"+name+"-probe"), c.Resource(t, "core-"+name)
		assert.Equal(t, probe.Program+" workloads", run.Input("create"))
		assert.True(t, run.SecretInput("stdin"))
		assert.Empty(t, run.PlainPaths("c2VjcmV0"))
		assert.Equal(t, c.Resource(t, "bootstrap").URN, run.DeletedWith)
		assert.Equal(t, c.Resource(t, "command").URN, run.ProviderURN())
		assert.Equal(t, release.Input("name").(string)+" "+release.Input("version").(string), run.Input("triggers[0]"))

		spec := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(run.Input("stdin").(string)), &spec))
		assert.Equal(t, "infra", spec["cluster"])
		assert.Equal(t, kubeconfig, spec["kubeconfig"])
		assert.Equal(t, []any{map[string]any{"namespace": release.Input("namespace"), "name": name}}, spec["releases"])
		assert.Equal(t, "1m30s", spec["timeout"])
		assert.Equal(t, sample, accepted(t, spec["accepts"]), name)
	}
}

// accepted returns resource, kind, namespace and name of the one object that a probe submits to the API; "" without one.
func accepted(t *testing.T, accepts any) string {
	t.Helper()
	samples, _ := accepts.([]any)
	if len(samples) == 0 {
		return ""
	}
	require.Len(t, samples, 1)
	sample := samples[0].(map[string]any)
	object := sample["object"].(map[string]any)
	metadata := object["metadata"].(map[string]any)
	return sample["resource"].(string) + " " + object["kind"].(string) + " " + metadata["namespace"].(string) + "/" + metadata["name"].(string)
}

func TestCoreServices_TheProbeRunsAgainWhenValuesChange(t *testing.T) {
	values := func(replicas int) any {
		c := &chain{model: clusters.Infra(t, func(c *cluster.Cluster) { c.CoreDNS.Replicas = replicas })}
		require.NoError(t, newServices(t, c, nil))
		return c.Resource(t, "core-coredns-probe").Input("triggers[1]")
	}
	assert.Equal(t, values(2), values(2))
	assert.NotEqual(t, values(2), values(3))
}

func TestCoreServices_RejectArgsBeforeAnythingIsRegistered(t *testing.T) {
	for problem, mutate := range map[string]func(*core.CoreServicesArgs){
		"name: is missing":               func(a *core.CoreServicesArgs) { a.Name = "" },
		"kubeconfig: is missing":         func(a *core.CoreServicesArgs) { a.Kubeconfig = nil },
		"kubernetesProvider: is missing": func(a *core.CoreServicesArgs) { a.KubernetesProvider = nil },
		"commandProvider: is missing":    func(a *core.CoreServicesArgs) { a.CommandProvider = nil },
		"deletedWith: is missing":        func(a *core.CoreServicesArgs) { a.DeletedWith = nil },
		"services: are missing":          func(a *core.CoreServicesArgs) { a.Services = nil },
		"timeout: 0s is not a wait":      func(a *core.CoreServicesArgs) { a.Timeout = 0 },
		"timeout: -1s is not a wait":     func(a *core.CoreServicesArgs) { a.Timeout = -time.Second },
		`CoreServices "core": `:          func(a *core.CoreServicesArgs) { *a = core.CoreServicesArgs{} },
	} {
		c := &chain{}
		require.ErrorContains(t, newServices(t, c, mutate), problem)
		assert.Empty(t, c.OfType(coreServicesType), problem)
		assert.Empty(t, c.OfType(releaseType), problem)
	}
}

func TestCoreServices_ReportValuesThatAreNotJSONUnderTheComponentsName(t *testing.T) {
	c := &chain{}
	err := newServices(t, c, func(a *core.CoreServicesArgs) { a.Services[1].Values = func() {} })
	require.ErrorContains(t, err, `CoreServices "core": values of spegel: json: unsupported type`)
}
