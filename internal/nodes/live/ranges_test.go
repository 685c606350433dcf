package live

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The controller manager would end at a Node outside its ranges, and the API servers take addresses of Services from the first range. Back
// to the ranges that the cluster has is the way out.
func TestCluster_KnowsRangesThatTheClusterIsNotIn(t *testing.T) {
	const node, services = "Node cp-1", "ServiceCIDR kubernetes"
	for _, c := range []struct {
		pods, services string // of the configuration
		node, has      string // ranges of the Node and of the ServiceCIDR
		key, of, keeps string // what is refused; "" for nothing
	}{
		{"10.99.0.0/16", "10.96.0.0/12", "10.244.1.0/24", "10.96.0.0/12", "network.podCIDR", node, "10.244.1.0/24"},
		{"10.244.0.0/16", "10.96.0.0/12", "10.244.1.0/24", "10.96.0.0/12", "", "", ""},
		{"10.244.1.0/25", "10.96.0.0/12", "10.244.1.0/24", "10.96.0.0/12", "network.podCIDR", node, "10.244.1.0/24"},
		{"10.99.0.0/16", "10.96.0.0/12", "", "10.96.0.0/12", "", "", ""},
		{"10.244.0.0/16, fd00::/48", "10.96.0.0/12", "10.244.1.0/24", "10.96.0.0/12", "", "", ""},
		{"10.99.0.0/16", "10.96.0.0/12", "fd00:0:0:1::/64", "10.96.0.0/12", "network.ipv6.podCIDR", node, "fd00:0:0:1::/64"},
		{"10.244.0.0/16", "10.99.0.0/16", "10.244.1.0/24", "10.245.0.0/16", "network.serviceCIDR", services, "10.245.0.0/16"},
		{"10.244.0.0/16", "10.245.0.0/20", "10.244.1.0/24", "10.245.0.0/16", "network.serviceCIDR", services, "10.245.0.0/16"},
		{"10.244.0.0/16", "10.245.0.0/16", "10.244.1.0/24", "10.245.0.0/16", "", "", ""},
		{"10.244.0.0/16", "10.245.0.0/16, fd00:2::/112", "10.244.1.0/24", "10.245.0.0/16", "", "", ""},
		{
			"10.244.0.0/16", "10.245.0.0/16", "10.244.1.0/24", `10.245.0.0/16", "fd00:2::/112`,
			"network.ipv6.serviceCIDR", services, "fd00:2::/112",
		},
		{"10.244.0.0/16", "10.99.0.0/16", "10.244.1.0/24", "", "", "", ""},
	} {
		live, machine, kube, _ := rigOf(t, "v1.14.6")
		kube.answers["GET /api/v1/nodes"] = `{"kind":"NodeList","apiVersion":"v1","items":[{"kind":"Node","apiVersion":"v1",
"metadata":{"name":"cp-1"},"spec":{"podCIDRs":["` + c.node + `"]}}]}`
		kube.answers["GET /apis/networking.k8s.io/v1/servicecidrs"] = `{"kind":"ServiceCIDRList",
"apiVersion":"networking.k8s.io/v1","items":[{"kind":"ServiceCIDR","apiVersion":"networking.k8s.io/v1",
"metadata":{"name":"kubernetes"},"spec":{"cidrs":["` + c.has + `"]}}]}`
		if c.has == "" { // nothing is known
			clear(kube.answers)
		}
		effect, part, err := live.Effect(t.Context(), machine,
			"machine: {type: controlplane}\ncluster: {network: {podSubnets: ["+c.pods+"], serviceSubnets: ["+c.services+"]}}")
		require.NoError(t, err)
		assert.Equal(t, c.key != "", effect == NeedsCluster, "%v: %s", c, part)
		if c.key != "" {
			assert.Equal(t, c.key+": "+c.of+" has the range "+c.keeps+", which it keeps", part)
		}
	}
}
