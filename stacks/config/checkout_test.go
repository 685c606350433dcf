package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheckout_OpensNothingThatMayNeverEnd(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	require.NoError(t, os.WriteFile(path("ordinary"), []byte("a: b\n"), 0o600))
	require.NoError(t, os.Symlink("ordinary", path("link")))
	require.NoError(t, os.Symlink("/dev/zero", path("device")))
	require.NoError(t, syscall.Mkfifo(path("pipe"), 0o600))
	large, err := os.Create(path("large"))
	require.NoError(t, err)
	require.NoError(t, large.Truncate(maxRead+1))
	require.NoError(t, large.Close())

	for _, name := range []string{"ordinary", "link"} {
		text, err := fs.ReadFile(Checkout(folder), name)
		require.NoError(t, err)
		assert.Equal(t, "a: b\n", string(text), name)
	}
	for name, says := range map[string]string{
		"device": "open device: is no regular file", "pipe": "open pipe: is no regular file",
		"large": "open large: has 32 MiB, and at most 32 MiB are read",
	} {
		_, err := fs.ReadFile(Checkout(folder), name)
		require.ErrorContains(t, err, says)
	}
	_, err = ReadText(path("absent"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, path("absent"))
	entries, err := fs.ReadDir(Checkout(folder), ".")
	require.NoError(t, err)
	assert.Len(t, entries, 5)
}
