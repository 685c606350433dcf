package workload

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFate_IsKnownWhereTheCommandSaysIt(t *testing.T) {
	ends := func(code int, after ...time.Duration) fate {
		f := fate{known: true, code: code}
		for _, d := range after {
			f.after += d
		}
		return f
	}
	for script, want := range map[string]fate{
		"exit 1":                         ends(1),
		"exit 300":                       ends(44),
		"exit":                           ends(0),
		"false":                          ends(1),
		"true":                           ends(0),
		":":                              ends(0),
		"echo failing; exit 3":           ends(3),
		"echo 'a; exit 2' >&2 && exit 4": ends(4),
		"true && false":                  ends(1),
		"false && exit 9":                ends(1),
		"false || exit 9":                ends(9),
		"true || exit 9":                 ends(0),
		"false; true":                    ends(0),
		"set -e; false; true":            ends(1),
		"set -e; false || true; exit 5":  ends(5),
		"sleep 2; sleep 1m\nexit 1":      ends(1, 62*time.Second),
		"# why\nexit 6":                  ends(6),
		"apk add curl; exit 7":           ends(7),
		"exit 2; apk add curl":           ends(2),

		"curl -f https://x":            {},
		"curl -f https://x || exit 1":  {},
		"curl -f https://x || true":    {},
		"curl -f https://x && echo ok": {},
		"exit $CODE":                   {},
		"false; >/tmp/x":               {},
		": ${X:?is missing}":           {},
		"if false; then exit 1; fi":    {},
		"x=$(curl x); exit 1":          {},
		"cat x | grep y":               {},
		"(exit 1)":                     {},
		"sleep infinity":               {},
		"exit 1 &":                     {},
		"echo 'never closed":           {},
	} {
		got := fateOf([]string{"/bin/sh", "-c", script})
		if !got.known {
			got = fate{}
		}
		assert.Equal(t, want, got, "%q", script)
	}
	for command, want := range map[string]fate{
		"":               {},
		"/bin/false":     ends(1),
		"true":           ends(0),
		"sleep 1.5":      ends(0, 1500*time.Millisecond),
		"sh":             {},
		"sh script.sh":   {},
		"/manager --x=1": {},
		"bash -ec false": ends(1),
	} {
		got := fateOf(strings.Fields(command))
		if !got.known {
			got = fate{}
		}
		assert.Equal(t, want, got, "%q", command)
	}
}

func TestContainers_EndAsTheirCommandSays(t *testing.T) {
	start := func(once bool, command ...string) (*Instance, string) {
		c := container(cluster(), "cp-1", "main", "busybox:1.37")
		var log bytes.Buffer
		c.RunsToCompletion, c.Spec.Command, c.Spec.Args, c.Log = once, command[:1], command[1:], &log
		i, err := (Registry{}).Find(c)(t.Context(), c)
		require.NoError(t, err)
		return i, log.String()
	}
	for _, once := range []bool{true, false} {
		i, _ := start(once, "sh", "-c", "echo no; exit 3")
		<-i.Done()
		assert.Equal(t, 3, i.ExitCode())
		assert.Empty(t, i.Message)
	}
	i, log := start(true, "migrate", "up")
	<-i.Done()
	assert.Zero(t, i.ExitCode())
	assert.Contains(t, i.Message, "assumed")
	assert.Contains(t, log, "the lab cannot run the command")

	i, _ = start(false, "server")
	require.Eventually(t, i.Ready, time.Minute, time.Millisecond)
	i, _ = start(false, "sleep", "infinity")
	require.Eventually(t, i.Ready, time.Minute, time.Millisecond)
}
