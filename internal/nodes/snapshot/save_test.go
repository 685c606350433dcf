package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// database returns the bytes that etcd sends for a database of some pages.
func database(pages int) []byte {
	data := bytes.Repeat([]byte{7}, pages*4096)
	binary.LittleEndian.PutUint32(data[pageHeader:], boltMagic)
	sum := sha256.Sum256(data)
	return append(data, sum[:]...)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}

func TestSave_WritesAVerifiedSnapshotWithItsChecksum(t *testing.T) {
	path := filepath.Join(t.TempDir(), "infra.db")
	data := database(3)
	file, err := Save(iotest.OneByteReader(bytes.NewReader(data)), path, nil)
	require.NoError(t, err)
	assert.Equal(t, data, read(t, path), "as etcd's own tools read it")
	sum := sha256.Sum256(data)
	assert.Equal(t, File{Path: path, SHA256: hex.EncodeToString(sum[:]), Bytes: 3 * 4096}, file)
	assert.Equal(t, file.SHA256+"  infra.db\n", string(read(t, path+".sha256")))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it holds the cluster's Secrets")
}

func TestSave_WritesNothingOfADamagedOrInterruptedSnapshot(t *testing.T) {
	whole := database(2)
	changed := bytes.Clone(whole)
	changed[5000]++
	foreign := bytes.Clone(whole)
	foreign[pageHeader]++
	for want, from := range map[string]io.Reader{
		"it is incomplete":            bytes.NewReader(whole[:6000]),
		"its checksum is another one": bytes.NewReader(changed),
		"not a database of etcd":      bytes.NewReader(foreign),
		"0 bytes are not a database":  bytes.NewReader(nil),
		"connection reset":            io.MultiReader(bytes.NewReader(whole[:4096]), iotest.ErrReader(errors.New("connection reset"))),
	} {
		folder := t.TempDir()
		_, err := Save(from, filepath.Join(folder, "infra.db"), nil)
		require.ErrorContains(t, err, want)
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		assert.Empty(t, entries, want)
	}
}

func TestSave_KeepsAnExistingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "infra.db")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := Save(bytes.NewReader(database(1)), path, nil)
	require.ErrorContains(t, err, "exists already; give another name")
	assert.Equal(t, "mine", string(read(t, path)))
}

func TestSave_EncryptsToEveryRecipient(t *testing.T) {
	path := filepath.Join(t.TempDir(), "infra.db.age")
	one, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	two, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	data := database(2)
	file, err := Save(bytes.NewReader(data), path, []string{one.Recipient().String(), two.Recipient().String()})
	require.NoError(t, err)
	assert.True(t, file.Encrypted)
	assert.NotContains(t, string(read(t, path)), string(data[4000:4100]))
	for _, identity := range []age.Identity{one, two} {
		plain, err := age.Decrypt(bytes.NewReader(read(t, path)), identity)
		require.NoError(t, err)
		got, err := io.ReadAll(plain)
		require.NoError(t, err)
		assert.Equal(t, data, got)
	}
}

func TestSave_RefusesAWrongRecipientBeforeItReads(t *testing.T) {
	_, err := Save(iotest.ErrReader(errors.New("was read")), filepath.Join(t.TempDir(), "x"), []string{"age1nonsense"})
	require.ErrorContains(t, err, `"age1nonsense" is not an age public key`)
}

func TestPrune_KeepsTheNewestOfOneCluster(t *testing.T) {
	folder := t.TempDir()
	start := time.Date(2026, 11, 22, 19, 0, 0, 0, time.UTC)
	for i := range 4 {
		for _, cluster := range []string{"infra", "infra-2"} {
			path := filepath.Join(folder, Name(cluster, start.Add(time.Duration(i)*time.Hour), i%2 == 0))
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			require.NoError(t, os.WriteFile(path+".sha256", nil, 0o600))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "infra-by-hand.db"), nil, 0o600))
	require.NoError(t, Prune(folder, "infra", 0))
	require.NoError(t, Prune(folder, "infra", 2))
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	assert.Len(t, names, 2*2+4*2+1)
	assert.NotContains(t, names, "infra-20261122T200000Z.db")
	assert.NotContains(t, names, "infra-20261122T200000Z.db.sha256")
	assert.Contains(t, names, "infra-20261122T220000Z.db")
	assert.Contains(t, names, "infra-by-hand.db")
}
