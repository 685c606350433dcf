package own

import (
	"testing"

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
	objects := health.Seen[cluster.CheckedObject]{Synced: true}
	for name, number := range ready {
		object := map[string]any{
			"metadata": map[string]any{"name": name, "namespace": "databases"}, "spec": map[string]any{"instances": int64(3)},
		}
		if number >= 0 {
			object["status"] = map[string]any{"ready": number}
		}
		objects.Items = append(objects.Items, cluster.Checked(t.Context(), expression, &unstructured.Unstructured{Object: object}))
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
	assert.ErrorContains(t, (&Spec{}).Validate(), "checks: is empty")
	assert.ErrorContains(t, (&Spec{Checks: []cluster.Check{databases, databases}}).Validate(), "checks[1].name: the databases")
}
