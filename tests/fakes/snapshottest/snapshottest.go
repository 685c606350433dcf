// Package snapshottest makes snapshots of etcd for tests, as small databases without an etcd.
package snapshottest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/crypto/nacl/secretbox"
	"google.golang.org/protobuf/encoding/protowire"
)

// Change is one revision of a key; without a value, its deletion.
type Change struct {
	Key   string
	Value []byte
}

// Node is the change that creates a Node object.
func Node(name string) Change { return Change{"/registry/minions/" + name, []byte("k8s\x00node")} }

// Secret is the change that creates a Secret, encrypted as an API server of Talos does with a key.
func Secret(t testing.TB, name string, key [32]byte) Change {
	t.Helper()
	var nonce [24]byte
	_, err := rand.Read(nonce[:])
	require.NoError(t, err)
	prefix := append([]byte("k8s:enc:secretbox:v1:key2:"), nonce[:]...)
	return Change{"/registry/secrets/default/" + name, secretbox.Seal(prefix, []byte("password"), &nonce, &key)}
}

// New returns a snapshot with these changes, as etcd sends it.
func New(t testing.TB, changes ...Change) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		bucket, err := tx.CreateBucket([]byte("key"))
		if err != nil {
			return err
		}
		for i, one := range changes {
			if err := bucket.Put(one.entry(uint64(i + 2))); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, db.Close())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(data)
	return append(data, sum[:]...)
}

// entry returns the change as etcd stores it under a revision.
func (c Change) entry(number uint64) (revision, entry []byte) {
	revision = append(binary.BigEndian.AppendUint64(nil, number), '_')
	revision = binary.BigEndian.AppendUint64(revision, 0)
	entry = protowire.AppendBytes(protowire.AppendTag(entry, 1, protowire.BytesType), []byte(c.Key))
	entry = protowire.AppendVarint(protowire.AppendTag(entry, 3, protowire.VarintType), number)
	if c.Value == nil {
		return append(revision, 't'), entry
	}
	return revision, protowire.AppendBytes(protowire.AppendTag(entry, 5, protowire.BytesType), c.Value)
}
