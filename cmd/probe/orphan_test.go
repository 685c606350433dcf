package probe

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asChild makes the test of that name the child of TestWhileStarted.
const asChild = "SLIPWAY_TEST_ORPHAN"

func TestWhileStarted_Child(t *testing.T) {
	if os.Getenv(asChild) == "" {
		t.Skip("it is the child of another test")
	}
	ctx := whileStarted(t.Context())
	fmt.Println("watches")
	<-ctx.Done()
	fmt.Println(context.Cause(ctx))
}

// The plugin kills the shell: below it is the probe, or "go run", and below that the probe.
func TestWhileStarted_EndsWithTheProcessesAbove(t *testing.T) {
	own, err := os.Executable()
	require.NoError(t, err)
	const child = `"$0" -test.run '^TestWhileStarted_Child$'; exit $?`
	for name, command := range map[string]string{
		"shell and probe":            child,
		"shell, go run and probe":    `sh -c '"$0" -test.run "^TestWhileStarted_Child\$"; exit $?' "$0"; exit $?`,
		"as the installed binary is": `PATH="$PWD/bin:$PATH" ` + child,
	} {
		t.Run(name, func(t *testing.T) {
			shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", command, own)
			shell.Env = append(os.Environ(), asChild+"=1")
			out, err := shell.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, shell.Start())
			lines := bufio.NewScanner(out)
			require.True(t, lines.Scan())
			require.Equal(t, "watches", lines.Text())
			require.NoError(t, shell.Process.Kill())
			_, err = shell.Process.Wait() // as os/exec does before it waits for what reads the output
			require.NoError(t, err)
			require.True(t, lines.Scan())
			assert.Equal(t, errOrphaned.Error(), lines.Text())
		})
	}
}

// If the shell is gone before "go run" has compiled, the processes above live on. The plugin, which reads the output, does not.
func TestWhileStarted_EndsWithTheReaderOfTheOutput(t *testing.T) {
	own, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), own, "-test.run", "^TestWhileStarted_Child$")
	child.Env = append(os.Environ(), asChild+"=1")
	read, write, err := os.Pipe()
	require.NoError(t, err)
	child.Stdout = write
	require.NoError(t, child.Start())
	require.NoError(t, write.Close())
	lines := bufio.NewScanner(read)
	require.True(t, lines.Scan())
	require.Equal(t, "watches", lines.Text())
	require.NoError(t, read.Close())
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	select {
	case <-ended: //nolint:errcheck // its last lines have no reader, so that it may fail
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}

func TestParentOf_IsTheParent(t *testing.T) {
	assert.Equal(t, os.Getppid(), parentOf(os.Getpid()))
	assert.Zero(t, parentOf(1<<30))
	assert.True(t, runs(os.Getpid()))
	assert.False(t, runs(1<<30))
}
