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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/probe"
)

// RemovalTimeout is the longest wait for a removal whose spec has none.
const RemovalTimeout = 10 * time.Minute

// Removal is a run that waits until an engine has removed objects, and does what the engine does not do by itself.
type Removal struct {
	probe.Target
	*probe.Progress
	API      *kubeapi.Client
	Interval time.Duration // between two looks at the cluster
}

// BeginRemoval begins a run, whose log goes to progress. It sends no request.
func BeginRemoval(target probe.Target, progress io.Writer) (*Removal, error) {
	api, err := kubeapi.New([]byte(target.Kubeconfig), 30*time.Second)
	return &Removal{target, probe.Begin(progress), api, 500 * time.Millisecond}, err
}

// By adds the flags that reach the cluster to the commands of a text.
func (r *Removal) By(text string) string {
	if r.API.Context == "" {
		return text
	}
	return strings.ReplaceAll(text, "kubectl ", "kubectl --context "+r.API.Context+" ")
}

// Persist calls f again while its error is temporary.
func (r *Removal) Persist(ctx context.Context, f func() error) error {
	return kubeapi.Retry(ctx, func(err error) { r.Once("asks again: %v", err) }, f)
}

// Kind is a kind of an engine's objects.
type Kind struct {
	Name     string
	Resource schema.GroupVersionResource
}

// Look reads what exists of kinds in a namespace, or in all with "". A kind that the API server does not know has no objects.
func Look[O Object](
	ctx context.Context, r *Removal, namespace string, kinds []Kind, read func(kind string, u *unstructured.Unstructured) O,
) (map[Key]O, error) {
	seen := map[Key]O{}
	for _, kind := range kinds {
		err := r.Persist(ctx, func() error {
			list, err := r.API.Objects.Resource(kind.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range list.Items {
				seen[KeyOf(kind.Name, &list.Items[i])] = read(kind.Name, &list.Items[i])
			}
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("list of %s: %w", kind.Resource.Resource, err)
		}
	}
	return seen, nil
}

// Key identifies an object in a namespace.
type Key struct{ Kind, Namespace, Name string }

// KeyOf identifies an object of a kind.
func KeyOf(kind string, u *unstructured.Unstructured) Key {
	return Key{kind, u.GetNamespace(), u.GetName()}
}

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

// Wait looks at the cluster, and does what is next, until nothing is left for as long as stable; an error of look ends the wait. late makes
// the error for what is left when ctx ends; nil means StillThere's, with the objects' states.
func Wait[O Object](
	ctx context.Context, r *Removal, engine string, stable time.Duration,
	look func(context.Context) (left []O, err error), late func(ctx context.Context, left []O) error,
) error {
	var left []O
	var failed error
	wait := probe.Wait{Every: r.Interval, Stable: stable, Look: time.Duration(r.Timeout), Say: r.Say}
	err := wait.Until(ctx, engine, func(ctx context.Context) (string, error) {
		now, err := look(ctx)
		if err == nil || len(now) > 0 {
			left = now
		}
		if failed = err; err != nil || len(left) == 0 {
			return "", err
		}
		return fmt.Sprintf("%d objects are left; first: %s: %s", len(left), left[0], left[0].State()), nil
	})
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case late == nil:
		return errors.Join(StillThere(ctx, r, left, O.State), failed)
	}
	return errors.Join(late(ctx, left), failed)
}

// StillThere returns the error for objects that are still there at the end of the wait. state says what each does.
func StillThere[O Object](ctx context.Context, r *Removal, left []O, state func(O) string) error {
	problems := []error{fmt.Errorf("%w; still there:", context.Cause(ctx))}
	for _, o := range left {
		problems = append(problems, fmt.Errorf("%s: %s; %s shows more", o, state(o), r.By(o.Command("describe", ""))))
	}
	return errors.Join(problems...)
}
