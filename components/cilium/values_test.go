package cilium_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/components/cilium"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestValues_RenderWhatTheGoldenFileShows(t *testing.T) {
	tree, err := validValues().Render(cilium.Keys{
		CA:     "ca certificate",
		Server: cilium.Pair{Certificate: "server certificate", Key: "server key"},
		Relay:  cilium.Pair{Certificate: "relay certificate", Key: "relay key"},
	})
	require.NoError(t, err)
	got, err := yaml.Marshal(tree)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("testdata/values.yaml", got, 0o644))
	}
	want, err := os.ReadFile("testdata/values.yaml")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}

func TestValues_FollowTheClusterTheyAreFor(t *testing.T) {
	values := validValues()
	values.ClusterName, values.ClusterID, values.KubePrismPort = "apps", 2, 7446
	tree, err := values.Render(cilium.Keys{})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"name": "apps", "id": 2.0}, tree["cluster"])
	assert.Equal(t, 7446.0, tree["k8sServicePort"])
	assert.Equal(t, "10.244.0.0/16", tree["ipv4NativeRoutingCIDR"])
}

func TestValues_RenderNothingThatIsInvalid(t *testing.T) {
	_, err := cilium.Values{}.Render(cilium.Keys{})
	require.Error(t, err)
	for _, path := range []string{"clusterName", "clusterID", "podCIDR", "kubePrismPort"} {
		assert.ErrorContains(t, err, path)
	}
}
