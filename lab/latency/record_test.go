package latency

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRecorder_WritesALineForEachSpan(t *testing.T) {
	var text bytes.Buffer
	r := NewRecorder(&text)
	before := time.Now()
	var all sync.WaitGroup
	for range 50 {
		all.Go(r.Begin("boot", "infra-cp-1"))
	}
	all.Wait()
	decoder, n := json.NewDecoder(&text), 0
	for ; decoder.More(); n++ {
		var s Span
		require.NoError(t, decoder.Decode(&s))
		require.Equal(t, "boot", s.What)
		require.Equal(t, "infra-cp-1", s.Of)
		require.False(t, s.From.Before(before))
		require.False(t, s.To.Before(s.From))
	}
	require.Equal(t, 50, n)
}

func TestRecorder_ThatIsNilWritesNothing(t *testing.T) {
	var l Latencies
	require.NotPanics(t, l.Record.Begin("boot", "infra-cp-1"))
}

func TestScale_KeepsTheRecorder(t *testing.T) {
	l := Default()
	l.Record = NewRecorder(&bytes.Buffer{})
	scaled, err := l.Scale(2)
	require.NoError(t, err)
	require.Same(t, l.Record, scaled.Record)
}
