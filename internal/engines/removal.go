// Package engines holds what runs of the probe do alike for both GitOps engines, Flux and Argo CD.
package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/internal/kubeapi"
	"github.com/slipway-platform/slipway/internal/probe"
)

const (
	// RemovalTimeout is the longest wait for a removal whose spec has none.
	RemovalTimeout = 10 * time.Minute

	removalInterval = 500 * time.Millisecond // between two looks at the cluster
	requestTimeout  = 30 * time.Second       // for one request to the API server
)

// Removal is a run that waits until an engine has removed objects, and does what the engine does not do by itself.
type Removal struct {
	API      *kubeapi.Client
	Interval time.Duration // between two looks at the cluster

	kubectl string // with the flags that reach the cluster
	*probe.Progress
}

// BeginRemoval begins a run with a kubeconfig, whose log goes to progress. It sends no request.
func BeginRemoval(kubeconfig string, progress io.Writer) (*Removal, error) {
	api, err := kubeapi.New([]byte(kubeconfig), requestTimeout)
	if err != nil {
		return nil, err
	}
	r := &Removal{API: api, Interval: removalInterval, Progress: probe.Begin(progress), kubectl: "kubectl"}
	if api.Context != "" {
		r.kubectl += " --context " + api.Context
	}
	return r, nil
}

// By adds the flags that reach the cluster to the commands of a text.
func (r *Removal) By(text string) string { return strings.ReplaceAll(text, "kubectl ", r.kubectl+" ") }

// Persist calls f again while its error is temporary.
func (r *Removal) Persist(ctx context.Context, f func() error) error {
	return kubeapi.Retry(ctx, func(err error) { r.Once("asks again: %v", err) }, f)
}

// Each calls f with each object of a resource. A resource that the API server does not know has no objects.
func (r *Removal) Each(ctx context.Context, resource string, objects dynamic.ResourceInterface, f func(*unstructured.Unstructured)) error {
	err := r.Persist(ctx, func() error {
		list, err := objects.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			f(&list.Items[i])
		}
		return nil
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("list of %s: %w", resource, err)
	}
	return nil
}

// Key identifies an object in a namespace.
type Key struct{ Kind, Namespace, Name string }

func (k Key) String() string { return k.Kind + " " + k.Namespace + "/" + k.Name }

// Command returns a kubectl command for the object.
func (k Key) Command(verb, arguments string) string {
	return strings.TrimSpace(fmt.Sprintf("kubectl -n %s %s %s %s %s", k.Namespace, verb, strings.ToLower(k.Kind), k.Name, arguments))
}

// Object is an object of an engine that was seen.
type Object interface {
	String() string                        // "Kind namespace/name"
	State() string                         // what it does while it is still there
	Command(verb, arguments string) string // a kubectl command for it
}

// Sorted returns objects in the order of their names.
func Sorted[O Object](objects map[Key]O) []O {
	return slices.SortedFunc(maps.Values(objects), func(a, b O) int { return cmp.Compare(a.String(), b.String()) })
}

// Waits is a wait until objects are gone.
type Waits[O Object] struct {
	For    string                                      // the engine, for the log
	Look   func(context.Context) (left []O, err error) // looks at the cluster and does what is next; an error ends the wait
	Stable time.Duration                               // how long no object must be left
	Limit  time.Duration                               // longest time for one look; required
	Late   func(ctx context.Context, left []O) error   // the error at the end of the wait
}

// Wait looks until nothing is left for a while, at the latest until ctx ends.
func (w Waits[O]) Wait(ctx context.Context, r *Removal) error {
	var left []O
	var failed error
	wait := probe.Wait{Every: r.Interval, Stable: w.Stable, Look: w.Limit, Say: r.Say}
	err := wait.Until(ctx, w.For, func(ctx context.Context) (string, error) {
		now, err := w.Look(ctx)
		if err == nil || len(now) > 0 {
			left = now
		}
		if failed = err; err != nil || len(left) == 0 {
			return "", err
		}
		return fmt.Sprintf("%d objects are left; first: %s: %s", len(left), left[0], left[0].State()), nil
	})
	if err != nil && ctx.Err() != nil {
		return errors.Join(w.Late(ctx, left), failed)
	}
	return err
}

// StillThere returns the error for objects that are still there at the end of the wait. state says what each does.
func StillThere[O Object](ctx context.Context, r *Removal, left []O, state func(O) string) error {
	problems := []error{fmt.Errorf("%w; still there:", context.Cause(ctx))}
	for _, o := range left {
		problems = append(problems, fmt.Errorf("%s: %s; %s shows more", o, state(o), r.By(o.Command("describe", ""))))
	}
	return errors.Join(problems...)
}
