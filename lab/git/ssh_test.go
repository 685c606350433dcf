package git

import (
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/slipway-platform/slipway/lab/fault"
)

// sshHost is an SSH server of a checkout, and its folder.
func sshHost(t *testing.T) (checkout, remote, dir string, faults *fault.Set) {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("needs ssh")
	}
	checkout, dir, faults = t.TempDir(), filepath.Join(t.TempDir(), "ssh"), &fault.Set{}
	run(t, checkout, "init", "--quiet", "--initial-branch=work")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &Server{Checkout: checkout, Dir: filepath.Join(t.TempDir(), "bare"), Path: path, Branches: []string{"main"},
		Faults: faults, Log: slog.New(slog.DiscardHandler)}
	address := listener.Addr().String()
	require.NoError(t, (&SSH{Server: server, Dir: dir, Hosts: []string{address}}).Serve(t.Context(), listener))
	return checkout, "ssh://git@" + address + path, dir, faults
}

// overSSH runs git with an identity and known hosts.
func overSSH(t *testing.T, identity, knownHosts string, args ...string) (string, error) {
	t.Helper()
	c := exec.Command("git", args...)
	c.Env = append(os.Environ(), "GIT_SSH_COMMAND=ssh -F none -o BatchMode=yes -o IdentitiesOnly=yes -o GlobalKnownHostsFile=/dev/null "+
		"-o StrictHostKeyChecking=yes -o UserKnownHostsFile="+knownHosts+" -i "+identity)
	out, err := c.CombinedOutput()
	return string(out), err
}

func TestSSH_ServesTheCommittedHeadToAKnownIdentity(t *testing.T) {
	checkout, remote, dir, _ := sshHost(t)
	hosts := filepath.Join(dir, "known_hosts")
	for _, content := range []string{"one", "two"} {
		head := commit(t, checkout, content)
		out, err := overSSH(t, filepath.Join(dir, "identity"), hosts, "ls-remote", remote, "main")
		require.NoError(t, err, out)
		require.Equal(t, head+"\trefs/heads/main\n", out)
	}
	clone := filepath.Join(t.TempDir(), "c")
	out, err := overSSH(t, filepath.Join(dir, "identity"), hosts, "clone", "--quiet", "--depth=1", "--branch=main", remote, clone)
	require.NoError(t, err, out)
	got, err := os.ReadFile(filepath.Join(clone, "file"))
	require.NoError(t, err)
	require.Equal(t, "two", string(got))
}

func TestSSH_RefusesUnknownKeysAndHostsAndPushes(t *testing.T) {
	checkout, remote, dir, faults := sshHost(t)
	commit(t, checkout, "one")
	hosts, identity := filepath.Join(dir, "known_hosts"), filepath.Join(dir, "identity")
	stranger := filepath.Join(t.TempDir(), "stranger")
	signer, err := key(stranger)
	require.NoError(t, err)

	out, err := overSSH(t, stranger, hosts, "ls-remote", remote)
	require.Error(t, err)
	require.Contains(t, out, "Permission denied (publickey)")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "authorized", "stranger.pub"), ssh.MarshalAuthorizedKey(signer.PublicKey()), 0o600))
	out, err = overSSH(t, stranger, hosts, "ls-remote", remote)
	require.NoError(t, err, out)

	out, err = overSSH(t, identity, os.DevNull, "ls-remote", remote)
	require.Error(t, err)
	require.Contains(t, out, "Host key verification failed")
	out, err = overSSH(t, identity, hosts, "ls-remote", remote+"x")
	require.Error(t, err)
	require.Contains(t, out, "does not appear to be a git repository")
	out, err = overSSH(t, identity, hosts, "-C", checkout, "push", remote, "HEAD:refs/heads/other")
	require.Error(t, err)
	require.Contains(t, out, "read-only")

	require.NoError(t, faults.On(fault.Fault{Kind: fault.GitRefused}))
	out, err = overSSH(t, identity, hosts, "ls-remote", remote)
	require.Error(t, err)
	require.Contains(t, out, "Permission denied (publickey)")
	faults.Clear()
	require.NoError(t, faults.On(fault.Fault{Kind: fault.Git5xx}))
	out, err = overSSH(t, identity, hosts, "ls-remote", remote)
	require.Error(t, err)
	require.Contains(t, out, "Internal Server Error")
	faults.Clear()
	out, err = overSSH(t, identity, hosts, "ls-remote", remote)
	require.NoError(t, err, out)
}
