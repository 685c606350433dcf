package namespace

import (
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

func TestEnter_SeesTheMountsOfTheNamespaces(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("outside"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "copy"), []byte("inside"), 0o600))
	c := pid1(t, fmt.Sprintf(`mount --bind %[1]s/copy %[1]s/file && echo ready; sleep 1000`, dir))
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	_, err = out.Read(make([]byte, 6))
	require.NoError(t, err)
	text, err := Enter(c.Process.Pid, dir, []string{"PATH=/usr/bin:/bin"}, "cat", "file").CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Equal(t, "inside", string(text))
	outside, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	require.Equal(t, "outside", string(outside))
}
