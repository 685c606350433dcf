package rook

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-platform/slipway/lab/workload"
)

// applyAgain is after how long an unchanged object is applied again.
const applyAgain = 30 * time.Second

// applied is an object that was applied. It is applied again after a while, in case somebody has changed it.
type applied struct {
	content string
	at      time.Time
}

// applier applies the objects that an operator makes, and logs each line once.
type applier struct {
	workload.Container
	manager string
	applied map[string]applied // what was applied last, by kind and name
	logged  map[string]bool
}

func newApplier(c workload.Container, manager string) applier {
	return applier{Container: c, manager: manager, applied: map[string]applied{}, logged: map[string]bool{}}
}

func (a *applier) logOnce(line string) {
	if !a.logged[line] {
		a.logged[line] = true
		fmt.Fprintln(a.Log, line)
	}
}

// apply makes an object as it should be, of a kind of Kubernetes itself or a custom resource.
func (a *applier) apply(ctx context.Context, object runtime.Object) error {
	u, custom := object.(*unstructured.Unstructured)
	if !custom {
		kinds, _, err := scheme.Scheme.ObjectKinds(object)
		if err != nil {
			return err
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return err
		}
		u = &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(kinds[0])
	}
	kind, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind()) // right for the kinds that the operators make
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "creationTimestamp")
	text, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	id := kind.Resource + "/" + u.GetNamespace() + "/" + u.GetName()
	if last := a.applied[id]; last.content == string(text) && time.Since(last.at) < applyAgain {
		return nil
	}
	api := a.Cluster.Dynamic.Resource(kind).Namespace(u.GetNamespace()) // "" for CSIDrivers, which have none
	if _, err := api.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: a.manager, Force: true}); err != nil {
		return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	a.applied[id] = applied{string(text), time.Now()}
	return nil
}
