// Package snapshot writes snapshots of etcd to files: verified, at once complete or not there, with a checksum, and encrypted if wanted.
// And it opens such files for a restore: decrypted, verified, and compared with the cluster that they are restored to.
package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
)

// File is a snapshot that was written.
type File struct {
	Path      string `json:"path"`
	SHA256    string `json:"sha256"` // of the file, in hexadecimal; also in Path + ".sha256"
	Bytes     int64  `json:"bytes"`  // of the database
	Encrypted bool   `json:"encrypted,omitempty"`
}

// sumSuffix ends the name of the file with a snapshot's checksum.
const sumSuffix = ".sha256"

// Save reads a snapshot as etcd sends it, verifies it, and writes it to a file that only its owner can read. With recipients, age public
// keys, the file is encrypted to them. The file appears under its name only once it is complete; an existing file is not overwritten.
func Save(from io.Reader, path string, recipients []string) (File, error) {
	to, err := ParseRecipients(recipients)
	if err != nil {
		return File{}, err
	}
	if _, err := os.Lstat(path); err == nil {
		return File{}, fmt.Errorf("%s: exists already; give another name", path)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".snapshot-*")
	if err != nil {
		return File{}, err
	}
	defer os.Remove(temporary.Name()) // after the rename it does not exist
	defer temporary.Close()           // closed below; this is for errors
	file, err := write(from, temporary, to)
	if err != nil {
		return File{}, err
	}
	file.Path = path
	sum := fmt.Sprintf("%s  %s\n", file.SHA256, filepath.Base(path))
	if err := os.WriteFile(path+sumSuffix, []byte(sum), 0o600); err != nil {
		return File{}, err
	}
	return file, os.Rename(temporary.Name(), path)
}

// write writes the file and returns what is known of it.
func write(from io.Reader, to *os.File, recipients []age.Recipient) (File, error) {
	sum := sha256.New()
	var out io.WriteCloser = nopCloser{io.MultiWriter(to, sum)}
	if len(recipients) > 0 {
		encrypted, err := age.Encrypt(io.MultiWriter(to, sum), recipients...)
		if err != nil {
			return File{}, err
		}
		out = encrypted
	}
	check := newVerifier()
	if _, err := io.Copy(io.MultiWriter(out, check), from); err != nil {
		return File{}, fmt.Errorf("the snapshot was not received: %w", err)
	}
	if err := check.verify(); err != nil {
		return File{}, fmt.Errorf("the snapshot is damaged: %w", err)
	}
	if err := errors.Join(out.Close(), to.Sync(), to.Close()); err != nil {
		return File{}, err
	}
	return File{SHA256: hex.EncodeToString(sum.Sum(nil)), Bytes: check.size - sha256.Size, Encrypted: len(recipients) > 0}, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// ParseRecipients reads age public keys.
func ParseRecipients(keys []string) ([]age.Recipient, error) {
	var recipients []age.Recipient
	for _, key := range keys {
		parsed, err := age.ParseRecipients(strings.NewReader(key))
		if err != nil {
			return nil, fmt.Errorf("%q is not an age public key; write age1…", key)
		}
		recipients = append(recipients, parsed...)
	}
	return recipients, nil
}

// Parts of a bolt database, in which etcd keeps its data: the first page has a header and then this number.
const (
	pageHeader = 16
	boltMagic  = 0xED0CDAED
	sector     = 512 // the size of a database is a multiple of it
)

// verifier checks a snapshot that is written to it: a bolt database, and after it its SHA-256 checksum, which etcd adds.
type verifier struct {
	size int64
	head []byte // the first bytes
	tail []byte // the last bytes, not in sum yet
	sum  hash.Hash
}

func newVerifier() *verifier { return &verifier{sum: sha256.New()} }

// Write implements io.Writer.
func (v *verifier) Write(data []byte) (int, error) {
	v.size += int64(len(data))
	if missing := pageHeader + 4 - len(v.head); missing > 0 {
		v.head = append(v.head, data[:min(missing, len(data))]...)
	}
	v.tail = append(v.tail, data...)
	if more := len(v.tail) - sha256.Size; more > 0 {
		v.sum.Write(v.tail[:more])
		v.tail = append(v.tail[:0], v.tail[more:]...)
	}
	return len(data), nil
}

// verify returns why what was written is no complete snapshot.
func (v *verifier) verify() error {
	switch {
	case v.size%sector != sha256.Size || v.size <= sha256.Size:
		return fmt.Errorf("%d bytes are not a database and its checksum; it is incomplete", v.size)
	case binary.LittleEndian.Uint32(v.head[pageHeader:]) != boltMagic:
		return errors.New("it is not a database of etcd")
	case !bytes.Equal(v.tail, v.sum.Sum(nil)):
		return errors.New("its checksum is another one")
	}
	return nil
}

const stamp = "20060102T150405Z"

// Name returns the file name of a cluster's snapshot at a time.
func Name(cluster string, at time.Time, encrypted bool) string {
	name := cluster + "-" + at.UTC().Format(stamp) + ".db"
	if encrypted {
		name += ".age"
	}
	return name
}
