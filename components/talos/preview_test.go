package talos

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestTalosCluster_PreviewRegistersTheSameResources(t *testing.T) {
	applied, previewed := up(t), answers(&mocks.Recorder{DryRun: true})
	require.NoError(t, previewed.Run(program(arguments(t), nil)))
	assert.Equal(t, applied.Names(), previewed.Names())
}
