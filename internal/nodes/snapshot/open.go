package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/bucket"
)

// Opened is a snapshot that was read from a file, decrypted and verified. Close it.
type Opened struct {
	Bytes int64 // of the database, without etcd's checksum

	file *os.File // what EtcdRecover takes
}

// ErrNoIdentity means that a snapshot is encrypted, and that there is no identity to decrypt it with.
var ErrNoIdentity = errors.New("it is encrypted, and there is no identity of age to decrypt it with")

// encrypted is how a file begins that age has encrypted.
const encrypted = "age-encryption.org/"

// Open opens the file of a snapshot and verifies it: the checksum in the file beside it, if there is one, and the one that etcd has added.
// identities are private keys of age, a line each, which are needed for an encrypted file; "" means none. Its errors hold nothing of them.
//
// A decrypted snapshot is in a temporary file without a name, so that it is gone with the process.
func Open(path, identities string) (*Opened, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := checkSum(path, file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	opened, err := open(file, identities)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return opened, nil
}

// OpenObject opens a snapshot that is an object of a bucket, as Open opens a file. It is in a temporary file without a name, too.
func OpenObject(ctx context.Context, from *cluster.S3Bucket, key, identities string) (*Opened, error) {
	file, err := unnamedFile()
	if err != nil {
		return nil, err
	}
	if err = bucket.Get(ctx, from, key, file); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	opened, err := open(file, identities)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return opened, nil
}

// Close frees the snapshot.
func (o *Opened) Close() error { return o.file.Close() }

// Reader returns a reader of the whole snapshot, as etcd sent it.
func (o *Opened) Reader() io.Reader { return io.NewSectionReader(o.file, 0, o.Bytes+sha256.Size) }

func open(file *os.File, identities string) (*Opened, error) {
	from := bufio.NewReader(file)
	begins, err := from.Peek(len(encrypted))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if string(begins) != encrypted {
		return verified(from, io.Discard, file)
	}
	if identities == "" {
		return nil, ErrNoIdentity
	}
	plain, err := decrypt(from, identities)
	if err != nil {
		return nil, err
	}
	unnamed, err := unnamedFile()
	if err != nil {
		return nil, err
	}
	opened, err := verified(plain, unnamed, unnamed)
	if err != nil {
		return nil, errors.Join(err, unnamed.Close())
	}
	return opened, file.Close()
}

// verified copies a snapshot, and returns it if it is complete. file has it then.
func verified(from io.Reader, to io.Writer, file *os.File) (*Opened, error) {
	check := newVerifier()
	if _, err := io.Copy(io.MultiWriter(to, check), from); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if err := check.verify(); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	return &Opened{Bytes: check.size - sha256.Size, file: file}, nil
}

func decrypt(from io.Reader, identities string) (io.Reader, error) {
	keys, err := age.ParseIdentities(strings.NewReader(identities))
	if err != nil {
		return nil, errors.New("the identity of age cannot be read") // the cause may quote it
	}
	plain, err := age.Decrypt(from, keys...)
	if errors.As(err, new(*age.NoIdentityMatchError)) {
		return nil, errors.New("it is encrypted to other identities of age than the given one")
	}
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	return plain, nil
}

// unnamedFile returns a temporary file that nobody else can open.
func unnamedFile() (*os.File, error) {
	file, err := os.CreateTemp("", ".snapshot-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// CheckSum verifies the checksum in the file beside a snapshot, if there is one.
func CheckSum(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(checkSum(path, file), file.Close())
}

func checkSum(path string, file io.ReadSeeker) error {
	text, err := os.ReadFile(path + sumSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
	declared, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte(" "))
	if string(declared) != hex.EncodeToString(sum.Sum(nil)) {
		return fmt.Errorf("it is damaged: its checksum is not the one in %s", filepath.Base(path)+sumSuffix)
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}
