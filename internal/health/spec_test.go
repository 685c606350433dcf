package health

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/probe"
)

func TestGateSpec_ComesBackAsItWasEncodedWithDefaultsFilled(t *testing.T) {
	text, err := GateSpec{Cluster: "infra", Kubeconfig: "k", Talosconfig: "t", Nodes: declared().Nodes, Network: declared().Network,
		Cilium: &Cilium{Version: "1.18.7", Mode: CiliumHelm, ClusterName: "infra", ClusterID: 1, Routing: "tunnel"}}.Encode()
	require.NoError(t, err)
	read := new(GateSpec)
	require.NoError(t, probe.Read(strings.NewReader(text), read))
	assert.Equal(t, declared(), read)
	assert.Equal(t, DefaultTimeout, time.Duration(read.Timeout))
}

func TestGateSpec_NamesEveryProblemAtOnce(t *testing.T) {
	err := GateSpec{
		Timeout: -1, Nodes: []Node{
			{Name: "a", Role: "master", Address: "10.25.11.11"}, {Name: "a", Role: Worker, Address: "10.25.11.11"},
			{Name: "", Role: Worker, Address: "10.25.11.300", Address6: "10.25.11.13"}, {Name: "d", Role: Worker, Address: "10.25.11.14", Address6: "fd00::1"},
		},
		Others:   []Node{{Name: "d", Role: ControlPlane, Address: "10.25.11.14", Address6: "fd00::1"}},
		Services: []string{""},
		Network:  &Network{PodCIDRs: []string{"10.244.0.1/16", "10.0.0.0/8"}, ServiceCIDRs: []string{"x"}},
		Cilium:   &Cilium{Mode: "kubectl", Routing: "bgp", ClusterID: 256},
	}.Validate()
	require.Error(t, err)
	golden(t, "gatespec-problems", err.Error()+"\n")
}

func TestGateSpec_IsPublishedWithoutItsCredentials(t *testing.T) {
	spec := declared()
	spec.Kubeconfig, spec.Talosconfig = "SECRET", "SECRET"
	text, err := spec.Public()
	require.NoError(t, err)
	assert.NotContains(t, text, "SECRET")
	assert.NotContains(t, text, "config\"")
	read, err := ReadGateSpec(strings.NewReader(text))
	require.NoError(t, err)
	read.Kubeconfig, read.Talosconfig = "SECRET", "SECRET"
	assert.Equal(t, spec, read)

	spec.Nodes = nil
	_, err = spec.Public()
	assert.ErrorContains(t, err, "nodes: is empty")
}

func TestParseSpec_RefusesWhatItDoesNotKnowAndQuotesNoSecret(t *testing.T) {
	for name, text := range map[string]string{
		"unknown key":     `{"kubeconfigs":"SECRET"}`,
		"wrong type":      `{"kubeconfig":["SECRET"]}`,
		"no JSON":         `SECRET`,
		"half an object":  `{"kubeconfig":"SECRET"`,
		"nothing":         ``,
		"bad duration":    `{"kubeconfig":"SECRET","timeout":"soon"}`,
		"two objects":     `{"kubeconfig":"SECRET"} {"kubeconfig":"SECRET"}`,
		"trailing spoils": `{"kubeconfig":"SECRET"} SECRET`,
	} {
		for _, spec := range []probe.Spec{new(GateSpec), new(HandoverSpec), new(WorkloadsSpec)} {
			err := probe.Read(strings.NewReader(text), spec)
			require.Error(t, err, name)
			assert.NotContains(t, err.Error(), "SECRET", name)
		}
	}
}

func TestHandoverSpec_RefusesAURLWithAPasswordWithoutQuotingIt(t *testing.T) {
	err := HandoverSpec{Cluster: "infra", Kubeconfig: "k", URL: "https://flux:hunter2@git.home.arpa/x.git"}.Validate()
	require.ErrorContains(t, err, "holds a password")
	assert.NotContains(t, err.Error(), "hunter2")
}

func TestHandoverSpec_ComesBackAsItWasEncodedWithDefaultsFilled(t *testing.T) {
	spec := *handoverSpec()
	text, err := HandoverSpec{Cluster: spec.Cluster, Kubeconfig: spec.Kubeconfig, URL: spec.URL, Ref: spec.Ref, Path: spec.Path}.Encode()
	require.NoError(t, err)
	read := new(HandoverSpec)
	require.NoError(t, probe.Read(strings.NewReader(text), read))
	assert.Equal(t, &spec, read)
}
