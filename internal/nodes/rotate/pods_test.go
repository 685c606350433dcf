package rotate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStale_ArePodsThatMayHaveReadSomethingElse(t *testing.T) {
	kept := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	roots := []Root{
		{Namespace: "kept", Kept: true, Since: kept}, {Namespace: "free", Since: kept}, {Namespace: "left", Kept: true, Since: kept},
		{Namespace: "by-hand", Kept: true},
	}
	pod := func(namespace, name string, after time.Duration) Pod {
		return Pod{Namespace: namespace, Name: name, Created: kept.Add(after)}
	}
	stale := Stale([]Pod{
		pod("kept", "earlier", -time.Second), pod("kept", "same", 0), pod("kept", "later", time.Minute), pod("free", "later", time.Hour),
		pod("new", "unknown", time.Hour), pod("left", "earlier", -time.Second),
		pod("by-hand", "later", time.Hour),
		{Namespace: "kept", Name: "restarted", Created: kept, Restarted: kept},
		{Namespace: "kept", Name: "restarted-before", Created: kept.Add(-time.Hour), Restarted: kept.Add(-time.Hour)},
	}, roots, []string{"left"})
	var names []string
	for _, one := range stale {
		names = append(names, one.Namespace+"/"+one.Name)
	}
	assert.Equal(t, []string{"kept/earlier", "kept/same", "free/later", "new/unknown", "by-hand/later", "kept/restarted-before"}, names)
}

func TestCheckPods_NamesEachThatNothingRestarts(t *testing.T) {
	pods := []Pod{{Namespace: "a", Name: "bare", Problem: "has no controller"}, {Namespace: "a", Name: "job"},
		{Namespace: "db", Name: "pg-1", Problem: "is of Cluster pg"}}
	err := CheckPods(pods)
	require.ErrorContains(t, err, "a/bare has no controller\ndb/pg-1 is of Cluster pg")
	require.ErrorContains(t, err, "lifecycle.certificateAuthorities.leaveNamespaces")
	assert.NotContains(t, err.Error(), "a/job")
	require.NoError(t, CheckPods(pods[1:2]))
}

func TestBundle_HasAllThatSplitReturns(t *testing.T) {
	one, two := "-----BEGIN ONE-----\naGk=\n-----END ONE-----\n", "\n-----BEGIN TWO-----\naGk=\n-----END TWO-----"
	all := Split(Bundle([]string{one, two}))
	require.Len(t, all, 2)
	assert.True(t, Equal(all, []string{two, one}))
	assert.False(t, Equal(all, []string{one}))
	assert.Empty(t, Split("text"))
}
