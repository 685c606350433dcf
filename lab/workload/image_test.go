package workload

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestImage_LeavesOutArgumentsOfNewerImages(t *testing.T) {
	image := Image{Unknown: []string{"--cache-ttl", "--default"}}
	require.Equal(t, []string{"mesh", "--name=infra", "--default-qps=5"},
		image.command([]string{"mesh", "--cache-ttl=0s", "--name=$(NAME)", "--default", "--default-qps=5"}, map[string]string{"NAME": "infra"}))
}
