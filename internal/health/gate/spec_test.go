package gate

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/golden"
)

func TestSpec_ComesBackAsItWasEncodedWithDefaultsSet(t *testing.T) {
	text, err := probe.Encode(&Spec{
		Target: health.Target{Cluster: "infra", Kubeconfig: "k"}, Talosconfig: "t", Nodes: declared().Nodes, Network: declared().Network,
		Cilium: &Cilium{Version: "1.18.7", Mode: cluster.CiliumHelm, ClusterName: "infra", ClusterID: 1, Routing: "tunnel"},
	})
	require.NoError(t, err)
	read := new(Spec)
	require.NoError(t, probe.Read(strings.NewReader(text), read))
	assert.Equal(t, declared(), read)
	assert.Equal(t, probe.Duration(health.DefaultTimeout), read.Timeout)
}

func TestSpec_NamesEveryProblemAtOnce(t *testing.T) {
	spec := &Spec{
		Target: health.Target{Timeout: -1}, Nodes: []Machine{
			{Name: "a", Role: "master", Address: ip("10.25.11.11")}, {Name: "a", Role: cluster.Worker, Address: ip("10.25.11.11")},
			{Name: "", Role: cluster.Worker, Address6: ip("10.25.11.13")},
			{Name: "d", Role: cluster.Worker, Address: ip("10.25.11.14"), Address6: ip("fd00::1")},
		},
		Others:   []Machine{{Name: "d", Role: cluster.ControlPlane, Address: ip("10.25.11.14"), Address6: ip("fd00::1")}},
		Services: []string{""},
		Network:  &Network{PodCIDRs: cidrs("10.244.0.1/16", "10.0.0.0/8"), ServiceCIDRs: make([]netip.Prefix, 1)},
		Cilium:   &Cilium{Mode: "kubectl", Routing: "bgp", ClusterID: 256},
	}
	require.Error(t, spec.Validate())
	golden.File(t, "testdata/spec-problems.txt", spec.Validate().Error()+"\n")
}

func TestSpec_IsPublishedWithoutItsCredentials(t *testing.T) {
	spec := declared()
	spec.Kubeconfig, spec.Talosconfig = "SECRET", "SECRET"
	text, err := health.Public(spec)
	require.NoError(t, err)
	assert.NotContains(t, text, "SECRET")
	assert.NotContains(t, text, "config\"")
	read := new(Spec)
	require.NoError(t, probe.Decode(strings.NewReader(text), read))
	read.Kubeconfig, read.Talosconfig = "SECRET", "SECRET"
	assert.Equal(t, spec, read)

	spec.Nodes = nil
	_, err = health.Public(spec)
	assert.ErrorContains(t, err, "nodes: is empty")
}
