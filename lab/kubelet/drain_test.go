package kubelet

import (
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCordon_OfSomebodyElseStays(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
	applyCordoned(n, true)
	require.True(t, n.Spec.Unschedulable)
	applyCordoned(n, false)
	require.False(t, n.Spec.Unschedulable)
	require.Empty(t, n.Annotations)

	n.Spec.Unschedulable = true // by a person
	applyCordoned(n, true)
	require.NotContains(t, n.Annotations, constants.AnnotationCordonedKey)
	applyCordoned(n, false)
	require.True(t, n.Spec.Unschedulable)
}
