package observe

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/tests/fakes/buckettest"
)

func TestNewestBackup_IsTheNewestObjectOfTheCronJobOfThisCluster(t *testing.T) {
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	var server buckettest.Server
	in := server.Start(t)
	seen := newestBackup(t.Context(), in, "infra")
	require.Nil(t, seen.Err)
	assert.True(t, seen.Changed.IsZero())
	server.Put("infra/infra-2026-11-26T06:17:00Z.snap.age", nil, noon.Add(-2*time.Hour))
	server.Put("infra/infra-2026-11-26T00:17:00Z.snap.age", nil, noon.Add(-8*time.Hour))
	server.Put("infra/infra-20261126T120000Z.db.age", nil, noon) // of `up`
	server.Put("apps/apps-2026-11-26T12:17:00Z.snap.age", nil, noon)
	seen = newestBackup(t.Context(), in, "infra")
	assert.Equal(t, "infra/infra-2026-11-26T06:17:00Z.snap.age", seen.Key)
	assert.WithinDuration(t, time.Now(), seen.Read, time.Minute)
	server.OnRequest = func(*http.Request) string { return "AccessDenied" }
	seen = newestBackup(t.Context(), in, "infra")
	require.NotNil(t, seen.Err)
	assert.Contains(t, seen.Err.Reason, "AccessDenied: The server says no")
}

func TestCronJob_TellsWhatItDoesAndWhenItSucceeded(t *testing.T) {
	job, err := cronJob(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"creationTimestamp": "2026-11-01T00:00:00Z"}, "spec": map[string]any{"suspend": true},
		"status": map[string]any{"active": []any{map[string]any{"name": "one"}}, "lastScheduleTime": "2026-11-26T06:17:00Z"},
	}})
	require.NoError(t, err)
	assert.True(t, job.Suspended)
	assert.Equal(t, 1, job.Running)
	assert.Equal(t, "2026-11-26T06:17:00Z", job.Scheduled.UTC().Format(time.RFC3339))
	assert.True(t, job.Succeeded.IsZero())
	assert.WithinDuration(t, time.Now(), job.Read, time.Minute)
}
