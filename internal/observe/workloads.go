package observe

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/cluster/secrecy"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
	"github.com/slipway-platform/slipway/internal/health/workloads"
)

// Workloads reads what the checks of package workloads judge. It changes nothing: samples are sent as dry runs.
type Workloads struct {
	*observer[workloads.Spec, workloads.Cluster]

	samples []sample
}

// sample is an object that is sent to the API as a dry run.
type sample struct {
	title  string
	kind   schema.GroupVersionResource
	object *unstructured.Unstructured
}

// NewWorkloads returns a Workloads that has read nothing yet.
func NewWorkloads(spec *workloads.Spec, client *Kube) (*Workloads, error) {
	w := &Workloads{observer: newObserver(spec, client, workloads.Evaluate)}
	for i, accepted := range spec.Accepts {
		object := new(unstructured.Unstructured)
		if err := object.UnmarshalJSON(accepted.Object); err != nil {
			return nil, fmt.Errorf("accepts[%d].object: %w", i, err)
		}
		w.samples = append(w.samples, sample{
			title: accepted.Title(), object: object,
			kind: object.GroupVersionKind().GroupVersion().WithResource(accepted.Resource),
		})
	}
	return w, nil
}

// Watch reads until ctx ends, and returns when everything it started has ended.
func (w *Workloads) Watch(ctx context.Context) {
	all := w.watches(ctx)
	defer all.Wait()
	namespaces := map[string]bool{}
	for _, release := range w.spec.Releases {
		namespaces[release.Namespace] = true
	}
	for namespace := range namespaces {
		for name, resource := range kubeapi.Workloads {
			at := workloads.Place{Kind: name, Namespace: namespace}
			follow(all, kind{GroupVersionResource: resource, Namespace: namespace}, plain(workload),
				func(seen *workloads.Cluster, sets health.Seen[kube.Workload]) { put(&seen.Sets, at, sets) })
		}
		follow(all, kind{GroupVersionResource: kubeapi.Pods, Namespace: namespace}, kubePod,
			func(seen *workloads.Cluster, pods health.Seen[kube.Pod]) { put(&seen.Pods, namespace, pods) })
	}
	for _, one := range w.samples {
		all.Go(func() { w.trySample(ctx, one) })
	}
	for _, one := range w.spec.Awaits {
		resource := schema.GroupVersionResource{Group: one.Group, Version: one.Version, Resource: one.Resource}
		follow(all, kind{GroupVersionResource: resource, Namespace: one.Namespace, Name: one.Name}, plain(acted(one.Condition)),
			func(seen *workloads.Cluster, objects health.Seen[workloads.Acted]) {
				put(&seen.Acted, one.Title(), objects)
			})
	}
}

// acted reads a condition of an object.
func acted(condition string) func(*unstructured.Unstructured) (workloads.Acted, error) {
	return func(object *unstructured.Unstructured) (workloads.Acted, error) {
		observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
		found := kubeapi.ConditionOf(object.Object, condition)
		return workloads.Acted{
			Current: observed == object.GetGeneration(), Status: found.Status, Message: secrecy.Line(firstLine(found.Message)),
		}, nil
	}
}

// trySample sends a sample again and again while all workloads run: a workload may serve its webhook.
func (w *Workloads) trySample(ctx context.Context, one sample) {
	var answer workloads.Answer
	for ; ctx.Err() == nil; pause(ctx, pollEvery) {
		var ready bool
		w.read(func(seen *workloads.Cluster) { ready = workloads.Run(w.spec, seen) })
		if !ready {
			continue
		}
		before := answer
		err := asked(ctx, !before.Asked, func() *health.Broken { return w.try(ctx, one) }, temporary)
		answer = workloads.Answer{Asked: true, Err: err, Lost: before.Lost}
		if ctx.Err() != nil {
			return
		}
		if before.Asked && before.Err == nil && answer.Err != nil {
			answer.Lost++
		}
		w.update(func(seen *workloads.Cluster) { put(&seen.Samples, one.title, answer) })
	}
}

func (w *Workloads) try(ctx context.Context, one sample) *health.Broken {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if _, err := w.kube.Objects.Resource(one.kind).Namespace(one.object.GetNamespace()).Create(ctx, one.object, options); err != nil {
		return broken(err)
	}
	return nil
}
