package git

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/fault"
)

const path = "/platform/slipway.git"

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.test", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.test")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

func commit(t *testing.T, dir, content string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte(content), 0o600))
	run(t, dir, "add", "file")
	run(t, dir, "commit", "--quiet", "-m", content)
	return run(t, dir, "rev-parse", "HEAD")
}

func serve(t *testing.T) (checkout, remote string, faults *fault.Set) {
	t.Helper()
	checkout = t.TempDir()
	run(t, checkout, "init", "--quiet", "--initial-branch=work")
	remote, faults = serveCheckout(t, checkout)
	return checkout, remote, faults
}

func serveCheckout(t *testing.T, checkout string) (remote string, faults *fault.Set) {
	t.Helper()
	faults = &fault.Set{}
	s := &Server{Checkout: checkout, Dir: filepath.Join(t.TempDir(), "bare"), Path: path, Branches: []string{"main"},
		Username: "flux", Password: "pass word", Faults: faults, Log: slog.New(slog.DiscardHandler)}
	h, err := s.Handler(t.Context())
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL + path)
	require.NoError(t, err)
	u.User = url.UserPassword("flux", "pass word")
	return u.String(), faults
}

func TestServer_ServesTheCommittedHeadOnEveryRequest(t *testing.T) {
	checkout, remote, _ := serve(t)
	for _, content := range []string{"one", "two"} {
		head := commit(t, checkout, content)
		require.Equal(t, head+"\trefs/heads/main", run(t, checkout, "ls-remote", remote, "main"))
	}
	clone := t.TempDir()
	run(t, clone, "clone", "--quiet", "--depth=1", "--branch=main", remote, "c")
	got, err := os.ReadFile(filepath.Join(clone, "c", "file"))
	require.NoError(t, err)
	require.Equal(t, "two", string(got))
}

func TestServer_ServesAShallowAndDetachedCheckoutAsCIMakesThem(t *testing.T) {
	origin := t.TempDir()
	run(t, origin, "init", "--quiet", "--initial-branch=main")
	commit(t, origin, "one")
	head := commit(t, origin, "two")
	checkout := filepath.Join(t.TempDir(), "shallow")
	run(t, origin, "clone", "--quiet", "--depth=1", "file://"+origin, checkout)
	run(t, checkout, "checkout", "--quiet", "--detach")
	remote, _ := serveCheckout(t, checkout)
	clone := t.TempDir()
	run(t, clone, "clone", "--quiet", "--depth=1", "--single-branch", "--branch=main", remote, "c")
	require.Equal(t, head, run(t, filepath.Join(clone, "c"), "rev-parse", "HEAD"))
}

func TestServer_RefusesWrongAndMissingCredentials(t *testing.T) {
	checkout, remote, faults := serve(t)
	commit(t, checkout, "one")
	u, err := url.Parse(remote)
	require.NoError(t, err)
	status := func(user *url.Userinfo) int {
		u.User = user
		r, err := http.Get(u.String() + "/info/refs?service=git-upload-pack")
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		return r.StatusCode
	}
	right := url.UserPassword("flux", "pass word")
	require.Equal(t, http.StatusUnauthorized, status(nil))
	require.Equal(t, http.StatusUnauthorized, status(url.UserPassword("flux", "wrong")))
	require.Equal(t, http.StatusOK, status(right))
	require.NoError(t, faults.On(fault.Fault{Kind: fault.GitRefused}))
	require.Equal(t, http.StatusUnauthorized, status(right))
	require.True(t, faults.Off(fault.GitRefused, ""))
	require.Equal(t, http.StatusOK, status(right))
}

