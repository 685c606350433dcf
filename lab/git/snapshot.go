package git

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Snapshot is a commit with its files, from which artifacts and buckets are made.
type Snapshot struct {
	Commit string // SHA-1
	Time   time.Time
	Files  []File // sorted by path; symbolic links and submodules are left out
}

// File is a file of a Snapshot.
type File struct {
	Path       string // with slashes
	Executable bool
	Content    []byte
}

// Snapshot returns what the branches point to now.
func (s *Server) Snapshot(ctx context.Context) (*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tip, err := s.updateLocked(ctx)
	if err != nil {
		return nil, err
	}
	if s.newest != nil && s.newest.Commit == tip {
		return s.newest, nil
	}
	date, err := s.git(ctx, "show", "--no-patch", "--format=%cI", tip)
	if err != nil {
		return nil, err
	}
	made := &Snapshot{Commit: tip}
	if made.Time, err = time.Parse(time.RFC3339, date); err != nil {
		return nil, fmt.Errorf("git show: %w", err)
	}
	if made.Files, err = s.files(ctx, tip); err != nil {
		return nil, err
	}
	s.newest = made
	return made, nil
}

// files returns the files of a commit.
func (s *Server) files(ctx context.Context, commit string) ([]File, error) {
	var failed strings.Builder
	//nolint:gosec // a folder of the lab
	c := exec.CommandContext(ctx, "git", "-c", "safe.directory=*", "-C", s.Dir, "archive", "--format=tar", commit)
	c.Stderr = &failed
	text, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("git archive: %w: %s", err, strings.TrimSpace(failed.String()))
	}
	var files []File
	for archive := tar.NewReader(bytes.NewReader(text)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("git archive: %w", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, fmt.Errorf("git archive: %w", err)
		}
		files = append(files, File{Path: header.Name, Executable: header.Mode&0o100 != 0, Content: content})
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files, nil
}
