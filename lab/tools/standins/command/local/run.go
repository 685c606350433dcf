package local

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	p "github.com/pulumi/pulumi-go-provider"
)

// run executes a command, shows its lines in the engine's Info column, and stores its outputs in the state.
//
// A cancelled update kills the interpreter and nothing that it has started, and waits until all who hold its outputs have ended
// (pulumi-command v1.2.1, provider/pkg/provider/local/commandOutputs.go).
func (s *CommandState) run(ctx context.Context, command string) error {
	logging := LogStdoutAndStderr
	if s.Logging != nil {
		logging = *s.Logging
	}
	// Status messages are shown while the command runs, and are not among the diagnostics at the end of a run.
	log := p.GetLogger(ctx).InfoStatus
	return s.runLogged(ctx, command, logging, log)
}

// runLogged is run with a given logging; it calls log with one line at a time.
func (s *CommandState) runLogged(ctx context.Context, command string, logging Logging, log func(string)) error {
	interpreter := []string{"/bin/sh", "-c"}
	if s.Interpreter != nil && len(*s.Interpreter) > 0 {
		interpreter = *s.Interpreter
	}
	var stdout, stderr bytes.Buffer
	both := &syncBuffer{}
	lines := newLineLogger(log)

	cmd := exec.CommandContext(ctx, interpreter[0], append(append([]string{}, interpreter[1:]...), command)...)
	cmd.Env = s.environment(os.Environ())
	cmd.Stdout = tee(logging.stdout(), lines, &stdout, both)
	cmd.Stderr = tee(logging.stderr(), lines, &stderr, both)
	if s.Dir != nil {
		cmd.Dir = *s.Dir
	}
	if s.Stdin != nil && *s.Stdin != "" {
		cmd.Stdin = strings.NewReader(*s.Stdin)
	}

	err := cmd.Run()
	_ = lines.Close() // never fails
	if err != nil {
		return fmt.Errorf("%w: running %q:\n%s", err, command, both)
	}
	s.Stdout = strings.TrimSuffix(stdout.String(), "\n")
	s.Stderr = strings.TrimSuffix(stderr.String(), "\n")
	return nil
}

// environment adds the declared variables and the outputs of the previous command to the engine's environment.
func (s *CommandState) environment(base []string) []string {
	env := append([]string{}, base...)
	if s.Environment != nil {
		for name, value := range *s.Environment {
			env = append(env, name+"="+value)
		}
	}
	if s.AddPreviousOutputInEnv != nil && !*s.AddPreviousOutputInEnv {
		return env
	}
	if s.Stdout != "" {
		env = append(env, "PULUMI_COMMAND_STDOUT="+s.Stdout)
	}
	if s.Stderr != "" {
		env = append(env, "PULUMI_COMMAND_STDERR="+s.Stderr)
	}
	return env
}

// tee writes to the buffers, and to lines if wanted.
func tee(wanted bool, lines io.Writer, buffers ...io.Writer) io.Writer {
	if wanted {
		buffers = append(buffers, lines)
	}
	return io.MultiWriter(buffers...)
}

// syncBuffer is a buffer to which both outputs of a command are written concurrently.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

// String returns what has been written so far, in the order of writing.
func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
