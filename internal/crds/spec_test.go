package crds

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/probe"
)

func valid() Spec {
	return Spec{Target: probe.Target{Cluster: "infra", Kubeconfig: "kind: Config"}, Sources: []Source{
		{Name: "Gateway API", Version: "v1.3.0", URL: "https://example.com/a.yaml", SHA256: strings.Repeat("a", 64)},
	}}
}

func TestSpec_IsReadAsItWasWritten(t *testing.T) {
	want := valid()
	text, err := probe.Encode(&want)
	require.NoError(t, err)
	var read Spec
	require.NoError(t, probe.Read(strings.NewReader(text), &read))
	want.Timeout = probe.Duration(DefaultTimeout)
	assert.Equal(t, want, read)
}

func TestSpec_NamesEveryProblemAtOnce(t *testing.T) {
	spec := Spec{Target: probe.Target{Kubeconfig: "client-key-data: c2VjcmV0", Timeout: probe.Duration(-time.Second)}, Sources: []Source{
		{Name: "a", Version: "v1", URL: "http://example.com/a.yaml"},
		{Name: "a", Version: "v1", URL: "https://user:password@example.com/a.yaml", SHA256: "ABC"},
		{},
	}}
	err := spec.Validate()
	for _, want := range []string{
		"cluster: is empty", "timeout: -1s is negative", `sources[a].url: "http://example.com/a.yaml" is not an https URL`,
		"sources[a].name: is given twice",
		`sources[a].sha256: "ABC" is not 64 hexadecimal digits`, "sources[2].name: is empty", "sources[2].version: is empty",
	} {
		require.ErrorContains(t, err, want)
	}
	assert.NotContains(t, err.Error(), "c2VjcmV0")
	require.ErrorContains(t, ValidateSources(nil), "sources: are empty")
}
