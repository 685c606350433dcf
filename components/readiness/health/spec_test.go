package health

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGateSpec_ComesBackAsItWasEncodedWithDefaultsFilled(t *testing.T) {
	text, err := GateSpec{Cluster: "infra", Kubeconfig: "k", Talosconfig: "t", Nodes: declared().Nodes, Cilium: &Cilium{Version: "1.18.7"}}.Encode()
	require.NoError(t, err)
	read, err := ParseGateSpec(strings.NewReader(text))
	require.NoError(t, err)
	assert.Equal(t, declared(), read)
	assert.Equal(t, DefaultTimeout, time.Duration(read.Timeout))
}

func TestGateSpec_NamesEveryProblemAtOnce(t *testing.T) {
	err := GateSpec{Timeout: -1, Nodes: []Node{
		{"a", "master", "10.25.11.11"}, {"a", Worker, "10.25.11.11"}, {"", Worker, "10.25.11.300"},
	}}.Validate()
	require.Error(t, err)
	golden(t, "gatespec-problems", err.Error()+"\n")
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
		for _, parse := range []func() error{
			func() error { _, err := ParseGateSpec(strings.NewReader(text)); return err },
			func() error { _, err := ParseHandoverSpec(strings.NewReader(text)); return err },
		} {
			err := parse()
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
	read, err := ParseHandoverSpec(strings.NewReader(text))
	require.NoError(t, err)
	assert.Equal(t, &spec, read)
}
