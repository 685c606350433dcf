package namespace

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// asPID1 is the argument with which this test binary acts as pid 1 of new namespaces.
const asPID1 = "namespace-test-pid1"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asPID1 {
		code, err := Init(os.Args[2:])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == asMounts {
		fmt.Fprintln(os.Stderr, makeMounts(os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func pid1(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	if err := Check(self, asPID1, "/bin/true"); err != nil {
		t.Skip(err)
	}
	return Command(true, self, asPID1, "/bin/sh", "-c", script)
}

func TestInit_RunsInItsOwnNamespaces(t *testing.T) {
	out, err := pid1(t, `id -u; readlink /proc/self/ns/net; ls -d /proc/[0-9]* | wc -l; exit 7`).CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Equal(t, 7, exit.ExitCode(), "the child's exit code is passed on")
	lines := strings.Fields(string(out))
	outside, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	require.Equal(t, "0", lines[0])
	require.NotEqual(t, outside, lines[1])
	require.Contains(t, []string{"2", "3", "4", "5"}, lines[2], "only its own processes are seen")
}

func TestInit_EndsEverythingThatWasStartedInIt(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := pid1(t, `setsid sleep 1000 & echo started; sleep 1000`)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	_, err = out.Read(make([]byte, 8))
	require.NoError(t, err)
	left, err := Watch(c.Process.Pid)
	require.NoError(t, err)
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", c.Process.Pid))
	require.NoError(t, err)
	require.Error(t, processesIn(space), "while it runs it is seen")
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	require.NoError(t, left("/nowhere"))
}

// asMounts is the argument with which this test binary makes the mounts of a lab on a folder, and then runs a script.
const asMounts = "namespace-test-mounts"

// mounted starts namespaces in which one folder is read-only, and a file of another one is replaced.
func mounted(t *testing.T, readOnly, folder string, files ...string) *exec.Cmd {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	self, err := os.Executable()
	require.NoError(t, err)
	if err := Check(self, asPID1, "/bin/true"); err != nil {
		t.Skip(err)
	}
	c := Command(true, append([]string{self, asPID1, self, asMounts, readOnly, folder}, files...)...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	_, err = out.Read(make([]byte, 6))
	require.NoError(t, err)
	return c
}

// makeMounts is the body of asMounts.
func makeMounts(args []string) error {
	files := map[string]string{}
	for _, file := range args[2:] {
		files[filepath.Base(file)] = file
	}
	if err := errors.Join(ReadOnly(args[0]), ReplaceIn(args[1], files)); err != nil {
		return err
	}
	fmt.Println("ready")
	select {} // until it is killed
}

func TestMounts_OutliveAFileThatIsReplacedOutside(t *testing.T) {
	project, folder, lab := t.TempDir(), t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(filepath.Join(project, "stack"), "first")
	write(filepath.Join(folder, "hosts"), "machine")
	write(filepath.Join(folder, "other"), "other")
	write(filepath.Join(lab, "hosts"), "lab")
	c := mounted(t, project, folder, filepath.Join(lab, "hosts"))
	inside := func(script string) (string, error) {
		text, err := Enter(c.Process.Pid, lab, []string{"PATH=/usr/bin:/bin"}, "sh", "-c", script).CombinedOutput()
		return string(text), err
	}
	replace := func(path, text string) {
		write(path+".new", text)
		require.NoError(t, os.Rename(path+".new", path))
	}
	for _, text := range []string{"second", "third"} {
		replace(filepath.Join(project, "stack"), text)
		replace(filepath.Join(folder, "hosts"), text)
		seen, err := inside(fmt.Sprintf("cat %s/stack %s/hosts %s/other", project, folder, folder))
		require.NoError(t, err, seen)
		require.Equal(t, text+"lab"+"other", seen)
		refused, err := inside(fmt.Sprintf("echo x > %s/stack", project))
		require.Error(t, err)
		require.Contains(t, refused, "Read-only")
		refused, err = inside(fmt.Sprintf("echo x > %s/other", folder))
		require.Error(t, err)
		require.Contains(t, refused, "Read-only")
	}
}
