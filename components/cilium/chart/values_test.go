package chart_test

import (
	"encoding/base64"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium/chart"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/golden"
)

// options are the choices by the name of their golden file: each alone, or together with the choices that it requires.
var options = map[string]func(*chart.Values){
	"values": func(*chart.Values) {},
	"dual-stack": func(v *chart.Values) {
		v.Network.IPv6 = &cluster.IPv6{PodCIDR: netip.MustParsePrefix("fd00:10:244::/56")}
	},
	"native": func(v *chart.Values) { v.Cilium.Routing = cluster.RoutingNative },
	"bpf-bbr": func(v *chart.Values) {
		v.Cilium.Masquerade, v.Cilium.BandwidthManager = cluster.MasqueradeBPF, cluster.BandwidthBBR
	},
	"edt":       func(v *chart.Values) { v.Cilium.BandwidthManager = cluster.BandwidthEDT },
	"gateway":   func(v *chart.Values) { v.Cilium.GatewayAPI = true },
	"no-hubble": func(v *chart.Values) { v.Cilium.Hubble = hubble(false, false, false) },
	"hubble-ui": func(v *chart.Values) { v.Cilium.Hubble = hubble(true, true, true) },
	"bgp":       func(v *chart.Values) { v.Network.LoadBalancers.Announce = cluster.AnnounceBGP },
	"no-announcements": func(v *chart.Values) {
		v.Network.LoadBalancers.Announce = cluster.AnnounceNone
	},
	"wireguard": func(v *chart.Values) { v.Cilium.Encryption = cluster.EncryptionWireGuard },
	"mesh": func(v *chart.Values) {
		clusters.Meshed(v.Cluster)
		v.MeshCA = cluster.Secret{} // it is another one in each run
	},
}

func hubble(enabled, relay, ui bool) cluster.Hubble {
	return cluster.Hubble{Enabled: enabled, Relay: &relay, UI: ui}
}

// validValues returns the values of the committed infra cluster, without gateways.
func validValues(t *testing.T) chart.Values {
	t.Helper()
	return chart.Values{Cluster: clusters.Infra(t, func(c *cluster.Cluster) { c.Cilium.GatewayAPI = false })}
}

func rendered(t *testing.T, set func(*chart.Values)) map[string]any {
	t.Helper()
	values := validValues(t)
	set(&values)
	return withDocuments(t, values, map[string]string{
		chart.PathCA:                   "ca certificate",
		"hubble.tls.server.cert":       "server certificate",
		"hubble.tls.server.key":        "server key",
		"hubble.relay.tls.client.cert": "relay certificate",
		"hubble.relay.tls.client.key":  "relay key",
	})
}

// withDocuments returns the values with documents by their paths.
func withDocuments(t *testing.T, values chart.Values, documents map[string]string) map[string]any {
	t.Helper()
	tree, err := values.Tree(values.Documents(func(path string) any {
		return base64.StdEncoding.EncodeToString([]byte(documents[path]))
	}))
	require.NoError(t, err)
	return tree
}

// changed returns the values of a tree that differ from another tree or are missing in it; values that only the other has are null.
func changed(tree, from map[string]any) map[string]any {
	diff := map[string]any{}
	for key := range from {
		if _, there := tree[key]; !there {
			diff[key] = nil
		}
	}
	for key, value := range tree {
		below, isTree := value.(map[string]any)
		was, wasTree := from[key].(map[string]any)
		if isTree && wasTree {
			if part := changed(below, was); len(part) != 0 {
				diff[key] = part
			}
			continue
		}
		if !assert.ObjectsAreEqual(from[key], value) {
			diff[key] = value
		}
	}
	return diff
}

func TestValues_RenderWhatTheGoldenFilesShow(t *testing.T) {
	usual := rendered(t, options["values"])
	for name, set := range options {
		tree := rendered(t, set)
		if name != "values" { // values has the whole tree; the other files show what their option changes
			tree = changed(tree, usual)
		}
		got, err := yaml.Marshal(tree)
		require.NoError(t, err)
		golden.File(t, filepath.Join("testdata", name+".yaml"), string(got))
	}
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	assert.Len(t, files, len(options), "each golden file belongs to an option")
}

func TestValues_ContainTheClustersOwnNameAndNetwork(t *testing.T) {
	tree := rendered(t, func(v *chart.Values) { v.Identity = cluster.Identity{Name: "apps", ID: 2} })
	assert.Equal(t, map[string]any{"name": "apps", "id": 2.0}, tree["cluster"])
	assert.EqualValues(t, cluster.KubePrismPort, tree["k8sServicePort"])
	assert.Equal(t, "10.244.0.0/16", tree["ipv4NativeRoutingCIDR"])
}

func TestValues_GiveTheOperatorAsManyPodsAsMachinesCanRun(t *testing.T) {
	for machines, want := range map[int]float64{1: 1, 2: 2, 3: 2} {
		for mode, want := range map[cluster.CiliumMode]float64{cluster.CiliumHelm: want, cluster.CiliumInline: 2} {
			tree := rendered(t, func(v *chart.Values) {
				pool := v.NodePools[0]
				pool.Nodes = pool.Nodes[:machines]
				v.NodePools, v.Cilium.Mode = []cluster.NodePool{pool}, mode
			})
			assert.Equal(t, want, tree["operator"].(map[string]any)["replicas"], "%d machines, %s", machines, mode)
		}
	}
}

// Etcd reads the CA of its clients only when it starts. See the chart's test for the pods.
func TestValues_ReplaceTheMeshsPodsForAnotherCA(t *testing.T) {
	values := validValues(t)
	annotations := func() any {
		return withDocuments(t, values, nil)["clustermesh"].(map[string]any)["apiserver"].(map[string]any)["podAnnotations"]
	}
	clusters.Meshed(values.Cluster)
	first := annotations()
	for _, one := range first.(map[string]any) {
		assert.NotContains(t, values.MeshCA.Reveal(), one, "a checksum")
	}
	clusters.Meshed(values.Cluster) // with another CA
	assert.NotEqual(t, first, annotations())
}

// The chart of 1.20 fails if it gets a certificate of the mesh as a value.
func TestValues_LeaveTheMeshsSecretsToSlipway(t *testing.T) {
	tls := func(version string) map[string]any {
		tree := rendered(t, func(v *chart.Values) { clusters.Meshed(v.Cluster); v.Cilium.Version = version })
		return tree["clustermesh"].(map[string]any)["apiserver"].(map[string]any)["tls"].(map[string]any)
	}
	for _, version := range []string{"1.17.12", "1.18.7", "1.19.6", "1.20.2", "1.21.0"} {
		assert.Equal(t, false, tls(version)["enableSecrets"], version)
		for _, certificate := range []string{"server", "admin", "remote"} {
			assert.NotContains(t, tls(version), certificate, version)
		}
	}
}
