package chart_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium/chart"
)

// problemsOf returns what is wrong with values of the user.
func problemsOf(t *testing.T, version, given string) []string {
	t.Helper()
	values := validValues(t)
	values.Cilium.Version, values.Cilium.Values = version, cluster.ChartValues(given)
	findings := &cluster.Findings{}
	chart.CheckUserValues(values.Cluster, findings)
	var said []string
	for _, problem := range findings.All() {
		said = append(said, problem.Error())
	}
	return said
}

func TestUserValues_AreRenderedBesideSlipwaysOwn(t *testing.T) {
	tree := rendered(t, func(v *chart.Values) {
		v.Cilium.Values = cluster.ChartValues(`{"MTU":1450,"operator":{"prometheus":{"enabled":false}}}`)
	})
	assert.Equal(t, 1450.0, tree["MTU"])
	operator := tree["operator"].(map[string]any)
	assert.Equal(t, map[string]any{"enabled": false}, operator["prometheus"])
	assert.Equal(t, 2.0, operator["replicas"])
	require.Empty(t, problemsOf(t, "1.20.2", `{"MTU":1450,"operator":{"prometheus":{"enabled":false}}}`))
}

func TestUserValues_MustNotTouchWhatSlipwaySets(t *testing.T) {
	const remedy = "; remove it; where a key of cilium sets it, use that"
	assert.Equal(t, []string{
		"cilium.values.hubble.tls.server.key: is a value of the chart that Slipway sets" + remedy,
		"cilium.values.ipam.mode: is a value of the chart that Slipway sets" + remedy,
		"cilium.values.operator.replicas: is a value of the chart that Slipway sets" + remedy,
		"cilium.values.securityContext: is a value of the chart that Slipway sets" + remedy,
	}, problemsOf(t, "1.20.2",
		`{"hubble":{"tls":{"server":{"key":""}}},"ipam":{"mode":"cluster-pool"},"operator":{"replicas":1},"securityContext":null}`))
}

func TestUserValues_MustBeKnownToTheChartOfTheUsualRelease(t *testing.T) {
	assert.Equal(t, []string{
		"cilium.values.cgroup.automount: is no value of the chart cilium; did you mean autoMount?",
		"cilium.values.quux: is no value of the chart cilium; remove it",
	}, problemsOf(t, "1.20.0", `{"cgroup":{"automount":{"enabled":true}},"quux":1}`))
	assert.Empty(t, problemsOf(t, "1.21.0", `{"quux":1}`), "its keys are not listed here")
	assert.Empty(t, problemsOf(t, "1.20.2", `{"podAnnotations":{"example.com/team":"net"}}`), "a mapping of any keys")
}

// A chart ignores a value that it no longer has, so that an upgrade would drop the setting without a word.
func TestUserValues_MustNotBeRemovedByTheRelease(t *testing.T) {
	const given = `{"enableCiliumEndpointSlice":true,"hubble":{"relay":{"dialTimeout":"5s"}},"nodePort":{"enabled":true},"MTU":1450}`
	endpointSlice := "cilium.values.enableCiliumEndpointSlice: is no value of Cilium's chart since 1.18; write ciliumEndpointSlice.enabled"
	dialTimeout := "cilium.values.hubble.relay.dialTimeout: is no value of Cilium's chart since 1.18; remove it: it has no successor"
	nodePort := "cilium.values.nodePort.enabled: is no value of Cilium's chart since 1.19; remove it: the feature is always on"
	assert.Empty(t, problemsOf(t, "1.17.12", given))
	assert.Equal(t, []string{endpointSlice, dialTimeout}, problemsOf(t, "1.18.7", given))
	assert.Equal(t, []string{endpointSlice, dialTimeout, nodePort}, problemsOf(t, "1.19.0", given))
	assert.Equal(t, []string{endpointSlice, dialTimeout, nodePort}, problemsOf(t, "1.20.2", given))
	const names = `{"clustermesh":{"apiserver":{"tls":{"server":{"extraDnsNames":["mesh.example.com"]}}}}}`
	assert.Empty(t, problemsOf(t, "1.19.6", names))
	assert.Equal(t, []string{"cilium.values.clustermesh.apiserver.tls.server: is no value of Cilium's chart since 1.20; " +
		"remove it: Slipway makes the certificates and their Secrets"}, problemsOf(t, "1.20.2", names))
}

