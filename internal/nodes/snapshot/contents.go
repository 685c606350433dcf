package snapshot

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/crypto/nacl/secretbox"
	"google.golang.org/protobuf/encoding/protowire"
)

// Contents is what a snapshot tells about its cluster.
type Contents struct {
	Nodes   []string // names of the Node objects, sorted
	Secrets [][]byte // values of Secrets as Talos's API servers encrypt them, at most maxSecrets
}

// Where the API server keeps objects in etcd, and how the value of a Secret begins that it has encrypted with Talos's key for Secrets.
const (
	nodePrefix   = "/registry/minions/"
	secretPrefix = "/registry/secrets/"
	sealed       = "k8s:enc:secretbox:v1:"
	maxSecrets   = 100
)

// Contents reads the objects of the snapshot.
func (o *Opened) Contents() (Contents, error) {
	db, err := o.database()
	if err != nil {
		return Contents{}, fmt.Errorf("it is not a database of etcd: %w", err)
	}
	defer db.Close()
	nodes := map[string]bool{}
	var contents Contents
	// bbolt trusts the pages of a file. Of a damaged one, it reads memory behind the file, which ends the program, or it panics.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	err = db.View(func(tx *bolt.Tx) (err error) {
		defer func() {
			if fault := recover(); fault != nil {
				err = fmt.Errorf("it is damaged: %v", fault)
			}
		}()
		if tx.Size() > o.Bytes {
			return fmt.Errorf("it is damaged: %d bytes are not all of a database of %d bytes", o.Bytes, tx.Size())
		}
		revisions := tx.Bucket([]byte("key"))
		if revisions == nil {
			return errors.New("it is not a database of etcd: it has no keys")
		}
		return revisions.ForEach(func(revision, entry []byte) error { // in the order of the revisions
			key, value, err := keyValue(entry)
			if err != nil {
				return fmt.Errorf("it is not a database of etcd: %w", err)
			}
			name, isNode := strings.CutPrefix(key, nodePrefix)
			switch {
			case isNode:
				nodes[name] = !isTombstone(revision)
			case strings.HasPrefix(key, secretPrefix) && len(contents.Secrets) < maxSecrets && bytes.HasPrefix(value, []byte(sealed)):
				contents.Secrets = append(contents.Secrets, bytes.Clone(value))
			}
			return nil
		})
	})
	for name, exists := range nodes {
		if exists {
			contents.Nodes = append(contents.Nodes, name)
		}
	}
	slices.Sort(contents.Nodes)
	return contents, err
}

// database opens the database. Another handle of the file is needed, because the database closes it.
func (o *Opened) database() (*bolt.DB, error) {
	return bolt.Open(o.file.Name(), 0, &bolt.Options{ReadOnly: true, OpenFile: func(name string, _ int, _ os.FileMode) (*os.File, error) {
		handle, err := syscall.Dup(int(o.file.Fd()))
		return os.NewFile(uintptr(handle), name), err
	}})
}

// isTombstone reports whether a revision deletes its key: a main and a sub revision, of eight bytes each with a line between them, and then
// a t.
func isTombstone(revision []byte) bool { return len(revision) == 18 && revision[17] == 't' }

// keyValue returns the key and the value of an entry, which is a message mvccpb.KeyValue.
func keyValue(entry []byte) (key string, value []byte, err error) {
	for len(entry) > 0 {
		number, kind, n := protowire.ConsumeTag(entry)
		if n < 0 {
			return "", nil, protowire.ParseError(n)
		}
		entry = entry[n:]
		if n = protowire.ConsumeFieldValue(number, kind, entry); n < 0 {
			return "", nil, protowire.ParseError(n)
		}
		if kind == protowire.BytesType {
			text, _ := protowire.ConsumeBytes(entry)
			switch number {
			case 1:
				key = string(text)
			case 5:
				value = text
			}
		}
		entry = entry[n:]
	}
	return key, value, nil
}

// Names returns an error if the snapshot has Node objects, and none of them is one of these nodes.
func (c Contents) Names(nodes []string) error {
	if len(c.Nodes) == 0 || slices.ContainsFunc(c.Nodes, func(name string) bool { return slices.Contains(nodes, name) }) {
		return nil
	}
	return fmt.Errorf("it is of another cluster: its nodes are %s", strings.Join(c.Nodes, ", "))
}

// Readable returns an error if none of the snapshot's Secrets can be read with a key for Secrets: secretboxEncryptionSecret of Talos's
// machine secrets, in base64. An API server with other machine secrets could read no Secret.
func (c Contents) Readable(key string) error {
	decoded, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(decoded) != 32 {
		return errors.New("the machine secrets have no key for Secrets that can be read")
	}
	if len(c.Secrets) == 0 || slices.ContainsFunc(c.Secrets, func(value []byte) bool { return opens(value, [32]byte(decoded)) }) {
		return nil
	}
	return errors.New("it is of another cluster: its Secrets cannot be read with the machine secrets of this stack")
}

// opens reports whether a key decrypts a value, which is a prefix with the key's name, a nonce and the rest.
func opens(value []byte, key [32]byte) bool {
	const nonceSize = 24
	_, rest, _ := bytes.Cut(value[len(sealed):], []byte(":"))
	if len(rest) < nonceSize {
		return false
	}
	_, ok := secretbox.Open(nil, rest[nonceSize:], (*[nonceSize]byte)(rest), &key)
	return ok
}
