package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"

	"github.com/slipway-platform/slipway/lab/project"
	"github.com/slipway-platform/slipway/lab/stackfile"
)

// gitPassword is the key of the one secret that every stack has in a lab.
const gitPassword = "slipway:gitPassword"

// Prepare prepares the stacks of the checkout for `pulumi up` in the lab, as a user would: `pulumi stack init`, and the
// Git password as a secret of the stack. Pulumi writes both into a copy of the stack file. When a stack file has
// changed, it is copied again. notes receives a line for each secret of the stack files that the lab cannot use.
func (s *Session) Prepare(ctx context.Context, notes io.Writer) ([]stackfile.File, error) {
	files, err := stackfile.Find(s.Settings.Checkout)
	if err != nil {
		return nil, err
	}
	release, err := s.Home.Exclusive() // another command may be entering the lab
	if err != nil {
		return nil, err
	}
	defer release()
	if err := project.WriteFile(s.Home.Project(), s.Settings.Checkout); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := s.prepare(ctx, f, notes); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (s *Session) prepare(ctx context.Context, f stackfile.File, notes io.Writer) error {
	original, err := os.ReadFile(f.Path)
	if err != nil {
		return fmt.Errorf("stack file: %w", err)
	}
	copied := filepath.Join(s.Home.Copied(), filepath.Base(f.Path))
	before, err := os.ReadFile(copied)
	switch {
	case err == nil && bytes.Equal(before, original):
		return nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("stack file: %w", err)
	}
	c, err := project.CopyStack(s.Home.Project(), f.Path)
	if err != nil {
		return err
	}
	for _, key := range c.LeftOut {
		if key != gitPassword {
			fmt.Fprintf(notes, "lab: %s: %s is encrypted for its owner and left out; set one for the lab with: pulumi config set --secret --stack %s %s\n",
				f.Path, key, f.Stack, key)
		}
	}
	if !c.Salted {
		if _, err := s.Output(ctx, nil, "pulumi", "stack", "select", "--non-interactive", "--create", "--stack", f.Stack); err != nil {
			return err
		}
	}
	// A stack with an ssh URL has an identity, and a public repository needs nothing.
	if byPassword := strings.HasPrefix(f.GitOps.URL, "https://") && !f.GitOps.Public; byPassword && !slices.Contains(c.Secrets, gitPassword) {
		password := strings.NewReader(s.Settings.Secrets.GitPassword) // by standard input, because every process can read arguments
		if _, err := s.Output(ctx, password, "pulumi", "config", "set", "--non-interactive", "--secret", "--stack", f.Stack, gitPassword); err != nil {
			return err
		}
	}
	return os.WriteFile(copied, c.Original, 0o600)
}

// Follow prepares the stacks again whenever a file in the checkout's folder changes, until ctx ends. problems receives
// the errors: a file that is being edited may be wrong for a while.
func (s *Session) Follow(ctx context.Context, problems io.Writer) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("lab: watch the stack files: %w", err)
	}
	defer watcher.Close()
	// The folder and not its files: many editors save to a new file and rename it.
	if err := watcher.Add(s.Settings.Checkout); err != nil {
		return fmt.Errorf("lab: watch the stack files: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-watcher.Events:
			if !isStackFile(event.Name) || event.Has(fsnotify.Remove) {
				continue
			}
			if _, err := s.Prepare(ctx, problems); err != nil && ctx.Err() == nil {
				fmt.Fprintf(problems, "lab: %v\n", err)
			}
		case err := <-watcher.Errors:
			return fmt.Errorf("lab: watch the stack files: %w", err)
		}
	}
}

func isStackFile(path string) bool {
	match, _ := filepath.Match("Pulumi.*.yaml", filepath.Base(path)) // the pattern is valid
	return match
}
