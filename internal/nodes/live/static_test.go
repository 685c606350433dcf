package live

import (
	"fmt"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mirror is the answer of the Kubernetes API for the pods of a node.
func mirror(config, secrets, ready, state string) string {
	return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"kube-system",
"name":"kube-apiserver-cp-1","annotations":{"kubernetes.io/config.mirror":"a",
"talos.dev/config-version":%q,"talos.dev/secrets-version":%q}},
"status":{"conditions":[{"type":"Ready","status":%q}],"containerStatuses":[{"name":"kube-apiserver","state":%s}]}}]}`,
		config, secrets, ready, state)
}

func TestStaticPods_RunAsTalosHasWrittenThemLastAndAreReady(t *testing.T) {
	live, node, kube, talos := rigOf(t, "v1.14.6")
	problem, err := live.StaticPods(t.Context(), node)
	require.NoError(t, err)
	assert.Empty(t, problem, "a worker has none")

	static := k8s.NewStaticPod(k8s.NamespaceName, "kube-apiserver")
	static.TypedSpec().Pod = map[string]any{"metadata": map[string]any{"name": "kube-apiserver", "namespace": "kube-system",
		"annotations": map[string]any{"talos.dev/config-version": "2", "talos.dev/secrets-version": "1"}}}
	require.NoError(t, talos.resources.Create(t.Context(), static))
	const running = `{"running":{}}`
	for answer, want := range map[string]string{
		`{"kind":"PodList","apiVersion":"v1","items":[]}`: "kube-apiserver has no pod",
		mirror("2", "1", "True", running):                 "",
		mirror("1", "1", "True", running):                 "kube-apiserver has not started again with its new arguments and files",
		mirror("2", "0", "True", running):                 "kube-apiserver has not started again with its new arguments and files",
		mirror("2", "1", "False", running):                "kube-apiserver is not Ready",
		mirror("2", "1", "False", `{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 10s"}}`): "kube-apiserver is not Ready: " +
			"CrashLoopBackOff back-off 10s",
	} {
		kube.answers["GET /api/v1/pods"] = answer
		problem, err := live.StaticPods(t.Context(), node)
		require.NoError(t, err)
		assert.Equal(t, want, problem)
	}
	kube.answers["GET /api/v1/pods"], kube.codes["GET /api/v1/pods"] = "{}", 500
	_, err = live.StaticPods(t.Context(), node)
	require.ErrorContains(t, err, "the Kubernetes API does not answer")
}
