package live

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestCluster_SelectsPatchesAndDeletesObjects(t *testing.T) {
	live, _, kube := rig(t)
	of := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	kube.answers["GET /api/v1/configmaps"] = `{"kind":"ConfigMapList","apiVersion":"v1","items":[
		{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"root","namespace":"a","uid":"u-1"}}]}`
	found, err := live.Select(t.Context(), of, metav1.ListOptions{FieldSelector: "metadata.name=root"})
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, "a", found[0].GetNamespace())

	const at = "/api/v1/namespaces/a/configmaps/root"
	kube.answers["PATCH "+at] = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"root","namespace":"a"}}`
	require.NoError(t, live.Patch(t.Context(), of, "a", "root", map[string]any{"immutable": true}))
	assert.JSONEq(t, `{"immutable":true}`, kube.bodies["PATCH "+at])

	require.NoError(t, live.Delete(t.Context(), of, "a", "root", "u-1"), "it has gone already")
	assert.Contains(t, kube.bodies["DELETE "+at], `"preconditions":{"uid":"u-1"}`)
	kube.answers["DELETE "+at] = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","code":403}`
	kube.codes["DELETE "+at] = 403
	require.ErrorContains(t, live.Delete(t.Context(), of, "a", "root", "u-1"), "no")
}
