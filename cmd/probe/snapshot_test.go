package probe

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

// etcdSnapshot returns what etcd sends for a database without keys.
func etcdSnapshot() []byte {
	data := make([]byte, 64<<10)
	binary.LittleEndian.PutUint32(data[16:], 0xED0CDAED)
	sum := sha256.Sum256(data)
	return append(data, sum[:]...)
}

// snap runs the subcommand and returns the exit code, standard output and standard error.
func snap(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), append([]string{"snapshot"}, args...), strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestSnapshot_IsWrittenWithItsChecksum(t *testing.T) {
	talos := fakecluster.NewTalos(t)
	talos.Snapshot, talos.Leader = etcdSnapshot(), 1
	path := filepath.Join(t.TempDir(), "infra.db")
	code, stdout, stderr := snap(t, "--talosconfig", saved(t, "talosconfig", talos.Config), "--to", path)
	require.Equal(t, exitOpen, code, stderr)
	var file snapshot.File
	require.NoError(t, json.Unmarshal([]byte(stdout), &file))
	assert.Equal(t, path, file.Path)
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, talos.Snapshot, written)
	assert.FileExists(t, path+".sha256")
	assert.Contains(t, stderr, path+" has a snapshot of 65536 bytes")
}

func TestSnapshot_ThatIsDamagedOrMayBeOldLeavesNoFile(t *testing.T) {
	for says, given := range map[string]struct {
		snapshot []byte
		leader   uint64
	}{
		"the snapshot is damaged: ":                             {etcdSnapshot()[:60<<10], 1},
		"its etcd knows no leader, so that its data may be old": {etcdSnapshot(), 0},
	} {
		talos := fakecluster.NewTalos(t)
		talos.Snapshot, talos.Leader = given.snapshot, given.leader
		folder := t.TempDir()
		code, _, stderr := snap(t, "--talosconfig", saved(t, "talosconfig", talos.Config), "--to", filepath.Join(folder, "infra.db"))
		assert.Equal(t, exitUnhealthy, code, says)
		assert.Contains(t, stderr, says)
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		assert.Empty(t, entries, says)
	}
}
