package stacks

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/components/talos"
	"github.com/slipway-platform/slipway/stacks/contract"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestOutputs_AreTheContract(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, rec.Run(func(*pulumi.Context) error {
		text := pulumi.String("text").ToStringOutput()
		c := &chain{
			Cluster:    clusters.Infra(t, func(c *cluster.Cluster) { c.GitOps.Settings = nil }),
			talos:      &talos.TalosCluster{Kubeconfig: text, Talosconfig: text, APIEndpoint: text},
			gate:       &readiness.ReadinessGate{Report: text, Spec: text},
			foundation: &secrets.SecretsFoundation{},
			handover:   &components.GitOpsHandover{Report: text, Revision: text},
		}
		mesh := c.Network.LoadBalancers.Mesh
		c.Network.LoadBalancers.Mesh = netip.Addr{}
		simple := c.outputs()
		c.Network.LoadBalancers.Mesh = mesh
		c.foundation.SealedSecretsCert = text
		c.Storage.Provider, c.GitOps.Settings = "other", map[string]string{cluster.DomainSetting: "infra.home.arpa"}
		network6, address6 := netip.MustParsePrefix("fd00::/64"), netip.MustParseAddr("fd00::1")
		c.Network.IPv6 = &cluster.IPv6{NodeCIDR: network6, PodCIDR: network6, ServiceCIDR: network6,
			LoadBalancers: &cluster.IPv6LoadBalancers{Start: address6, Stop: address6}}
		c.storage = &readiness.LaterGate{Report: text, Spec: text}
		c.checks = &readiness.LaterGate{Report: text, Spec: text}
		c.mesh = &readiness.LaterGate{Report: text, Spec: text}
		got := c.outputs()

		var names []string
		for _, want := range contract.Outputs() {
			names = append(names, want.Name)
			assert.Equal(t, !want.Optional, simple[want.Name] != nil, want.Name)
			if output, ok := got[want.Name].(pulumi.Output); ok {
				assert.Equal(t, want.Secret, pulumi.IsSecret(output), want.Name)
			} else {
				assert.False(t, want.Secret, want.Name)
			}
			_, number := got[want.Name].(pulumi.Int)
			assert.Equal(t, want.Number, number, want.Name)
		}
		assert.ElementsMatch(t, names, slices.Collect(maps.Keys(got)))
		return nil
	}))
}
