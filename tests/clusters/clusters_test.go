package clusters

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who edits the stack files for clusters of their own does not set the variable.
func TestSamples_AreTheStackFilesOfThisRepository(t *testing.T) {
	if os.Getenv("SLIPWAY_SAMPLES") == "" {
		t.Skip("SLIPWAY_SAMPLES is not set: the stack files may be those of other clusters")
	}
	for _, path := range Samples(t) {
		sample, err := os.ReadFile(path)
		require.NoError(t, err)
		original, err := os.ReadFile(filepath.Join(Root(t), filepath.Base(path)))
		require.NoError(t, err)
		assert.Equal(t, string(original), string(sample), "make golden copies %s", filepath.Base(path))
	}
}
