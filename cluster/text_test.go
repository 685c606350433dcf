package cluster_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
)

// Kustomize drops quotes before a setting is put in its place.
func TestChecksum_IsTextToYAML(t *testing.T) {
	for i := range 20000 {
		var value any
		require.NoError(t, yaml.Unmarshal([]byte(cluster.Checksum(strconv.Itoa(i))), &value))
		require.IsType(t, "", value, "the checksum of %d", i)
	}
}
