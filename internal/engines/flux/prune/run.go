// Package prune is `slipway-probe prune`, which makes Flux remove everything that it has applied from the root Kustomization: it deletes
// the root, and returns once every Kustomization, HelmRelease and ResourceSet below it is gone. Flux does not wait for these objects by
// itself, and if Flux is uninstalled meanwhile, everything that they have applied stays. A second run finishes what an interrupted one
// began.
//
// flux-operator makes the root again when it reconciles its FluxInstance. So the FluxInstance is suspended for the run. A suspended
// FluxInstance leaves Flux behind when it is deleted, so the suspension ends with the run: after a success together with the FluxInstance's
// sync, so that the root does not come back before the FluxInstance is deleted; after a failure alone, so that Flux works as before.
package prune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/siderolabs/gen/xslices"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/engines"
	"github.com/slipway-platform/slipway/internal/probe"
)

const (
	// resumeTimeout is how long the end of the suspension may take after a failure. After an interrupt, Pulumi kills the process after a
	// few seconds.
	resumeTimeout = 4 * time.Second

	reconcileAnnotation = "fluxcd.controlplane.io/reconcile"
	disabled            = "disabled"
)

var instances = schema.GroupVersionResource{Group: "fluxcd.controlplane.io", Version: "v1", Resource: "fluxinstances"}

// run is one run of a spec.
type run struct {
	spec Spec
	*engines.Removal
}

// Run makes Flux remove everything that it has applied, for a valid spec with its defaults. It writes to progress what is missing, once for
// each change.
func Run(ctx context.Context, spec Spec, progress io.Writer) (Report, error) {
	removal, err := engines.BeginRemoval(spec.Target, progress)
	if err != nil {
		return Report{}, err
	}
	return (&run{spec, removal}).run(ctx)
}

func (r *run) run(ctx context.Context) (Report, error) {
	ctx, cancel := probe.Within(ctx, time.Duration(r.Timeout))
	defer cancel()
	root := key{Kind: kustomization, Namespace: r.spec.Namespace, Name: r.spec.Kustomization}
	report, err := Report{}, r.Persist(ctx, func() error { return r.patch(ctx, suspension) })
	exists := !apierrors.IsNotFound(err)
	if err == nil || !exists {
		report, err = r.remove(ctx, root)
	}
	if err == nil && exists {
		err = r.Persist(ctx, func() error { return r.patch(ctx, release) })
	}
	if err != nil && exists {
		err = errors.Join(err, r.resume(ctx))
	}
	return report, err
}

// resume makes flux-operator work on the FluxInstance again, although ctx may have ended.
func (r *run) resume(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resumeTimeout)
	defer cancel()
	err := r.patch(ctx, resumption)
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	instance := key{Kind: "FluxInstance", Namespace: r.spec.Namespace, Name: r.spec.Instance}
	return fmt.Errorf("%s: may still be suspended (%w); run this again, or resume it: %s", instance, err,
		r.By(instance.Command("annotate", reconcileAnnotation+"-")))
}

// remove deletes the root and waits until nothing is left that Flux must remove.
func (r *run) remove(ctx context.Context, root key) (Report, error) {
	report := Report{Head: probe.Head{Kind: "prune", Cluster: r.Cluster}}
	seen, err := r.look(ctx)
	if err == nil && len(seen.obstacles(root)) > 0 {
		seen, err = r.look(ctx) // the kinds are read one after the other, and an owner may have gone in between
	}
	if err != nil {
		return report, err
	}
	if problems := seen.obstacles(root); len(problems) > 0 {
		return report, fmt.Errorf("nothing was deleted: %s", r.By(errors.Join(problems...).Error()))
	}
	for _, text := range seen.staying(root) {
		report.Stays = append(report.Stays, text)
		r.Say("stays: %s", text)
	}
	removed := map[string]bool{}
	next := func(ctx context.Context) ([]object, error) {
		seen, err := r.look(ctx)
		if err != nil {
			return nil, err
		}
		left := seen.left(root)
		for _, o := range left {
			removed[o.String()] = true
		}
		// A reconciliation of flux-operator that had begun before the suspension may make the root again.
		if top, exists := seen[root]; exists && !top.deleting {
			r.Say("deletes %s", root)
			return left, r.delete(ctx, root)
		}
		return left, nil
	}
	// Stable asks for two looks that find nothing, for the reason above.
	if err := engines.Wait(ctx, r.Removal, "Flux", r.Interval/2, next, nil); err != nil {
		return report, err
	}
	report.Removed, report.Took = slices.Sorted(maps.Keys(removed)), r.Took()
	return report, nil
}

// look reads what exists.
func (r *run) look(ctx context.Context) (view, error) {
	kinds := xslices.Map(appliers, func(of applier) engines.Kind { return of.Kind })
	return engines.Look(ctx, r.Removal, "", kinds, newObject)
}

// delete deletes the root. Flux then removes what it has applied, and all below it.
func (r *run) delete(ctx context.Context, root key) error {
	err := r.Persist(ctx, func() error {
		return r.API.Objects.Resource(kustomizationResource).Namespace(root.Namespace).Delete(ctx, root.Name, metav1.DeleteOptions{})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: cannot be deleted: %w", root, err)
	}
	return nil
}

// Changes of a FluxInstance, as merge patches.
var (
	suspension = annotated(disabled) // flux-operator leaves it alone
	resumption = annotated(nil)
	release    = map[string]any{"metadata": annotated(nil)["metadata"], "spec": map[string]any{"sync": nil}}
)

func annotated(value any) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{reconcileAnnotation: value}}}
}

// patch changes the FluxInstance.
func (r *run) patch(ctx context.Context, change map[string]any) error {
	_, err := kubeapi.Merge(ctx, r.API.Objects.Resource(instances).Namespace(r.spec.Namespace), r.spec.Instance, change)
	return err
}
