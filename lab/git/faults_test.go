package git

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/fault"
)

func TestFaults_Git5xxAnswersWithTheStatusUntilItIsOff(t *testing.T) {
	checkout, remote, faults := serve(t)
	commit(t, checkout, "one")
	status := func() int {
		r, err := http.Get(remote + "/info/refs?service=git-upload-pack")
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		return r.StatusCode
	}
	require.NoError(t, faults.On(fault.Fault{Kind: fault.Git5xx}))
	require.Equal(t, http.StatusInternalServerError, status())
	require.NoError(t, faults.On(fault.Fault{Kind: fault.Git5xx, Detail: "503 upstream is gone"}))
	require.Equal(t, http.StatusServiceUnavailable, status())
	require.True(t, faults.Off(fault.Git5xx, ""))
	require.Equal(t, http.StatusOK, status())
	require.Error(t, faults.On(fault.Fault{Kind: fault.Git5xx, Detail: "200 OK"}))
}

func TestFaults_GitMovesAddsCommitsToTheBranch(t *testing.T) {
	checkout, remote, faults := serve(t)
	head := commit(t, checkout, "one")
	tip := func() string { return run(t, checkout, "ls-remote", remote, "refs/heads/main")[:40] }
	require.Equal(t, head, tip())
	require.NoError(t, faults.On(fault.Fault{Kind: fault.GitMoves, Detail: "1s"}))
	first := tip()
	require.NotEqual(t, head, first)
	var second string
	require.Eventually(t, func() bool { second = tip(); return second != first }, time.Minute, 100*time.Millisecond)
	run(t, checkout, "fetch", "--quiet", remote, "main")
	require.Equal(t, head, run(t, checkout, "rev-parse", first+"^"), "it is on top of the checkout's HEAD")
	require.Equal(t, run(t, checkout, "rev-parse", head+"^{tree}"), run(t, checkout, "rev-parse", "FETCH_HEAD^{tree}"), "no file differs")

	next := commit(t, checkout, "two")
	moved := tip()
	require.NotEqual(t, next, moved)
	run(t, checkout, "fetch", "--quiet", remote, "main")
	run(t, checkout, "merge-base", "--is-ancestor", next, moved)
	require.True(t, faults.Off(fault.GitMoves, ""))
	require.Equal(t, next, tip())
}

func TestFaults_GitMovesAtMost(t *testing.T) {
	s := &Server{Faults: &fault.Set{}}
	require.Zero(t, s.moves())
	require.NoError(t, s.Faults.On(fault.Fault{Kind: fault.GitMoves, Detail: "1ns"}))
	require.Eventually(t, func() bool { return s.moves() == maxMoves }, time.Minute, time.Millisecond)
	require.Never(t, func() bool { return s.moves() != maxMoves }, 20*time.Millisecond, time.Millisecond)
}
