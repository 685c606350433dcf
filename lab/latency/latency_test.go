package latency

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// durations returns the duration fields of l by name.
func durations(l Latencies) map[string]time.Duration {
	found := map[string]time.Duration{}
	v := reflect.ValueOf(l)
	for i := range v.NumField() {
		if d, ok := v.Field(i).Interface().(time.Duration); ok {
			found[v.Type().Field(i).Name] = d
		}
	}
	return found
}

func TestLatencies_AreNeverZero(t *testing.T) {
	tiny, err := Default().Scale(1e-12)
	require.NoError(t, err)
	require.Greater(t, len(durations(tiny)), 5)
	for name, d := range durations(Default()) {
		require.Positive(t, d, name)
		require.Positive(t, durations(tiny)[name], name)
	}
}

func TestScale_StretchesEveryDuration(t *testing.T) {
	slow, err := Default().Scale(3)
	require.NoError(t, err)
	for name, d := range durations(Default()) {
		require.Equal(t, 3*d, durations(slow)[name], name)
	}
	for _, factor := range []float64{0, -1} {
		_, err := Default().Scale(factor)
		require.ErrorContains(t, err, "never zero")
	}
}
