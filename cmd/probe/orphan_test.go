package probe

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

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

func TestParentOf_IsTheParent(t *testing.T) {
	assert.Equal(t, os.Getppid(), parentOf(os.Getpid()))
	assert.Zero(t, parentOf(1<<30))
	assert.True(t, runs(os.Getpid()))
	assert.False(t, runs(1<<30))
}
