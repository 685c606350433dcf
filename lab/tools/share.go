package tools

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// shared is the size from which a file is shared, in bytes.
const shared = 1 << 20

// share replaces files below data with hard links to equal files of the same path that another composed tool in the cache has: a third of
// what the real Talos of one release consists of is also that of the others. It returns the bytes that this saves.
func share(cache, data string) (saved int64, err error) {
	err = filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() < shared {
			return err
		}
		name, err := filepath.Rel(data, path)
		if err != nil {
			return err
		}
		others, err := filepath.Glob(filepath.Join(cache, "tools", "*", "*", dataFolder, name))
		if err != nil {
			return err
		}
		for _, other := range others {
			if same, err := equal(path, other); err != nil || !same {
				continue // it may have been removed meanwhile
			}
			if os.Link(other, path+".link") != nil {
				continue // not on this file system
			}
			saved += info.Size()
			return os.Rename(path+".link", path)
		}
		return nil
	})
	return saved, err
}

// equal reports whether two files have the same contents.
func equal(one, other string) (same bool, err error) {
	a, err := os.Open(one)
	if err != nil {
		return false, err
	}
	defer a.Close()
	b, err := os.Open(other)
	if err != nil {
		return false, err
	}
	defer b.Close()
	if sameSize, err := equalSize(a, b); err != nil || !sameSize {
		return false, err
	}
	left, right := make([]byte, shared), make([]byte, shared)
	for {
		n, errA := io.ReadFull(a, left)
		m, errB := io.ReadFull(b, right)
		if !bytes.Equal(left[:n], right[:m]) {
			return false, nil
		}
		if ended(errA) && ended(errB) {
			return true, nil
		}
		if err := errors.Join(errA, errB); err != nil {
			return false, err
		}
	}
}

func equalSize(a, b *os.File) (bool, error) {
	left, errA := a.Stat()
	right, errB := b.Stat()
	if err := errors.Join(errA, errB); err != nil {
		return false, err
	}
	return left.Size() == right.Size(), nil
}

func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
