package process

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// buffer is a bytes.Buffer that signals each write.
type buffer struct {
	mu      sync.Mutex
	b       bytes.Buffer
	written chan struct{}
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.written <- struct{}{}:
	default:
	}
	return b.b.Write(p)
}

func within(t *testing.T, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing within 10 s")
	}
}

func TestProcess_IsListedWhileItRunsAndLogsToItsFile(t *testing.T) {
	var table Table
	log := filepath.Join(t.TempDir(), "logs", "x.log")
	p, err := Start(Spec{Cluster: "c", Name: "x", Path: "/bin/sh", Args: []string{"-c", "echo hello; exec sleep 60"}, Log: log, Table: &table})
	require.NoError(t, err)
	require.NotEmpty(t, table.List())
	require.Equal(t, log, table.List()[0].Log)
	require.Eventually(t, func() bool {
		raw, err := os.ReadFile(log)
		return err == nil && string(raw) == "hello\n"
	}, time.Minute, 10*time.Millisecond)
	p.Stop(t.Context(), time.Second)
	within(t, p.Done())
	require.Empty(t, table.List())
}

func TestProcess_StopKillsWhatIgnoresSIGTERM(t *testing.T) {
	out := &buffer{written: make(chan struct{}, 1)}
	p, err := Start(Spec{Name: "stubborn", Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; echo up; while :; do sleep 1; done"},
		Output: out})
	require.NoError(t, err)
	within(t, out.written)
	require.Equal(t, -1, p.ExitCode())
	p.Stop(context.Background(), 50*time.Millisecond)
	require.Equal(t, 128+9, p.ExitCode())
}

func TestProcess_ReportsItsExitCode(t *testing.T) {
	p, err := Start(Spec{Name: "x", Path: "/bin/sh", Args: []string{"-c", "exit 3"}, Log: filepath.Join(t.TempDir(), "x.log")})
	require.NoError(t, err)
	within(t, p.Done())
	require.Equal(t, 3, p.ExitCode())
	require.Error(t, p.Err())
}

func TestSupervisor_RestartsWhatEndsUntilStopped(t *testing.T) {
	out := &buffer{written: make(chan struct{}, 1)}
	v, err := Supervise(Spec{Name: "x", Path: "/bin/sh", Args: []string{"-c", "echo run"}, Output: out}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	within(t, out.written)
	within(t, out.written)
	v.Stop(time.Second)
}

func TestBackoff_DoublesUpToItsLimit(t *testing.T) {
	require.Equal(t, 500*time.Millisecond, Backoff(1))
	require.Equal(t, time.Second, Backoff(2))
	require.Equal(t, 30*time.Second, Backoff(50))
}

func TestProcess_RunsNoMoreOnceSIGSTOPWasSent(t *testing.T) {
	p, err := Start(Spec{Name: "busy", Path: "/bin/sh", Args: []string{"-c", "while :; do :; done"},
		Log: filepath.Join(t.TempDir(), "busy.log")})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	for range 100 {
		p.signal(syscall.SIGSTOP)
		require.Equal(t, "T", state(t, p.PID()))
		p.signal(syscall.SIGCONT)
		require.NotEqual(t, "T", state(t, p.PID()))
	}
}

// state returns the state of a process as a letter: R, S, T …
func state(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), ") ")
	require.True(t, found)
	return after[:1]
}

func TestProcess_SeesItsMountsAndNobodyElseDoes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounts need root, which a lab has in its namespaces")
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"token": "secret\n", "hosts": "192.0.2.1 connect.svc\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	out := &buffer{written: make(chan struct{}, 1)}
	p, err := Start(Spec{Name: "x", Path: "/bin/cat", Args: []string{"/var/run/secrets/kubernetes.io/serviceaccount/token", "/etc/hosts"}, Dir: dir, Output: out,
		Mounts: map[string]string{"/var/run/secrets/kubernetes.io/serviceaccount": dir, "/etc/hosts": filepath.Join(dir, "hosts")}})
	require.NoError(t, err)
	within(t, p.Done())
	require.Equal(t, 0, p.ExitCode(), out.b.String())
	require.Equal(t, "secret\n192.0.2.1 connect.svc\n", out.b.String())
	require.NoFileExists(t, "/var/run/secrets/kubernetes.io/serviceaccount/token")
}

func TestProcess_SeesItsRootOnlyAndBeginsInItsWorkingDirectory(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("another root needs root, which a lab has in its namespaces")
	}
	root := t.TempDir()
	spec := Spec{Name: "x", Path: "cat", Args: []string{"/etc/hosts"}, Root: root, Env: []string{"PATH=/usr/bin:/bin"},
		Mounts: map[string]string{}}
	for _, folder := range []string{"/bin", "/lib", "/lib64", "/usr"} {
		if _, err := os.Stat(folder); err == nil {
			spec.Mounts[folder] = folder
			require.NoError(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(root, "etc"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc", "hosts"), []byte("its own\n"), 0o600))
	var out, problem bytes.Buffer
	code, err := Run(t.Context(), spec, nil, &out, &problem)
	require.NoError(t, err)
	require.Equal(t, 0, code, problem.String())
	require.Equal(t, "its own\n", out.String())
	out.Reset()
	spec.Args, spec.WorkDir = []string{"hosts"}, "/etc"
	code, err = Run(t.Context(), spec, nil, &out, &problem)
	require.NoError(t, err)
	require.Equal(t, 0, code, problem.String())
	require.Equal(t, "its own\n", out.String())
	spec.Path = "nothing"
	code, err = Run(t.Context(), spec, nil, &out, &problem)
	require.NoError(t, err)
	require.Equal(t, 127, code)
}

func TestProcess_SeesItsHostNameAndNobodyElseDoes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a host name needs root")
	}
	own, err := os.Hostname()
	require.NoError(t, err)
	log := filepath.Join(t.TempDir(), "log")
	for _, name := range []string{"csi-rbdplugin-provisioner-1", ""} {
		p, err := Start(Spec{Name: "hostname", Path: "/bin/sh", Args: []string{"-c", "cat /proc/sys/kernel/hostname"}, Log: log, Hostname: name})
		require.NoError(t, err)
		<-p.Done()
		require.Zero(t, p.ExitCode())
	}
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "csi-rbdplugin-provisioner-1\n"+own+"\n", string(text))
}
