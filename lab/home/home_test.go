package home

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpen_KeepsTheSecretsOfALabThatExists(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	_, first, err := Open(dir, "/project", "talos-1.12")
	require.NoError(t, err)
	require.Regexp(t, `^slipway@pve!pulumi=[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`, first.Secrets.ProxmoxToken)
	_, second, err := Open(dir, "/elsewhere", "")
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Equal(t, "talos-1.12", second.Talos)
	info, err := os.Stat(filepath.Join(dir, "lab.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestHome_IsRunningExactlyWhileTheLockIsHeld(t *testing.T) {
	h, _, err := Open(filepath.Join(t.TempDir(), "lab"), "/project", "")
	require.NoError(t, err)
	running := func() bool {
		r, err := h.Running()
		require.NoError(t, err)
		return r
	}
	require.False(t, running())
	lock, err := h.Lock()
	require.NoError(t, err)
	require.True(t, running())
	_, err = h.Lock()
	require.ErrorContains(t, err, "already running")
	require.ErrorContains(t, h.Remove(), "still running")
	require.NoError(t, lock.Close())
	require.False(t, running())
	_, err = h.PID()
	require.ErrorContains(t, err, "not running")
	require.NoError(t, h.Remove())
}

func TestNameOf_DiffersForCheckoutsOfTheSameName(t *testing.T) {
	require.Regexp(t, `^slipway-[0-9a-f]{6}$`, NameOf("/a/slipway"))
	require.Equal(t, NameOf("/a/slipway"), NameOf("/a/slipway"))
	require.NotEqual(t, NameOf("/a/slipway"), NameOf("/b/slipway"))
}
