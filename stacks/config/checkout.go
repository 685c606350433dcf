package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxRead is the size of the largest file that is read: manifests of CRDs have up to 10 MiB. A stack file has a limit of its own, maxFile.
const maxRead = 32 << 20

// Checkout returns the folder with the stack files and the manifests of Flux. It opens regular files of at most 32 MiB, and folders: a
// device or a pipe may never end.
func Checkout(folder string) fs.FS { return checkout{os.DirFS(folder)} }

// ReadText reads a file as Checkout does.
func ReadText(path string) ([]byte, error) {
	text, err := fs.ReadFile(Checkout(filepath.Dir(path)), filepath.Base(path))
	if fault, is := errors.AsType[*fs.PathError](err); is {
		fault.Path = path
	}
	return text, err
}

type checkout struct{ fs.FS }

// Open asks what the file is before it opens the file, because opening a pipe waits for a writer.
func (c checkout) Open(name string) (fs.File, error) {
	info, err := fs.Stat(c.FS, name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() && !info.IsDir():
		err = errors.New("is no regular file; write its text into one")
	case info.Size() > maxRead && !info.IsDir():
		err = fmt.Errorf("has %d MiB, and at most %d MiB are read; split it, or move it away", info.Size()>>20, maxRead>>20)
	default:
		return c.FS.Open(name)
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: err}
}
