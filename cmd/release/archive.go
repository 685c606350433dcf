package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name, source string
	mode         int64
}

// writeArchive writes files into a tar.gz. Of a file, only the content counts: times, owners and modes are those given.
func writeArchive(path string, at time.Time, entries []entry) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	packed := gzip.NewWriter(file)
	archive := tar.NewWriter(packed)
	for _, one := range entries {
		content, err := os.ReadFile(one.source)
		if err != nil {
			return err
		}
		header := &tar.Header{
			Name: one.name, Mode: one.mode, Size: int64(len(content)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatPAX,
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), packed.Close())
}

// checksums is the file with the SHA-256 of all others, as sha256sum -c reads it.
const checksums = "checksums.txt"

func writeChecksums(folder string) error {
	files, err := os.ReadDir(folder) // sorted by name
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, one := range files {
		sum, err := checksum(filepath.Join(folder, one.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sum, one.Name())
	}
	return os.WriteFile(filepath.Join(folder, checksums), []byte(lines.String()), 0o644)
}

func checksum(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	return hash.Sum(nil), err
}
