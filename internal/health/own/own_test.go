package own

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/tests/golden"
	"github.com/slipway-platform/slipway/tests/healthtest"
)

var databases = cluster.Check{
	Name:       "the databases have a primary",
	Objects:    cluster.CheckedObjects{APIVersion: "postgresql.cnpg.io/v1", Kind: "Cluster", Namespace: "databases", Selector: "team=data"},
	Expression: "object.status.ready == object.spec.instances",
	Message:    "ask in #databases",
}

// seen returns the objects of the check, each with a number of ready instances of three; -1 means that it does not say.
func seen(t *testing.T, ready map[string]int64) Seen {
	t.Helper()
	expression, err := databases.Compile()
	require.NoError(t, err)
	objects := health.Seen[Object]{Synced: true}
	for name, number := range ready {
		object := map[string]any{
			"metadata": map[string]any{"name": name, "namespace": "databases"}, "spec": map[string]any{"instances": int64(3)},
		}
		if number >= 0 {
			object["status"] = map[string]any{"ready": number}
		}
		objects.Items = append(objects.Items, See(t.Context(), expression, &unstructured.Unstructured{Object: object}))
	}
	return Seen{databases.Name: objects}
}

func TestChecks_SayInTheirOwnWordsWhatFails(t *testing.T) {
	without := databases
	without.Message = ""
	reports := map[string]string{}
	for name, one := range map[string]struct {
		check  cluster.Check
		seen   Seen
		absent Absent
		holds  bool
	}{
		"all hold":              {databases, seen(t, map[string]int64{"a": 3, "b": 3}), AbsentFails, true},
		"one does not":          {databases, seen(t, map[string]int64{"a": 3, "b": 2}), AbsentIsListed, false},
		"without words":         {without, seen(t, map[string]int64{"a": 3, "b": 2}), AbsentIsListed, false},
		"a field is missing":    {databases, seen(t, map[string]int64{"b": -1}), AbsentIsListed, false},
		"missing without words": {without, seen(t, map[string]int64{"b": -1}), AbsentIsListed, false},
		"absent":                {databases, seen(t, nil), AbsentIsListed, true},
		"absent at the end":     {databases, seen(t, nil), AbsentFails, false},
		"kind not served":       {databases, Seen{databases.Name: {Err: &health.Broken{Reason: "no kind", Unknown: true}}}, AbsentIsListed, true},
		"kind not served, end":  {databases, Seen{databases.Name: {Err: &health.Broken{Reason: "no kind", Unknown: true}}}, AbsentFails, false},
		"not readable":          {databases, Seen{databases.Name: {Err: &health.Broken{Reason: "refused"}}}, AbsentIsListed, false},
		"not read yet":          {databases, nil, AbsentIsListed, false},
	} {
		results := Evaluate([]cluster.Check{one.check}, one.seen, one.absent)
		assert.Equal(t, one.holds, health.Hold(results), name)
		reports[name] = healthtest.Report(t, "gate", results)
	}
	golden.Cases(t, "testdata/reports.txt", reports)
}

func TestSpec_NamesEveryProblemOfItsChecks(t *testing.T) {
	wrong := databases
	wrong.Expression, wrong.Objects.Kind = "object.a ==", ""
	err := Validate([]cluster.Check{databases, wrong})
	for _, problem := range []string{"checks[1].objects.kind: is empty", "checks[1].expression: character", "checks[1].name: the databases"} {
		assert.ErrorContains(t, err, problem)
	}
	assert.NoError(t, Validate([]cluster.Check{databases}))
	assert.ErrorContains(t, (&Spec{}).Validate(), "checks: is empty")
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
		assert.Equal(t, more, See(t.Context(), copies, &pool).Holds, text)
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
			seen := See(t.Context(), expression, &object)
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
		assert.Equal(t, holds, See(t.Context(), asked, &object).Holds, at)
	}
	assert.True(t, See(t.Context(), asked, &unstructured.Unstructured{Object: map[string]any{}}).Holds, "no Ceph yet")
	declared.Lifecycle.AllowDegradedStorage = true
	assert.Equal(t, cluster.TurnChecks{Checks: declared.Checks}, declared.TurnChecks())
}
