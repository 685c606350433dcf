// Package removal is `slipway-probe argocd-removal`, which deletes the Applications of Argo CD before Argo CD itself is uninstalled.
// Without Argo CD, their finalizers would keep them, and so the namespace, for ever.
//
// What the Applications have applied stays, unless the spec says delete: then Argo CD removes everything that was applied by the root
// Application and by what is below the root Application, and only the other Applications go alone. A second run finishes what an
// interrupted one began.
package removal

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/engines"
	"github.com/slipway-platform/slipway/internal/probe"
)

// settle is how long no Application must exist at the end. A sync that has begun before its Application was deleted may still make other
// Applications again.
const settle = 2 * time.Second

// run is one run of a spec.
type run struct {
	spec   Spec
	settle time.Duration

	*engines.Removal
}

// Run deletes the Applications for a valid spec with its defaults. It writes to progress what is missing, once for each change.
func Run(ctx context.Context, spec Spec, progress io.Writer) (Report, error) {
	removal, err := engines.BeginRemoval(spec.Target, progress)
	if err != nil {
		return Report{}, err
	}
	return (&run{spec: spec, settle: settle, Removal: removal}).run(ctx)
}

func (r *run) run(ctx context.Context) (Report, error) {
	ctx, cancel := probe.Within(ctx, time.Duration(r.Timeout))
	defer cancel()
	root := key{Kind: application, Namespace: r.spec.Namespace, Name: r.spec.Root}
	report := Report{Head: probe.Head{Kind: "argocd-removal", Cluster: r.Cluster}}
	known := newPlan(root)
	if r.spec.Delete {
		c := &cascade{run: r, plan: known, removed: map[key]bool{}}
		if err := engines.Wait(ctx, r.Removal, "Argo CD", r.Interval/2, c.look, r.late); err != nil {
			return report, err
		}
		report.Removed, report.Stays = titles(c.removed), c.said
	}
	l := &release{run: r, released: map[key]bool{}}
	if err := engines.Wait(ctx, r.Removal, "Argo CD", r.settle, l.look, r.late); err != nil {
		return report, err
	}
	for one := range l.released {
		if r.spec.Delete && one.Kind == application && known.stays[one] == "" && !known.doomed[one] {
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

// look reads what exists.
func (r *run) look(ctx context.Context) (view, error) {
	return engines.Look(ctx, r.Removal, r.spec.Namespace, kinds, newObject)
}

// objects returns the client for a kind of Argo CD.
func (r *run) objects(kind string) dynamic.ResourceInterface {
	i := slices.IndexFunc(kinds, func(of engines.Kind) bool { return of.Name == kind })
	return r.API.Objects.Resource(kinds[i].Resource).Namespace(r.spec.Namespace)
}

// patch changes an object as it was seen. It returns the object's new version; "" if the object has changed since, or is gone.
func (r *run) patch(ctx context.Context, o object, change map[string]any) (version string, err error) {
	metadata := map[string]any{"resourceVersion": o.version}
	if more, is := change["metadata"].(map[string]any); is {
		maps.Copy(metadata, more)
	}
	whole := maps.Clone(change)
	whole["metadata"] = metadata
	err = r.Persist(ctx, func() error {
		changed, err := kubeapi.Merge(ctx, r.objects(o.Kind), o.Name, whole)
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
	err := r.Persist(ctx, func() error { return r.objects(o.Kind).Delete(ctx, o.Name, options) })
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