func TestServer_APublicRepositoryNeedsNoCredentials(t *testing.T) {
	checkout := t.TempDir()
	run(t, checkout, "init", "--quiet", "--initial-branch=work")
	head := commit(t, checkout, "one")
	s := &Server{Checkout: checkout, Dir: filepath.Join(t.TempDir(), "bare"), Path: path, Branches: []string{"main"}, Public: true,
		Faults: &fault.Set{}, Log: slog.New(slog.DiscardHandler)}
	h, err := s.Handler(t.Context())
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	require.Equal(t, head+"\trefs/heads/main", run(t, checkout, "ls-remote", server.URL+path, "main"))
}

func TestServer_BelowPublicItNeedsNoCredentialsAndElsewhereItDoes(t *testing.T) {
	checkout, remote, faults := serve(t)
	head := commit(t, checkout, "one")
	u, err := url.Parse(remote)
	require.NoError(t, err)
	u.User = nil
	status := func(path string) int {
		r, err := http.Get("http://" + u.Host + path + "/info/refs?service=git-upload-pack")
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		return r.StatusCode
	}
	require.Equal(t, head+"\trefs/heads/main", run(t, checkout, "ls-remote", "http://"+u.Host+PublicPath+path, "main"))
	require.Equal(t, http.StatusOK, status(PublicPath+path))
	require.Equal(t, http.StatusUnauthorized, status(path))
	require.Equal(t, http.StatusNotFound, status(PublicPath+"/other.git"))
	require.Equal(t, http.StatusNotFound, status(PublicPath+path+"x"))
	require.NoError(t, faults.On(fault.Fault{Kind: fault.GitRefused}))
	require.Equal(t, http.StatusUnauthorized, status(PublicPath+path))
}

func TestServer_ServesARepositoryWhosePathBeginsWithPublic(t *testing.T) {
	checkout := t.TempDir()
	run(t, checkout, "init", "--quiet", "--initial-branch=work")
	head := commit(t, checkout, "one")
	s := &Server{Checkout: checkout, Dir: filepath.Join(t.TempDir(), "bare"), Path: PublicPath + path, Branches: []string{"main"}, Public: true,
		Faults: &fault.Set{}, Log: slog.New(slog.DiscardHandler)}
	h, err := s.Handler(t.Context())
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	require.Equal(t, head+"\trefs/heads/main", run(t, checkout, "ls-remote", server.URL+PublicPath+path, "main"))
}

func TestServer_ASnapshotHasTheFilesOfTheCommittedHead(t *testing.T) {
	checkout := t.TempDir()
	run(t, checkout, "init", "--quiet", "--initial-branch=work")
	require.NoError(t, os.MkdirAll(filepath.Join(checkout, "a"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(checkout, "a", "tool"), []byte("#!/bin/sh\n"), 0o700)) //nolint:gosec // a program
	require.NoError(t, os.Symlink("a", filepath.Join(checkout, "link")))
	run(t, checkout, "add", "--all")
	first := commit(t, checkout, "one")
	s := &Server{Checkout: checkout, Dir: filepath.Join(t.TempDir(), "bare"), Path: path, Faults: &fault.Set{}}
	got, err := s.Snapshot(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, got.Commit)
	require.False(t, got.Time.IsZero())
	require.Equal(t, []File{
		{Path: "a/tool", Executable: true, Content: []byte("#!/bin/sh\n")}, {Path: "file", Content: []byte("one")},
	}, got.Files)
	again, err := s.Snapshot(t.Context())
	require.NoError(t, err)
	require.Same(t, got, again, "it is read once for each commit")
	second := commit(t, checkout, "two")
	got, err = s.Snapshot(t.Context())
	require.NoError(t, err)
	require.Equal(t, second, got.Commit)
	require.Equal(t, "two", string(got.Files[1].Content))
}

func TestServer_NothingCanBePushed(t *testing.T) {
	checkout, remote, _ := serve(t)
	commit(t, checkout, "one")
	c := exec.Command("git", "-C", checkout, "push", remote, "HEAD:refs/heads/other")
	out, err := c.CombinedOutput()
	require.Error(t, err, "%s", out)
}
