package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"

	"github.com/slipway-platform/slipway/lab/ca"
	"github.com/slipway-platform/slipway/lab/connect"
	"github.com/slipway-platform/slipway/lab/git"
	"github.com/slipway-platform/slipway/lab/home"
	"github.com/slipway-platform/slipway/lab/project"
	"github.com/slipway-platform/slipway/lab/stackfile"
)

// Keys of the secrets that the lab sets.
const (
	gitPassword            = "slipway:gitPassword"
	githubAppPrivateKey    = "slipway:githubAppPrivateKey" //nolint:gosec // the name of a setting
	ociConfig              = "slipway:ociConfig"
	bucketAccessKey        = "slipway:bucketAccessKey"
	bucketSecretKey        = "slipway:bucketSecretKey" //nolint:gosec // the name of a setting
	onePasswordCredentials = "slipway:onepasswordCredentials"
	onePasswordToken       = "slipway:onepasswordToken"
	storageToken           = "slipway:onepasswordStorageToken" //nolint:gosec // the name of a setting
	meshCA                 = "slipway:meshCA"
)

// ownSecrets are the keys of all secrets that the lab sets.
var ownSecrets = []string{
	gitPassword, githubAppPrivateKey, ociConfig, bucketAccessKey, bucketSecretKey, onePasswordCredentials, onePasswordToken, storageToken, meshCA,
}

// Prepare prepares the stacks of the checkout for `pulumi up` in the lab, as a user would: `pulumi stack init`, and as secrets of the stack
// those of its source, for a stack that reads from 1Password what its Connect server needs, and for one with peers the CA of their mesh.
// Pulumi writes them into a copy of the stack file. When a stack file has changed, it is copied again. notes receives a line for each
// secret of the stack files that the lab cannot use.
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
		if !slices.Contains(ownSecrets, key) {
			fmt.Fprintf(notes, "lab: %s: %s is encrypted for its owner and left out; set one for the lab with: pulumi config set --secret --stack %s %s\n",
				f.Path, key, f.Stack, key)
		}
	}
	if !c.Salted {
		if _, err := s.Output(ctx, nil, "pulumi", "stack", "select", "--non-interactive", "--create", "--stack", f.Stack); err != nil {
			return err
		}
	}
	if err := s.setSecrets(ctx, f, c.Secrets); err != nil {
		return err
	}
	return os.WriteFile(copied, c.Original, 0o600)
}

// setSecrets sets the stack's missing secrets, and removes secrets that it no longer needs: the program refuses a secret of a missing
// section.
func (s *Session) setSecrets(ctx context.Context, f stackfile.File, present []string) error {
	needed, err := s.secrets(f)
	if err != nil {
		return err
	}
	for _, key := range ownSecrets {
		value, need := needed[key]
		args := []string{"pulumi", "config", "set", "--non-interactive", "--secret", "--stack", f.Stack, key}
		switch has := slices.Contains(present, key); {
		case has == need:
			continue
		case has:
			args = []string{"pulumi", "config", "rm", "--non-interactive", "--stack", f.Stack, key}
		}
		// By standard input, because every process can read arguments.
		if _, err := s.Output(ctx, strings.NewReader(value), args...); err != nil {
			return err
		}
	}
	return nil
}

// secrets returns the values of the secrets that a stack needs, by key.
func (s *Session) secrets(f stackfile.File) (map[string]string, error) {
	values, err := s.sourceSecrets(f.GitOps)
	if err != nil {
		return nil, err
	}
	if len(f.Peers) > 0 {
		authority, err := s.meshCA()
		if err != nil {
			return nil, err
		}
		values[meshCA] = authority
	}
	if f.OnePassword == nil {
		return values, nil
	}
	needed := map[string]string{onePasswordCredentials: connect.CredentialsFile, onePasswordToken: connect.TokenFile}
	if f.StorageVault != "" {
		needed[storageToken] = connect.TokenFile
	}
	for key, name := range needed {
		text, err := os.ReadFile(filepath.Join(s.Home.OnePassword(), name))
		if err != nil {
			return nil, fmt.Errorf("1Password account: %w", err)
		}
		values[key] = string(text)
	}
	return values, nil
}

// sourceSecrets returns the values of the secrets with which Flux gets access to a stack's source. A public one needs none.
func (s *Session) sourceSecrets(source stackfile.GitOps) (map[string]string, error) {
	password := s.Settings.Secrets.GitPassword
	switch {
	case source.Public:
		return map[string]string{}, nil
	case source.OCI != nil:
		u, err := url.Parse(source.OCI.URL)
		if err != nil {
			return nil, fmt.Errorf("stack file: slipway:gitops.oci.url: %w", err)
		}
		account := map[string]string{"username": home.SourceUser, "password": password}
		login, err := json.Marshal(map[string]any{"auths": map[string]any{u.Host: account}})
		return map[string]string{ociConfig: string(login)}, err
	case source.Bucket != nil:
		return map[string]string{bucketAccessKey: home.AccessKey, bucketSecretKey: password}, nil
	case source.GitHubApp != nil:
		u, err := url.Parse(source.URL)
		if err != nil {
			return nil, fmt.Errorf("stack file: slipway:gitops.url: %w", err)
		}
		key, err := os.ReadFile(filepath.Join(s.Home.GitApp(u.Hostname()), git.AppKeyFile))
		if err != nil {
			return nil, fmt.Errorf("GitHub App: %w", err)
		}
		return map[string]string{githubAppPrivateKey: string(key)}, nil
	}
	return map[string]string{gitPassword: password}, nil
}

// meshCA returns the CA that all stacks of the lab share. The first call makes it.
func (s *Session) meshCA() (string, error) {
	text, err := os.ReadFile(s.Home.MeshCA())
	if errors.Is(err, os.ErrNotExist) {
		if text, err = ca.NewMesh(); err == nil {
			err = os.WriteFile(s.Home.MeshCA(), text, 0o600)
		}
	}
	return string(text), err
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
