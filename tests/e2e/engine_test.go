//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/stretchr/testify/require"
)

// moment is the begin or the end of an operation on a resource, as the engine's events tell it.
type moment struct {
	urn   string
	op    string // the engine's name, such as create
	ended bool
}

func (m moment) String() string {
	when := "begin"
	if m.ended {
		when = "end"
	}
	return fmt.Sprintf("%s of %s of %s", when, m.op, shortURN(m.urn))
}

// shortURN returns the type and the name in a URN.
func shortURN(urn string) string {
	parts := strings.SplitN(urn, "::", 4)
	if len(parts) < 4 {
		return urn
	}
	return parts[2][strings.LastIndex(parts[2], "$")+1:] + " " + parts[3]
}

// engineRun is a run of Pulumi whose events the test follows while it works.
type engineRun struct {
	*background
	longest time.Duration // that the run may take; 0 means longestRun
	log     *os.File
	unread  []byte // part of a line
}

// engine starts a command of Pulumi on the stack infra, with an event log.
func (l *lab) engine(args ...string) *engineRun {
	l.t.Helper()
	log, err := os.Create(filepath.Join(l.t.TempDir(), "events"))
	require.NoError(l.t, err)
	l.t.Cleanup(func() { _ = log.Close() })
	command := []string{"env", "PULUMI_DEBUG_COMMANDS=true", "pulumi", "--non-interactive", "--color=never"} // without it, there is no log
	command = slices.Concat(command, args, []string{"--stack", "infra", "--event-log", log.Name()})
	return &engineRun{background: l.background(command...), log: log}
}

// follows calls saw for each moment of the run until saw returns false or the run has ended. It reports whether the run has ended.
func (r *engineRun) follows(saw func(moment) bool) (ended bool) {
	t := r.lab.t
	t.Helper()
	longest := cmp.Or(r.longest, longestRun)
	deadline, look := time.After(longest), time.NewTicker(5*time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-r.ended:
			r.ended <- err // for the next reader
			ended = true
		case <-deadline:
			require.Fail(t, "pulumi does not end", "within %s\n%s", longest, end(r.said()))
		case <-look.C:
		}
		for _, m := range r.moments() {
			if !saw(m) {
				return ended
			}
		}
		if ended {
			return true
		}
	}
}

// longestRun is the longest time that a run of Pulumi takes on a busy machine.
const longestRun = 10 * time.Minute

// moments returns the moments that were logged since the last call.
func (r *engineRun) moments() (all []moment) {
	t := r.lab.t
	t.Helper()
	text, err := io.ReadAll(r.log)
	require.NoError(t, err)
	r.unread = append(r.unread, text...)
	for {
		line, rest, complete := bytes.Cut(r.unread, []byte("\n"))
		if !complete {
			return all
		}
		r.unread = rest
		var event apitype.EngineEvent
		require.NoError(t, json.Unmarshal(line, &event), "%s", line)
		switch {
		case event.ResourcePreEvent != nil:
			all = append(all, momentOf(event.ResourcePreEvent.Metadata, false))
		case event.ResOutputsEvent != nil:
			all = append(all, momentOf(event.ResOutputsEvent.Metadata, true))
		}
	}
}

func momentOf(step apitype.StepEventMetadata, ended bool) moment {
	return moment{urn: step.URN, op: string(step.Op), ended: ended}
}

// process is a process of a run.
type process struct {
	id   int    // outside the lab
	name string // of its program
}

// processes returns the processes of the run, parents first: Pulumi, and what it and its plugins have started.
func (r *engineRun) processes() []process {
	t := r.lab.t
	t.Helper()
	children := map[int][]process{}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, file := range files {
		if child, parent, exists := readProcess(t, filepath.Dir(file)); exists {
			children[parent] = append(children[parent], child)
		}
	}
	all := children[r.command.Process.Pid]
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i].id]...)
	}
	return slices.DeleteFunc(all, func(p process) bool { return p.name == "nsenter" })
}

