package observe

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/internal/health"
)

var statefulSetsKind = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}

// workloadKinds are the resources of health.WorkloadKinds.
var workloadKinds = map[string]schema.GroupVersionResource{
	"Deployment": deploymentsKind, "StatefulSet": statefulSetsKind, "DaemonSet": daemonSetsKind,
}

// Workloads keeps in its store what the checks of Helm releases read. It changes nothing: what it offers to the API is a dry run.
type Workloads struct {
	Store *Store[health.Workloads]

	spec    *health.WorkloadsSpec
	kube    *Kube
	samples []sample
}

// sample is an object that is offered to the API, ready to be sent.
type sample struct {
	title  string
	kind   schema.GroupVersionResource
	object *unstructured.Unstructured
}

// NewWorkloads asks nothing yet.
func NewWorkloads(spec *health.WorkloadsSpec, kube *Kube) (*Workloads, error) {
	w := &Workloads{Store: NewStore[health.Workloads](), spec: spec, kube: kube}
	w.Store.Update(func(seen *health.Workloads) {
		*seen = health.Workloads{Sets: map[health.Place]health.Seen[health.Workload]{}, Pods: map[string]health.Seen[health.Pod]{}, Samples: map[string]health.Accepted{}}
	})
	for i, offered := range spec.Accepts {
		object := new(unstructured.Unstructured)
		if err := object.UnmarshalJSON(offered.Object); err != nil {
			return nil, fmt.Errorf("accepts[%d].object: %w", i, err)
		}
		w.samples = append(w.samples, sample{
			title: offered.Title(), object: object,
			kind: object.GroupVersionKind().GroupVersion().WithResource(offered.Resource),
		})
	}
	return w, nil
}

// Watch looks until ctx ends, and returns when everything it started has ended.
func (w *Workloads) Watch(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	namespaces := map[string]bool{}
	for _, release := range w.spec.Releases {
		namespaces[release.Namespace] = true
	}
	for namespace := range namespaces {
		for name, kind := range workloadKinds {
			running.Go(func() {
				Watch(ctx, w.kube, Kind{GroupVersionResource: kind, Namespace: namespace}, plain(workload), func(sets health.Seen[health.Workload]) {
					w.Store.Update(func(seen *health.Workloads) { seen.Sets[health.Place{Kind: name, Namespace: namespace}] = sets })
				})
			})
		}
		running.Go(func() {
			Watch(ctx, w.kube, Kind{GroupVersionResource: podsKind, Namespace: namespace}, kubePod, func(pods health.Seen[health.Pod]) {
				w.Store.Update(func(seen *health.Workloads) { seen.Pods[namespace] = pods })
			})
		})
	}
	// The silent end of a server's connections is noticed by asking it.
	running.Go(func() { w.kube.WatchReadiness(ctx, func(health.APIServer) {}) })
	for _, one := range w.samples {
		running.Go(func() { w.offer(ctx, one) })
	}
}

// offer tries a sample again and again, from when everything that might answer for it runs.
func (w *Workloads) offer(ctx context.Context, one sample) {
	var answer health.Accepted
	for ; ctx.Err() == nil; pause(ctx, pollEvery) {
		var ready bool
		w.Store.Read(func(seen *health.Workloads) { ready = health.WorkloadsRun(w.spec, seen) })
		if !ready {
			continue
		}
		before := answer
		answer = health.Accepted{Asked: true, Err: w.try(ctx, one), Lost: before.Lost}
		if ctx.Err() != nil {
			return
		}
		if before.Asked && before.Err == nil && answer.Err != nil {
			answer.Lost++
		}
		w.Store.Update(func(seen *health.Workloads) { seen.Samples[one.title] = answer })
	}
}

func (w *Workloads) try(ctx context.Context, one sample) *health.Broken {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if _, err := w.kube.client.Resource(one.kind).Namespace(one.object.GetNamespace()).Create(ctx, one.object, options); err != nil {
		return broken(err)
	}
	return nil
}

// Answer looks up what failed results ask, and adds it to their evidence.
func (w *Workloads) Answer(ctx context.Context, results []health.Result) {
	asked{kube: w.kube}.answer(ctx, results)
}
