package live

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

func TestUnmet_NamesTheFirstCheckThatFails(t *testing.T) {
	live, _, kube := rig(t)
	check := func(name, message string) cluster.Check {
		return cluster.Check{
			Name: name, Message: message, Expression: "object.status.ready >= 2",
			Objects: cluster.CheckedObjects{APIVersion: "example.com/v1", Kind: "Queue", Namespace: "queues"},
		}
	}
	checks := []cluster.Check{check("every queue is ready", "ask in #queues")}
	unmet := func() string {
		t.Helper()
		missing, err := live.Unmet(t.Context(), checks)
		require.NoError(t, err)
		return missing
	}
	assert.Empty(t, unmet(), "the kind is not served yet")
	kube.answers["GET /apis/example.com/v1"] = `{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[
		{"name":"queues/status","kind":"Queue","namespaced":true},{"name":"queues","kind":"Queue","namespaced":true}]}`
	const path = "GET /apis/example.com/v1/namespaces/queues/queues"
	kube.answers[path] = `{"kind":"QueueList","apiVersion":"example.com/v1","items":[]}`
	assert.Empty(t, unmet(), "there is none yet")
	kube.answers[path] = `{"kind":"QueueList","apiVersion":"example.com/v1","items":[
		{"kind":"Queue","apiVersion":"example.com/v1","metadata":{"name":"a","namespace":"queues"},"status":{"ready":2}},
		{"kind":"Queue","apiVersion":"example.com/v1","metadata":{"name":"b","namespace":"queues"},"status":{"ready":1}}]}`
	assert.Equal(t, "not so: every queue is ready (Queue queues/b: ask in #queues)", unmet())
	checks[0].Message = ""
	assert.Equal(t, "not so: every queue is ready (Queue queues/b: object.status.ready >= 2 is false)", unmet())
	kube.answers[path], kube.codes[path] = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"busy","code":500}`, 500
	_, err := live.Unmet(t.Context(), checks)
	require.ErrorContains(t, err, "every queue is ready")
}