// readProcess returns a process and its parent. It does not exist if it has ended meanwhile.
func readProcess(t *testing.T, folder string) (p process, parent int, exists bool) {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return p, 0, false
	}
	commandLine, err := os.ReadFile(filepath.Join(folder, "cmdline"))
	if err != nil || len(commandLine) == 0 {
		return p, 0, false
	}
	p.id, err = strconv.Atoi(filepath.Base(folder))
	require.NoError(t, err)
	program, _, _ := strings.Cut(string(commandLine), "\x00")
	p.name = strings.TrimPrefix(filepath.Base(program), ".")
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, parent, …
	parent, err = strconv.Atoi(fields[1])
	require.NoError(t, err)
	return p, parent, true
}

// victim is which processes of a run are killed.
type victim string

const (
	everything   victim = ""       // Pulumi, its plugins, and what they have started: the machine crashes
	pulumi       victim = "pulumi" // Pulumi alone: its plugins and what they have started go on, and notice it late
	program      victim = "slipway"
	probe        victim = "slipway-probe"
	languageHost victim = "pulumi-language-go"
)

func (v victim) String() string {
	if v == everything {
		return "everything"
	}
	return string(v)
}

// kills kills processes of the run with SIGKILL, and returns how many there were.
func (r *engineRun) kills(v victim) (killed int) {
	t := r.lab.t
	t.Helper()
	for _, p := range r.processes() {
		if v != everything && p.name != string(v) {
			continue
		}
		if err := syscall.Kill(p.id, syscall.SIGKILL); err != syscall.ESRCH {
			require.NoError(t, err, "%+v", p)
			killed++
		}
	}
	return killed
}

func TestEngineRun_KillsAllProcessesOfARunOrThoseOfAName(t *testing.T) {
	c := exec.CommandContext(t.Context(), "bash", "-c", "bash -c 'exec -a slipway-probe sleep 60' & sleep 60 & wait")
	require.NoError(t, c.Start())
	run := &engineRun{background: &background{lab: &lab{t: t}, command: c}}
	names := func() (names []string) {
		for _, p := range run.processes() {
			names = append(names, p.name)
		}
		slices.Sort(names)
		return names
	}
	require.Eventually(t, func() bool { return slices.Equal(names(), []string{"sleep", "slipway-probe"}) }, 10*time.Second, time.Millisecond)
	require.Equal(t, 1, run.kills(probe))
	require.Eventually(t, func() bool { return !slices.Contains(names(), "slipway-probe") }, 10*time.Second, time.Millisecond)
	require.Zero(t, run.kills(languageHost))
	require.Positive(t, run.kills(everything))
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
}

func TestEngineRun_FollowsTheMomentsOfALogThatGrows(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "events"))
	require.NoError(t, err)
	reader, err := os.Open(log.Name())
	require.NoError(t, err)
	run := &engineRun{background: &background{lab: &lab{t: t}, ended: make(chan error, 1)}, log: reader}
	const line = `{"sequence":1,"timestamp":10,"%s":{"metadata":{"op":"create","urn":"urn:pulumi:infra::slipway::a$b::x","type":"b"}}}` + "\n"
	pre, outputs := fmt.Sprintf(line, "resourcePreEvent"), fmt.Sprintf(line, "resOutputsEvent")
	_, err = log.WriteString(`{"sequence":0,"timestamp":10,"diagnosticEvent":{"message":"x"}}` + "\n" + pre + outputs[:20])
	require.NoError(t, err)
	var seen []string
	ended := run.follows(func(m moment) bool {
		seen = append(seen, m.String())
		return false
	})
	require.False(t, ended)
	_, err = log.WriteString(outputs[20:])
	require.NoError(t, err)
	run.ended <- nil
	require.True(t, run.follows(func(m moment) bool {
		seen = append(seen, m.String())
		return true
	}))
	require.Equal(t, []string{"begin of create of b x", "end of create of b x"}, seen)
}
