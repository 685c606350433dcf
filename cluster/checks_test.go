package cluster_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/cluster"
)

var databases = cluster.Check{
	Name:       "the databases have a primary",
	Objects:    cluster.CheckedObjects{APIVersion: "postgresql.cnpg.io/v1", Kind: "Cluster"},
	Expression: "object.status.ready == object.spec.instances",
}

func TestValidateChecks_NamesEveryProblem(t *testing.T) {
	wrong := databases
	wrong.Expression, wrong.Objects.Kind = "object.a ==", " "
	err := cluster.ValidateChecks([]cluster.Check{databases, wrong})
	for _, problem := range []string{"checks[1].objects.kind: is empty", "checks[1].expression: character", "checks[1].name: the databases"} {
		assert.ErrorContains(t, err, problem)
	}
	assert.NoError(t, cluster.ValidateChecks([]cluster.Check{databases}))
}

func TestTurnChecks_AProviderOfStorageChangesNoNodeWhileCephLacksCopies(t *testing.T) {
	declared := &cluster.Cluster{Checks: []cluster.Check{databases}}
	assert.Equal(t, cluster.TurnChecks{Checks: declared.Checks}, declared.TurnChecks())
	declared.Storage.Role = cluster.StorageProvider
	checks := declared.TurnChecks()
	require.Len(t, checks.Checks, 2)
	require.Len(t, checks.Leaving, 1)
	require.Len(t, checks.Copies, 1)
	copies, err := checks.Copies[0].Compile()
	require.NoError(t, err)
	for text, more := range map[string]bool{
		`{"spec": {"replicated": {"size": 1}}}`: false, `{"spec": {"replicated": {"size": 3}}}`: true, `{"spec": {"erasureCoded": {}}}`: true,
	} {
		var pool unstructured.Unstructured
		require.NoError(t, json.Unmarshal([]byte(text), &pool.Object))
		assert.Equal(t, more, cluster.Checked(t.Context(), copies, &pool).Holds, text)
	}
	assert.Greater(t, checks.Settle.Duration, time.Minute, "Rook asks Ceph once a minute")
	for text, holds := range map[string]struct{ whole, leaving bool }{
		`{}`:                                   {true, true},
		`{"status": {"phase": "Progressing"}}`: {true, true},
		`{"status": {"ceph": {"health": "HEALTH_OK", "details": {}, "lastChecked": "NOW"}}}`:                  {true, true},
		`{"status": {"ceph": {"health": "HEALTH_OK", "lastChecked": "NOW"}}}`:                                 {true, true},
		`{"status": {"ceph": {"details": {"PG_NOT_SCRUBBED": {"severity": "x"}}, "lastChecked": "NOW"}}}`:     {true, true},
		`{"status": {"ceph": {"details": {"PG_DEGRADED": {}, "OSD_DOWN": {}}, "lastChecked": "NOW"}}}`:        {false, true},
		`{"status": {"ceph": {"details": {"A": {}, "MON_DOWN": {"severity": "x"}}, "lastChecked": "NOW"}}}`:   {false, true},
		`{"status": {"ceph": {"details": {"PG_AVAILABILITY": {}}, "lastChecked": "NOW"}}}`:                    {false, false},
		`{"status": {"ceph": {"details": {"error": {"message": "timed out"}}, "lastChecked": "NOW"}}}`:        {false, false},
		`{"status": {"ceph": {"health": "HEALTH_OK", "details": {}, "lastChecked": "2026-01-02T03:04:05Z"}}}`: {false, false},
		`{"status": {"ceph": {"health": "HEALTH_OK", "details": {}}}}`:                                        {false, false},
	} {
		var object unstructured.Unstructured
		text = strings.ReplaceAll(text, "NOW", time.Now().UTC().Add(-time.Minute).Format(time.RFC3339))
		require.NoError(t, json.Unmarshal([]byte(text), &object.Object))
		for check, holds := range map[*cluster.Check]bool{&checks.Checks[1]: holds.whole, &checks.Leaving[0]: holds.leaving} {
			expression, err := check.Compile()
			require.NoError(t, err)
			seen := cluster.Checked(t.Context(), expression, &object)
			assert.Equal(t, holds, seen.Holds, "%s: %s: %s", check.Name, text, seen.Reason(*check))
		}
	}
	start := time.Now()
	assert.Empty(t, checks.Since(time.Time{}, nil))
	since := checks.Since(start, checks.Checks)
	require.Len(t, since, 3)
	asked, err := since[2].Compile()
	require.NoError(t, err)
	for at, holds := range map[time.Time]bool{start.Add(-time.Minute): false, start: false, start.Add(time.Second): true} {
		object := unstructured.Unstructured{Object: map[string]any{
			"status": map[string]any{"ceph": map[string]any{"lastChecked": at.UTC().Format(time.RFC3339)}},
		}}
		assert.Equal(t, holds, cluster.Checked(t.Context(), asked, &object).Holds, at)
	}
	assert.True(t, cluster.Checked(t.Context(), asked, &unstructured.Unstructured{Object: map[string]any{}}).Holds, "no Ceph yet")
	declared.Lifecycle.AllowDegradedStorage = true
	assert.Equal(t, cluster.TurnChecks{Checks: declared.Checks}, declared.TurnChecks())
}
