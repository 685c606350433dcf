package local

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// recorder keeps logged lines; its zero value is ready.
type recorder struct {
	mu    sync.Mutex
	lines []string
	seen  chan string
}

func (r *recorder) log(line string) {
	r.mu.Lock()
	r.lines = append(r.lines, line)
	r.mu.Unlock()
	if r.seen != nil {
		r.seen <- line
	}
}

func TestRun_TrimsOneNewlineOfEachOutput(t *testing.T) {
	var r recorder
	s := &CommandState{}
	if err := s.runLogged(t.Context(), `printf 'a\n\n'; printf 'b\n' >&2`, LogNone, r.log); err != nil {
		t.Fatal(err)
	}
	if s.Stdout != "a\n" || s.Stderr != "b" {
		t.Errorf("got %q and %q", s.Stdout, s.Stderr)
	}
	if len(r.lines) != 0 {
		t.Errorf("logging none, but got %q", r.lines)
	}
}

func TestRun_LogsOnlyWhatWasAskedFor(t *testing.T) {
	for logging, want := range map[Logging][]string{
		LogStdout:          {"out", "last"},
		LogStderr:          {"err"},
		LogStdoutAndStderr: {"err", "last", "out"},
	} {
		var r recorder
		command := `echo out; echo err >&2; printf last`
		if logging == LogStdoutAndStderr {
			command += `; echo` // a line that is not ended would be joined with one of the other output
		}
		if err := (&CommandState{}).runLogged(t.Context(), command, logging, r.log); err != nil {
			t.Fatal(err)
		}
		if logging == LogStdoutAndStderr {
			slices.Sort(r.lines)
		}
		if !slices.Equal(r.lines, want) {
			t.Errorf("%s: got %q, want %q", logging, r.lines, want)
		}
	}
}

func TestRun_LogsALineBeforeTheCommandEnds(t *testing.T) {
	r := recorder{seen: make(chan string, 1)}
	dir := t.TempDir()
	done := make(chan error, 1)
	go func() {
		command := `echo waiting; while [ ! -e go ]; do sleep 0.01; done`
		done <- (&CommandState{CommandArgs: CommandArgs{Dir: &dir}}).runLogged(t.Context(), command, LogStdout, r.log)
	}()
	select {
	case <-r.seen:
	case err := <-done:
		t.Fatalf("ended before the line was logged: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestRun_AFailureSaysExitCodeAndBothOutputs(t *testing.T) {
	s := &CommandState{Stdout: "before"}
	err := s.runLogged(t.Context(), `echo one; echo two >&2; exit 3`, LogNone, nil)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"exit status 3", "one", "two"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	if s.Stdout != "before" {
		t.Errorf("a failed command changed the state to %q", s.Stdout)
	}
}

func TestRun_GivesStdinDirEnvironmentAndPreviousOutputs(t *testing.T) {
	dir, stdin, env := t.TempDir(), "input", map[string]string{"NAME": "value"}
	s := &CommandState{CommandArgs: CommandArgs{Dir: &dir, Stdin: &stdin, Environment: &env}, Stdout: "old out", Stderr: "old err"}
	command := `cat; echo; pwd; echo "$NAME/$PULUMI_COMMAND_STDOUT/$PULUMI_COMMAND_STDERR"`
	if err := s.runLogged(t.Context(), command, LogNone, nil); err != nil {
		t.Fatal(err)
	}
	if want := "input\n" + dir + "\nvalue/old out/old err"; s.Stdout != want {
		t.Errorf("got %q, want %q", s.Stdout, want)
	}
}

func TestRun_LeavesPreviousOutputsOutWhenAsked(t *testing.T) {
	no := false
	s := &CommandState{CommandArgs: CommandArgs{AddPreviousOutputInEnv: &no}, Stdout: "old"}
	if env := s.environment(nil); len(env) != 0 {
		t.Errorf("got %q", env)
	}
}

func TestRun_UsesTheInterpreter(t *testing.T) {
	interpreter := []string{"echo", "-n", "said"}
	s := &CommandState{CommandArgs: CommandArgs{Interpreter: &interpreter}}
	if err := s.runLogged(t.Context(), "hello there", LogNone, nil); err != nil {
		t.Fatal(err)
	}
	if s.Stdout != "said hello there" {
		t.Errorf("got %q", s.Stdout)
	}
}

func TestRun_CancellationKillsTheInterpreterAndWaitsForTheOthers(t *testing.T) {
	r := recorder{seen: make(chan string, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- (&CommandState{}).runLogged(ctx, `sleep 60 & echo $!; wait`, LogStdout, r.log)
	}()
	pid, err := strconv.Atoi(<-r.seen)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-done:
		t.Fatalf("it has not waited: %v", err)
	case <-time.After(time.Second):
	}
	if !running(pid) {
		t.Error("the process below was killed, too")
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("got %v", err)
	}
}

// running says whether a process runs; one that has ended and that nobody has waited for yet does not.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestRun_ALoggedLineOfMoreThan64KiBStopsTheCommandUnlessItIsNotLogged(t *testing.T) {
	t.Parallel()
	const command = `head -c 200000 /dev/zero | tr '\0' x; echo`
	done := make(chan error, 1)
	go func() { done <- new(CommandState).runLogged(t.Context(), command, LogStdout, func(string) {}) }()
	select {
	case err := <-done:
		t.Errorf("a line that the released plugin cannot read was logged: %v", err)
	case <-time.After(time.Second):
	}
	s := new(CommandState)
	if err := s.runLogged(t.Context(), command, LogStderr, func(string) {}); err != nil || len(s.Stdout) != 200000 {
		t.Errorf("got %d bytes and %v", len(s.Stdout), err)
	}
}
