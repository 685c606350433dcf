package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-platform/slipway/lab/stackfile"
)

// Prepare prepares the stacks of the checkout for `pulumi up` in the lab, as a user would: `pulumi stack init`, and the
// Git password as a secret of the stack. Pulumi writes both into the stack file, so inside the lab a copy is mounted
// over it. When a stack file has changed, it is copied again.
func (s *Session) Prepare(ctx context.Context) ([]stackfile.File, error) {
	files, err := stackfile.Find(s.Settings.Checkout)
	if err != nil {
		return nil, err
	}
	release, err := s.Home.Exclusive() // another command may be entering the lab
	if err != nil {
		return nil, err
	}
	defer release()
	for _, f := range files {
		if err := s.prepare(ctx, f); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (s *Session) prepare(ctx context.Context, f stackfile.File) error {
	original, err := os.ReadFile(f.Path)
	if err != nil {
		return fmt.Errorf("stack file: %w", err)
	}
	copied := filepath.Join(s.Home.Stacks(), filepath.Base(f.Path))
	source := copied + ".source"
	before, err := os.ReadFile(source)
	fresh := errors.Is(err, os.ErrNotExist)
	switch {
	case err != nil && !fresh:
		return fmt.Errorf("stack file: %w", err)
	case !fresh && string(before) == string(original):
		return nil
	}
	salt := ""
	if !fresh {
		if salt, err = saltOf(copied); err != nil {
			return err
		}
	}
	// The file is overwritten and not replaced: the copy is mounted over the original, and a mount refers to the file,
	// not to its name.
	if err := os.WriteFile(copied, append([]byte(salt), original...), 0o600); err != nil {
		return fmt.Errorf("stack file: %w", err)
	}
	if fresh {
		if _, err := s.Output(ctx, nil, "pulumi", "stack", "select", "--non-interactive", "--create", "--stack", f.Stack); err != nil {
			return err
		}
	}
	password := strings.NewReader(s.Settings.Secrets.GitPassword) // by standard input, because every process can read arguments
	if _, err := s.Output(ctx, password, "pulumi", "config", "set", "--non-interactive", "--secret", "--stack", f.Stack, "slipway:gitPassword"); err != nil {
		return err
	}
	return os.WriteFile(source, original, 0o600)
}

// saltOf returns the line with the salt of the stack's secrets, or nothing.
func saltOf(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("stack file: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "encryptionsalt:") {
			return line, nil
		}
	}
	return "", nil
}
