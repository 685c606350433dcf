package workload

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWriteVolume_ReplacesAllFilesAtOnce(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, writeVolume(folder, 0, map[string][]byte{"ca.crt": []byte("one"), "old": []byte("x")}, 0o600))
	first, err := os.Readlink(filepath.Join(folder, "..data"))
	require.NoError(t, err)
	require.NoError(t, writeVolume(folder, 1, map[string][]byte{"ca.crt": []byte("two"), "new": []byte("y")}, 0o600))
	for name, want := range map[string]string{"ca.crt": "two", "new": "y"} {
		have, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		assert.Equal(t, want, string(have))
	}
	assert.NoFileExists(t, filepath.Join(folder, "old"))
	assert.NoDirExists(t, filepath.Join(folder, first))
	assert.Error(t, writeVolume(folder, 2, map[string][]byte{"../outside": nil}, 0o600))
}
