package kubelet

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sink collects what a follower receives.
type sink struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestLog_ReadsTailSinceAndLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c", "0.log")
	l, err := createLog(path)
	require.NoError(t, err)
	for i := range 3 {
		_, err := fmt.Fprintf(l, "line %d\n", i)
		require.NoError(t, err)
	}
	_, err = l.Write([]byte("unfinished"))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	read := func(o logOptions) string {
		var b bytes.Buffer
		require.NoError(t, readLog(t.Context(), path, o, closed(), &b))
		return b.String()
	}
	require.Equal(t, "line 0\nline 1\nline 2\nunfinished\n", read(logOptions{tail: -1}))
	require.Equal(t, "line 2\nunfinished\n", read(logOptions{tail: 2}))
	require.Empty(t, read(logOptions{tail: 0}))
	require.Empty(t, read(logOptions{tail: -1, since: time.Now().Add(time.Hour)}))
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\S+Z unfinished\n$`, read(logOptions{tail: 1, timestamps: true}))
}

func TestLog_FollowsUntilTheContainerEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	l, err := createLog(path)
	require.NoError(t, err)
	ended, done := make(chan struct{}), make(chan error, 1)
	var out sink
	go func() { done <- readLog(t.Context(), path, logOptions{follow: true, tail: -1}, ended, &out) }()
	_, err = l.Write([]byte("first\nsec"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return out.String() == "first\n" }, time.Minute, time.Millisecond)
	_, err = l.Write([]byte("ond\n"))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	close(ended)
	require.NoError(t, <-done)
	require.Equal(t, "first\nsecond\n", out.String())
}
