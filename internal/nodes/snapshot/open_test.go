package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/fakes/snapshottest"
)

func put(t *testing.T, data []byte, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func TestOpen_ReadsWhatSaveHasWritten(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	data := snapshottest.New(t, snapshottest.Node("infra-cp-1"))
	for name, recipients := range map[string][]string{"infra.db": nil, "infra.db.age": {identity.Recipient().String()}} {
		path := filepath.Join(t.TempDir(), name)
		saved, err := Save(bytes.NewReader(data), path, recipients)
		require.NoError(t, err)
		opened, err := Open(path, identity.String())
		require.NoError(t, err)
		contents, err := opened.Contents()
		require.NoError(t, err)
		assert.Equal(t, []string{"infra-cp-1"}, contents.Nodes)
		got, err := io.ReadAll(opened.Reader())
		require.NoError(t, err)
		assert.Equal(t, data, got, "after the database was read")
		assert.Equal(t, saved.Bytes, opened.Bytes)
		require.NoError(t, opened.Close())
	}
}

func TestOpen_LeavesNothingDecryptedBehind(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "infra.db.age")
	_, err = Save(bytes.NewReader(snapshottest.New(t)), path, []string{identity.Recipient().String()})
	require.NoError(t, err)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	opened, err := Open(path, identity.String())
	require.NoError(t, err)
	defer opened.Close()
	entries, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, entries, "even while it is open")
}

func TestOpen_RefusesWhatCannotBeRestored(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	other, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	data := snapshottest.New(t)
	changed := bytes.Clone(data)
	changed[5000]++
	var sealed bytes.Buffer
	to, err := age.Encrypt(&sealed, identity.Recipient())
	require.NoError(t, err)
	_, err = to.Write(data)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	cut := sealed.Bytes()[:sealed.Len()-100]
	for want, one := range map[string]struct {
		data []byte
		key  string
	}{
		"it is encrypted, and there is no identity":           {sealed.Bytes(), ""},
		"encrypted to other identities":                       {sealed.Bytes(), other.String()},
		"the identity of age cannot be read":                  {sealed.Bytes(), "AGE-SECRET-KEY-1NONSENSE"},
		"it is damaged: its checksum is another one":          {changed, ""},
		"it is damaged: 0 bytes are not a database":           {nil, ""},
		"are not a database and its checksum; it is incomple": {data[:len(data)-32], ""},
		"it is damaged: failed to decrypt":                    {cut, identity.String()},
	} {
		_, err := Open(put(t, one.data, "x.db"), one.key)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "NONSENSE")
	}
	path := put(t, data, "x.db")
	require.NoError(t, os.WriteFile(path+".sha256", []byte("00  x.db\n"), 0o600))
	_, err = Open(path, "")
	require.ErrorContains(t, err, "its checksum is not the one in x.db.sha256")
	require.ErrorContains(t, CheckSum(path), "its checksum is not the one in x.db.sha256")
	_, err = Open(filepath.Join(t.TempDir(), "missing.db"), "")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestContents_TellsTheClusterByItsNodesAndItsSecrets(t *testing.T) {
	own, foreign := [32]byte{1}, [32]byte{2}
	opened, err := Open(put(t, snapshottest.New(t,
		snapshottest.Node("infra-cp-1"),
		snapshottest.Node("infra-old-1"),
		snapshottest.Secret(t, "x", own),
		snapshottest.Change{Key: "/registry/secrets/default/plain", Value: []byte("k8s\x00plain")},
		snapshottest.Change{Key: "/registry/configmaps/default/x", Value: []byte("value")},
		snapshottest.Change{Key: "/registry/minions/infra-old-1"},
	), "x.db"), "")
	require.NoError(t, err)
	defer opened.Close()
	contents, err := opened.Contents()
	require.NoError(t, err)
	assert.Equal(t, []string{"infra-cp-1"}, contents.Nodes, "a deleted node is none")
	require.Len(t, contents.Secrets, 1)
	require.NoError(t, contents.Names([]string{"infra-cp-1", "infra-cp-2"}))
	require.EqualError(t, contents.Names([]string{"apps-cp-1"}), "it is of another cluster: its nodes are infra-cp-1")
	base64 := base64.StdEncoding.EncodeToString
	require.NoError(t, contents.Readable(base64(own[:])))
	require.ErrorContains(t, contents.Readable(base64(foreign[:])), "cannot be read with the machine secrets of this stack")
	require.ErrorContains(t, contents.Readable("nonsense"), "have no key for Secrets")
	require.NoError(t, Contents{}.Names(nil), "an empty cluster is not known to be another one")
	require.NoError(t, Contents{}.Readable(base64(own[:])))
}

func TestContents_RefusesADatabaseThatIsNotOfEtcd(t *testing.T) {
	opened, err := Open(put(t, database(3), "x.db"), "")
	require.NoError(t, err)
	defer opened.Close()
	_, err = opened.Contents()
	require.ErrorContains(t, err, "it is not a database of etcd")
}

func TestFolder_IsThatOfTheUser(t *testing.T) {
	t.Setenv("HOME", "/home/someone")
	for value, want := range map[string]string{
		"": "/home/someone/.local/state/slipway/x", "relative": "/home/someone/.local/state/slipway/x", "/var/state": "/var/state/slipway/x",
	} {
		t.Setenv("XDG_STATE_HOME", value)
		folder, err := Folder("x")
		require.NoError(t, err)
		assert.Equal(t, want, folder)
	}
	t.Setenv("XDG_STATE_HOME", "/var/state")
	path, err := Path("x", "infra.db")
	require.NoError(t, err)
	assert.Equal(t, "/var/state/slipway/x/infra.db", path)
	path, err = Path("x", "/backup/infra.db")
	require.NoError(t, err)
	assert.Equal(t, "/backup/infra.db", path)
}

func TestList_OfAMissingFolderIsEmpty(t *testing.T) {
	names, err := List(filepath.Join(t.TempDir(), "none"), "infra")
	require.NoError(t, err)
	assert.Empty(t, names)
}

// The checksum of a survivor's database is computed here, and says nothing about a file that was received in part or read from a bad disk.
func TestContents_RefusesADamagedDatabaseWithARightChecksum(t *testing.T) {
	var changes []snapshottest.Change
	for i := range 2000 {
		changes = append(changes, snapshottest.Node(fmt.Sprint("infra-", i)))
	}
	whole := snapshottest.New(t, changes...)
	whole = whole[:len(whole)-sha256.Size]
	page := os.Getpagesize()
	filled := func(with byte) []byte {
		return slices.Concat(whole[:4*page], bytes.Repeat([]byte{with}, len(whole)-4*page))
	}
	for name, data := range map[string][]byte{
		"cut off": whole[:len(whole)/2/page*page], "almost nothing": whole[:4*page], "zeros": filled(0), "ones": filled(0xff),
	} {
		sum := sha256.Sum256(data)
		opened, err := Open(put(t, slices.Concat(data, sum[:]), "x.db"), "")
		require.NoError(t, err, name)
		_, err = opened.Contents()
		require.ErrorContains(t, err, "it is damaged", name)
		require.NoError(t, opened.Close())
	}
}
