package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/lab/workload"
)

// metadataRetry is how long Talos's controller pauses after an update that the API server refused.
const metadataRetry = time.Second

// metadataChanged makes Talos's controller look at the Node object again.
func (k *Kubelet) metadataChanged() { workload.Poke(k.changes) }

// keepMetadata keeps labels, annotations and taints on the Node object, as Talos's k8s.NodeApplyController does: all in one update, on a
// worker with the kubelet's own credentials, on a control plane with an administrator's. NodeRestriction refuses the whole update of a
// worker if it changes a taint, or a label that a node may not set on itself. Talos tries again and again.
func (k *Kubelet) keepMetadata(ctx context.Context) {
	client := k.own
	if k.o.ControlPlane {
		client = k.c.client
	}
	said := ""
	for ctx.Err() == nil {
		k.reportNode()
		var again <-chan time.Time
		if err := k.applyMetadata(ctx, client); err != nil && ctx.Err() == nil {
			again = time.After(metadataRetry)
			if apierrors.IsConflict(err) {
				again = time.After(retry)
			} else if said != err.Error() {
				said = err.Error()
				k.log.Debug("labels, annotations and taints not applied", "err", err)
				if k.o.TalosLog != nil {
					k.o.TalosLog(fmt.Sprintf(`controller failed {"component": "controller-runtime", "controller": "k8s.NodeApplyController", "error": %q}`, said))
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-again:
		case <-k.changes:
		}
	}
}

// reportNode hands the Node object to NodeChanged.
func (k *Kubelet) reportNode() {
	if k.o.NodeChanged == nil {
		return
	}
	n, err := k.c.nodes.Get(k.o.Name)
	if err != nil {
		n = nil // the cache has no other error
	}
	k.o.NodeChanged(n)
}

func (k *Kubelet) applyMetadata(ctx context.Context, client kubernetes.Interface) error {
	have, err := client.CoreV1().Nodes().Get(ctx, k.o.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("error getting node: %w", err)
	}
	n := have.DeepCopy()
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	labels, annotations, taints := owned(n, constants.AnnotationOwnedLabels), owned(n, constants.AnnotationOwnedAnnotations), owned(n, constants.AnnotationOwnedTaints)
	labels.apply(n.Labels, k.o.Labels)
	annotations.apply(n.Annotations, k.o.Annotations)
	n.Spec.Taints = taints.applyTaints(n.Spec.Taints, k.o.Taints)
	applyCordoned(n, k.cordoned.Load())
	labels.record(n, constants.AnnotationOwnedLabels)
	annotations.record(n, constants.AnnotationOwnedAnnotations)
	taints.record(n, constants.AnnotationOwnedTaints)
	if equality.Semantic.DeepEqual(have, n) {
		return nil
	}
	_, err = client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
	return err
}

// ownership is the set of keys that Talos has set. It changes and removes only these. An annotation of the Node object holds it.
type ownership map[string]bool

func owned(n *corev1.Node, annotation string) ownership {
	var keys []string
	_ = json.Unmarshal([]byte(n.Annotations[annotation]), &keys) // what somebody else has written there is no list: nothing is owned
	o := ownership{}
	for _, key := range keys {
		o[key] = true
	}
	return o
}

func (o ownership) record(n *corev1.Node, annotation string) {
	if len(o) == 0 {
		delete(n.Annotations, annotation)
		return
	}
	raw, _ := json.Marshal(slices.Sorted(maps.Keys(o))) // a list of strings: never an error
	n.Annotations[annotation] = string(raw)
}

// apply sets what is wanted. A key of somebody else keeps its value.
func (o ownership) apply(have, want map[string]string) {
	for key, value := range want {
		if current, taken := have[key]; !taken || current == value || o[key] {
			have[key], o[key] = value, true
		}
	}
	for key := range o {
		if _, wanted := want[key]; !wanted {
			delete(have, key)
			delete(o, key)
		}
	}
}

// applyTaints returns the taints as they should be. A taint of somebody else stays.
func (o ownership) applyTaints(have, want []corev1.Taint) []corev1.Taint {
	for _, taint := range want {
		i := slices.IndexFunc(have, func(t corev1.Taint) bool { return t.Key == taint.Key })
		switch {
		case i < 0:
			have = append(have, taint)
		case o[taint.Key]:
			have[i].Value, have[i].Effect = taint.Value, taint.Effect
		case have[i].Value != taint.Value || have[i].Effect != taint.Effect:
			continue
		}
		o[taint.Key] = true
	}
	return slices.DeleteFunc(have, func(t corev1.Taint) bool {
		drop := o[t.Key] && !slices.ContainsFunc(want, func(w corev1.Taint) bool { return w.Key == t.Key })
		if drop {
			delete(o, t.Key)
		}
		return drop
	})
}
