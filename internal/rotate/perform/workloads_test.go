package perform

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/rotate"
)

func TestOwnedPod_IsRestartedByItsWorkload(t *testing.T) {
	workloads := map[rotate.Workload]restartable{
		{Kind: "Deployment", Namespace: "a", Name: "web"}:   {},
		{Kind: "DaemonSet", Namespace: "a", Name: "manual"}: {problem: "is of a DaemonSet with the update strategy OnDelete"},
	}
	deployments := map[rotate.Workload]string{{Kind: "ReplicaSet", Namespace: "a", Name: "web-1"}: "web"}
	for owner, want := range map[string]rotate.Pod{
		"":                   {Problem: "has no controller"},
		"Job/once":           {},
		"ReplicaSet/web-1":   {Workload: rotate.Workload{Kind: "Deployment", Namespace: "a", Name: "web"}},
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

func TestReadsRootCA_LooksAtTheVolumes(t *testing.T) {
	named := corev1.LocalObjectReference{Name: rotate.RootCA}
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
		"a Secret":      {corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: rotate.RootCA}}, false},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: test.volume}}}}
		assert.Equal(t, test.reads, readsRootCA(pod), name)
	}
}

func TestUnfinished_CountsNewPods(t *testing.T) {
	assert.Equal(t, "its controller has not seen the change", unfinished(3, 2, 1, 1, 1))
	assert.Equal(t, "1 of 3 pods are new ones", unfinished(3, 3, 3, 1, 3))
	assert.Equal(t, "3 of 4 pods are new ones", unfinished(3, 3, 3, 3, 4))
	assert.Empty(t, unfinished(3, 3, 3, 3, 3))
}
