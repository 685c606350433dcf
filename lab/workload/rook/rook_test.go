package rook

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/lab/workload"
)

func TestApply_SendsEachKindToItsResource(t *testing.T) {
	client := fake.NewSimpleDynamicClient(runtime.NewScheme())
	var sent []string
	client.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch, on := a.(clienttesting.PatchAction), a.GetResource()
		object := &unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal(patch.GetPatch(), &object.Object))
		require.NotContains(t, object.Object, "status")
		sent = append(sent, on.Group+"/"+on.Version+" "+on.Resource+" "+patch.GetNamespace()+" "+object.GetAPIVersion()+" "+object.GetKind())
		return true, object, nil
	})
	o := newApplier(workload.Container{Cluster: &workload.Cluster{Dynamic: client}}, "rook")
	meta := metav1.ObjectMeta{Namespace: "rook-ceph", Name: "x"}
	for _, object := range []runtime.Object{
		&corev1.Secret{ObjectMeta: meta}, &corev1.ConfigMap{ObjectMeta: meta}, &appsv1.Deployment{ObjectMeta: meta},
		&appsv1.DaemonSet{ObjectMeta: meta}, &batchv1.Job{ObjectMeta: meta}, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		&corev1.Secret{ObjectMeta: meta}, // unchanged: it is not sent again
	} {
		require.NoError(t, o.apply(t.Context(), object))
	}
	require.Equal(t, []string{
		"/v1 secrets rook-ceph v1 Secret", "/v1 configmaps rook-ceph v1 ConfigMap", "apps/v1 deployments rook-ceph apps/v1 Deployment",
		"apps/v1 daemonsets rook-ceph apps/v1 DaemonSet", "batch/v1 jobs rook-ceph batch/v1 Job",
		"storage.k8s.io/v1 csidrivers  storage.k8s.io/v1 CSIDriver",
	}, sent)
}

func TestHealth_OfACephClusterIsUpToAMinuteBehind(t *testing.T) {
	now := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	require.True(t, healthIsDue(nil, now, time.Minute), "the first one is written at once")
	was := map[string]any{"lastChecked": now.Format(time.RFC3339), "health": "HEALTH_OK"}
	require.False(t, healthIsDue(was, now.Add(59*time.Second), time.Minute))
	require.True(t, healthIsDue(was, now.Add(time.Minute), time.Minute))
}