func TestUserValues_AreRefusedIfTheAgentEndsWithThem(t *testing.T) {
	for given, says := range map[string]string{
		`{"bpf":{"events":{"default":{"burstLimit":100}}}}`: "bpf.events.default.burstLimit: 100 is taken only with the other limit; " +
			"add bpf.events.default.rateLimit",
		`{"bpf":{"events":{"default":{"rateLimit":100}}}}`: "bpf.events.default.rateLimit: 100 is taken only with the other limit; " +
			"add bpf.events.default.burstLimit",
		`{"bpf":{"ctTcpMax":1000000000}}`: "bpf.ctTcpMax: 1000000000 is out of the agent's range; write a number from 1024 to 16777216",
		`{"localRedirectPolicies":{"addressMatcherCIDRs":["10.0.0.1"]}}`: "localRedirectPolicies.addressMatcherCIDRs: [10.0.0.1] has an item " +
			"that is no network; write each with its length, such as 169.254.169.254/32",
		`{"operator":{"tolerations":[]}}`: "operator.tolerations: [] keeps the pods off nodes that are not Ready, which they are only with " +
			"Cilium; add {key: node.kubernetes.io/not-ready, operator: Exists}, or {operator: Exists} alone",
		`{"extraArgs":["--bpf-ct-global-tcp-max=many"]}`: "extraArgs[0]: many is no value of bpf-ct-global-tcp-max, and Cilium " +
			"ends with it; write a number",
		`{"extraConfig":{"enable-metrics":"yes"}}`: "extraConfig.enable-metrics: yes is no value of enable-metrics, and Cilium ends with it; " +
			"write true or false",
		`{"bpf":{"mapDynamicSizeRatio":-1}}`: "bpf.mapDynamicSizeRatio: -1 is no share of the memory; " +
			"write a number above 0 and up to 1, such as 0.0025",
	} {
		assert.Equal(t, []string{"cilium.values." + says}, problemsOf(t, "1.20.2", given), given)
	}
	assert.Empty(t, problemsOf(t, "1.20.2", `{"bpf":{"mapDynamicSizeRatio":0}}`), "the chart then has its own")
	assert.Empty(t, problemsOf(t, "1.21.0", `{"extraConfig":{"enable-metrics":"yes"}}`), "its options are not listed here")
	assert.Empty(t, problemsOf(t, "1.20.2", `{"bpf":{"events":{"default":{"rateLimit":0}}},"dnsPolicy":"None"}`))
}

func TestUserValues_MayLetEnvoyListenOnPortsBelow1024(t *testing.T) {
	const given = `{"gatewayAPI":{"hostNetwork":{"enabled":true}},"envoy":{"securityContext":{"capabilities":` +
		`{"envoy":["NET_ADMIN","SYS_ADMIN","NET_BIND_SERVICE"],"keepCapNetBindService":true}}}}`
	assert.Empty(t, problemsOf(t, "1.20.2", given))
	tree := rendered(t, func(v *chart.Values) { v.Cilium.Values = cluster.ChartValues(given) })
	assert.Equal(t, map[string]any{"envoy": []any{"NET_ADMIN", "SYS_ADMIN", "NET_BIND_SERVICE"}, "keepCapNetBindService": true},
		cluster.ValueAt(tree, "envoy.securityContext.capabilities"))
}

// The gate waits for agents whose image has the declared version as its tag.
func TestUserValues_MayHaveAnotherImageOfTheDeclaredVersionOnly(t *testing.T) {
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for _, image := range []string{
		`{"repository":"registry.example.com:5000/cilium"}`, `{"digest":"` + digest + `","useDigest":true}`, `{"tag":"v1.20.2"}`,
		`{"override":"registry.example.com:5000/cilium:1.20.2@` + digest + `","tag":"ignored"}`, `{"override":"","tag":"1.20.2"}`,
	} {
		assert.Empty(t, problemsOf(t, "1.20.2", `{"image":`+image+`}`), image)
	}
	const waits = " is not of cilium.version, for which the gate waits; "
	for image, says := range map[string]string{
		`{"tag":"v1.20.1"}`:                    "tag: v1.20.1" + waits + "write v1.20.2, or remove it",
		`{"tag":"v1.20.2-a"}`:                  "tag: v1.20.2-a" + waits + "write v1.20.2, or remove it",
		`{"tag":""}`:                           `tag: ""` + waits + "write v1.20.2, or remove it",
		`{"tag":null}`:                         `tag: ""` + waits + "write v1.20.2, or remove it",
		`{"override":"cilium@` + digest + `"}`: "override: the value" + waits + "give it the tag v1.20.2, or remove it",
		`{"override":"registry.example.com:5000/cilium","tag":"v1.20.2"}`: "override: registry.example.com:5000/cilium" + waits +
			"give it the tag v1.20.2, or remove it",
	} {
		assert.Equal(t, []string{"cilium.values.image." + says}, problemsOf(t, "1.20.2", `{"image":`+image+`}`), image)
	}
	assert.NotEmpty(t, problemsOf(t, "1.21.0", `{"image":{"tag":"v1.20.2"}}`), "whatever is known of the release")
}
