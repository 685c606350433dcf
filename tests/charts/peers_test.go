package charts

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium/chart"
)

// TestPeers_ReplaceNoPodButThoseOfTheMeshAPIServer compares the templates of pods with no peer, one, and two: another template is a
// rollout. Agents find a peer in the Secret that they have mounted. Only the default of Cilium 1.18 for policies is another one without a
// mesh.
func TestPeers_ReplaceNoPodButThoseOfTheMeshAPIServer(t *testing.T) {
	twoPeers := variant{name: "two peers", set: func(v *chart.Values) {
		meshed(v)
		v.Mesh.Peers = append(v.Mesh.Peers, "edge")
		v.Mesh.Clusters = append(v.Mesh.Clusters,
			cluster.Peer{Stack: "edge", Name: "edge", ID: 3, Nodes: 3, Address: netip.MustParseAddr("10.25.13.100")})
	}}
	const server = "Deployment kube-system/clustermesh-apiserver"
	for _, version := range versions {
		in := func(v variant) map[string]string {
			v.version = version
			return templates(t, v)
		}
		none, one, two := in(called(t, "default")), in(called(t, "mesh")), in(twoPeers)
		first := map[string]bool{server: true}
		if strings.HasPrefix(version, "1.18.") {
			first["DaemonSet kube-system/cilium"], first["Deployment kube-system/cilium-operator"] = true, true
		}
		assert.Equal(t, first, others(none, one), "%s: the first peer", version)
		assert.Equal(t, map[string]bool{server: true}, others(one, two), "%s: a further peer", version)
	}
}

// templates are the templates of pods, by the object that has them.
func templates(t *testing.T, v variant) map[string]string {
	t.Helper()
	of := map[string]string{}
	for _, o := range v.rendered(t) {
		if template := o.at("spec.template"); template != nil {
			text, err := json.Marshal(template)
			require.NoError(t, err)
			of[o.id()] = string(text)
		}
	}
	require.Contains(t, of, "DaemonSet kube-system/cilium")
	return of
}

// others are the keys whose values differ, or that only one of the two has.
func others(before, after map[string]string) map[string]bool {
	differ := map[string]bool{}
	for _, of := range []map[string]string{before, after} {
		for key := range of {
			if before[key] != after[key] {
				differ[key] = true
			}
		}
	}
	return differ
}
