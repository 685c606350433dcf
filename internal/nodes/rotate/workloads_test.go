package rotate

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOwnedPod_IsRestartedByItsWorkload(t *testing.T) {
	workloads := map[Workload]restartable{
		{Kind: "Deployment", Namespace: "a", Name: "web"}:   {},
		{Kind: "DaemonSet", Namespace: "a", Name: "manual"}: {problem: onDelete},
	}
	deployments := map[Workload]string{{Kind: "ReplicaSet", Namespace: "a", Name: "web-1"}: "web"}
	for owner, want := range map[string]Pod{
		"":                   {Problem: "has no controller"},
		"Job/once":           {},
		"ReplicaSet/web-1":   {Workload: Workload{Kind: "Deployment", Namespace: "a", Name: "web"}},
		"ReplicaSet/alone":   {Problem: "is of ReplicaSet alone"},
		"DaemonSet/manual":   {Problem: "is of a DaemonSet with the update strategy OnDelete"},
		"Cluster/postgresql": {Problem: "is of Cluster postgresql"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}}
		if kind, name, found := strings.Cut(owner, "/"); found {
			controls := true
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &controls}}
		}
		want.Namespace, want.Name = "a", "p"
		assert.Equal(t, want, ownedPod(pod, workloads, deployments), owner)
	}
}

func TestOwnedPod_EndsByItselfWhileItIsBeingDeleted(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", DeletionTimestamp: &metav1.Time{}}}
	assert.Equal(t, Pod{Namespace: "a", Name: "p"}, ownedPod(pod, nil, nil))
}

func TestRuns_UntilTheGracePeriodIsOver(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pod := func(node string, deleted *metav1.Time) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deleted}, Spec: corev1.PodSpec{NodeName: node}}
	}
	assert.True(t, runs(pod("worker-1", nil), now))
	assert.False(t, runs(pod("", nil), now), "it has read nothing")
	assert.True(t, runs(pod("worker-1", &metav1.Time{Time: now.Add(time.Minute)}), now))
	assert.False(t, runs(pod("worker-1", &metav1.Time{Time: now}), now))
}

func TestWorkloads_WhoseTemplateDoesNotRestartAllPodsHaveAProblem(t *testing.T) {
	number := int32(2)
	paused, daemons, states := &appsv1.Deployment{}, &appsv1.DaemonSet{}, &appsv1.StatefulSet{}
	assert.Empty(t, ofDeployment(paused).problem+ofDaemonSet(daemons).problem+ofStatefulSet(states).problem)
	states.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32)}
	assert.Empty(t, ofStatefulSet(states).problem)
	states.Spec.UpdateStrategy.RollingUpdate.Partition = &number
	assert.Equal(t, partition, ofStatefulSet(states).problem)
	paused.Spec.Paused, daemons.Spec.UpdateStrategy.Type = true, appsv1.OnDeleteDaemonSetStrategyType
	states.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	assert.Equal(t, []string{"that is paused", onDelete, onDelete},
		[]string{ofDeployment(paused).problem, ofDaemonSet(daemons).problem, ofStatefulSet(states).problem})
}

func TestWorkloads_SayWhenTheyWereRestarted(t *testing.T) {
	one := &appsv1.Deployment{}
	one.Spec.Template.Annotations = map[string]string{restartedAt: "2026-01-02T03:04:05Z"}
	assert.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), ofDeployment(one).restarted)
	one.Spec.Template.Annotations[restartedAt] = "yesterday"
	assert.Zero(t, ofDeployment(one).restarted)
	assert.Equal(t, "0 of 1 pods are new ones", ofDeployment(one).missing)
}

func TestReadsRootCA_LooksAtTheVolumes(t *testing.T) {
	named := corev1.LocalObjectReference{Name: RootCA}
	for name, test := range map[string]struct {
		volume corev1.VolumeSource
		reads  bool
	}{
		"a token with the CA": {corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}, {ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named}},
		}}}, true},
		"a token for something else": {corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
		}}}, false},
		"the ConfigMap": {corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named}}, true},
		"a Secret":      {corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: RootCA}}, false},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: test.volume}}}}
		assert.Equal(t, test.reads, readsRootCA(pod), name)
	}
}

func TestWorkloads_CountNewPods(t *testing.T) {
	missing := func(generation, observed int64, pods counts) string {
		return of(corev1.PodTemplateSpec{}, generation, observed, pods).missing
	}
	assert.Equal(t, "its controller has not seen the change", missing(3, 2, counts{1, 1, 1, 1}))
	assert.Equal(t, "1 of 3 pods are new ones", missing(3, 3, counts{3, 1, 3, 3}))
	assert.Equal(t, "3 of 4 pods are new ones", missing(3, 3, counts{3, 3, 4, 3}))
	assert.Empty(t, missing(3, 3, counts{3, 3, 3, 0}), "whether they are available is asked by comparison")
}

func TestWorkloads_MakeProgressWithEachNewPodAndEachFormerOneThatIsGone(t *testing.T) {
	progress := func(observed int64, pods counts) int32 {
		return of(corev1.PodTemplateSpec{}, 3, observed, pods).progress
	}
	assert.Zero(t, progress(2, counts{3, 3, 3, 3}), "its controller has counted the former template's")
	last := progress(3, counts{3, 0, 3, 3})
	for _, next := range []counts{{3, 1, 4, 3}, {3, 1, 3, 3}, {3, 2, 3, 2}, {3, 3, 4, 3}, {3, 3, 3, 0}} {
		now := progress(3, next)
		assert.Greater(t, now, last, "%+v", next)
		last = now
	}
}
