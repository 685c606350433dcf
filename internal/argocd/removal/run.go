// Package removal is `slipway-probe argocd-removal`, which deletes the Applications of Argo CD before Argo CD itself is uninstalled.
// Without Argo CD, their finalizers would keep them, and so the namespace, for ever.
//
// What the Applications have applied stays, unless the spec says delete: then Argo CD removes everything that was applied by the root
// Application and by what is below the root Application, and only the other Applications go alone. A second run finishes what an
// interrupted one began.
package removal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/internal/kubeapi"
	"github.com/slipway-platform/slipway/internal/probe"
)

const (
	interval       = 500 * time.Millisecond // between two looks at the cluster
	requestTimeout = 30 * time.Second       // for one request to the API server

	// settle is how long no Application must exist at the end. A sync that has begun before its Application was deleted may still make
	// other Applications again.
	settle = 2 * time.Second
)

// run is one run of a spec.
type run struct {
	spec             Spec
	api              *kubeapi.Client
	kubectl          string // with the flags that reach the cluster
	interval, settle time.Duration

	*probe.Progress
}

// Run deletes the Applications for a valid spec with its defaults. It writes to progress what is missing, once for each change.
func Run(ctx context.Context, spec Spec, progress io.Writer) (Report, error) {
	api, err := kubeapi.New([]byte(spec.Kubeconfig), requestTimeout)
	if err != nil {
		return Report{}, err
	}
	r := &run{spec: spec, api: api, interval: interval, settle: settle, Progress: probe.Begin(progress), kubectl: "kubectl"}
	if api.Context != "" {
		r.kubectl += " --context " + api.Context
	}
	return r.run(ctx)
}

func (r *run) run(ctx context.Context) (Report, error) {
	ctx, cancel := probe.Within(ctx, time.Duration(r.spec.Timeout))
	defer cancel()
	root := key{application, r.spec.Namespace, r.spec.Root}
	report := Report{Head: probe.Head{Kind: "argocd-removal", Cluster: r.spec.Cluster}}
	known := newPlan(root)
	if r.spec.Delete {
		c := &cascade{run: r, plan: known, removed: map[key]bool{}}
		if err := r.wait(ctx, r.interval/2, c.look); err != nil {
			return report, err
		}
		report.Removed, report.Stays = titles(c.removed), c.said
	}
	l := &release{run: r, released: map[key]bool{}}
	if err := r.wait(ctx, r.settle, l.look); err != nil {
		return report, err
	}
	for one := range l.released {
		if r.spec.Delete && one.kind == application && known.stays[one] == "" && !known.doomed[one] {
			report.Stays = append(report.Stays, fmt.Sprintf("what %s has applied: that is not below %s", one, root))
		}
	}
	slices.Sort(report.Stays)
	report.Released, report.Took = titles(l.released), r.Took()
	return report, nil
}

func titles(of map[key]bool) (all []string) {
	for one := range of {
		all = append(all, one.String())
	}
	slices.Sort(all)
	return all
}

// step looks at the cluster and does what is next. It returns what is still there.
type step func(context.Context) (left []object, err error)

// wait repeats a step until nothing is left for a while. Its error at the end of the wait names what is left.
func (r *run) wait(ctx context.Context, stable time.Duration, next step) error {
	var left []object
	var failed error
	wait := probe.Wait{Every: r.interval, Stable: stable, Look: time.Duration(r.spec.Timeout), Say: r.Say}
	err := wait.Until(ctx, "Argo CD", func(ctx context.Context) (string, error) {
		now, err := next(ctx)
		if failed = err; err != nil {
			return "", err
		}
		if left = now; len(left) == 0 {
			return "", nil
		}
		return fmt.Sprintf("%d objects are left; first: %s: %s", len(left), left[0].key, left[0].state()), nil
	})
	if err != nil && ctx.Err() != nil {
		return errors.Join(r.late(ctx, left), failed)
	}
	return err
}

// look reads what exists. A kind that the API server does not know has no objects.
func (r *run) look(ctx context.Context) (view, error) {
	seen := view{}
	for _, of := range resources {
		err := r.persist(ctx, func() error {
			list, err := r.objects(of.kind).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range list.Items {
				o := newObject(of.kind, &list.Items[i])
				seen[o.key] = o
			}
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("list of %s: %w", of.resource.Resource, err)
		}
	}
	return seen, nil
}

// objects returns the client for a kind of Argo CD.
func (r *run) objects(kind string) dynamic.ResourceInterface {
	for _, of := range resources {
		if of.kind == kind {
			return r.api.Objects.Resource(of.resource).Namespace(r.spec.Namespace)
		}
	}
	panic("removal: " + kind + " is no kind of Argo CD")
}

// patch changes an object as it was seen. It returns the object's new version; "" if the object has changed since, or is gone.
func (r *run) patch(ctx context.Context, o object, change map[string]any) (version string, err error) {
	metadata := map[string]any{"resourceVersion": o.version}
	if more, is := change["metadata"].(map[string]any); is {
		maps.Copy(metadata, more)
	}
	whole := maps.Clone(change)
	whole["metadata"] = metadata
	body, err := json.Marshal(whole)
	if err != nil {
		return "", err
	}
	err = r.persist(ctx, func() error {
		changed, err := r.objects(o.kind).Patch(ctx, o.name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: kubeapi.FieldManager})
		if err == nil {
			version = changed.GetResourceVersion()
		}
		return err
	})
	if passed(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: cannot be changed: %w", o.key, err)
	}
	return version, nil
}

// finalizers is the change that gives an object the finalizers, and no others.
func finalizers(all ...string) map[string]any {
	return map[string]any{"metadata": map[string]any{"finalizers": append([]string{}, all...)}}
}

// delete deletes an object, unless the object has changed since the version. A sync of Argo CD may have given it a finalizer meanwhile.
func (r *run) delete(ctx context.Context, o object, version string, policy metav1.DeletionPropagation) error {
	uid := types.UID(o.uid)
	options := metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &policy,
	}
	err := r.persist(ctx, func() error { return r.objects(o.kind).Delete(ctx, o.name, options) })
	switch {
	case err == nil:
		r.Say("deletes %s", o.key)
	case !passed(err):
		return fmt.Errorf("%s: cannot be deleted: %w", o.key, err)
	}
	return nil
}

// passed reports whether an error says that the object has changed or is gone: the next look sees that.
func passed(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// by adds the flags that reach the cluster to the commands of a text.
func (r *run) by(text string) string { return strings.ReplaceAll(text, "kubectl ", r.kubectl+" ") }

// persist calls f again while its error is temporary.
func (r *run) persist(ctx context.Context, f func() error) error {
	return kubeapi.Retry(ctx, func(err error) { r.Once("asks again: %v", err) }, f)
}
