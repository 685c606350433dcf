package removal

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// release deletes ApplicationSets and Applications without what they have applied or made. Owners go first: they would make again what
// they own.
type release struct {
	*run
	released map[key]bool
}

// look deletes each object whose owner is gone, and returns what still exists.
func (l *release) look(ctx context.Context) ([]object, error) {
	seen, err := l.run.look(ctx)
	if err != nil {
		return nil, err
	}
	left := seen.sorted()
	if len(left) == 0 {
		return nil, l.projects(ctx, seen.projects())
	}
	next := seen.free(left)
	if len(next) == 0 {
		next = left // they own each other
	}
	for _, o := range next {
		l.released[o.key] = true
		if err := l.letGo(ctx, o); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// letGo takes the finalizers of an object away and deletes the object.
func (l *release) letGo(ctx context.Context, o object) error {
	var keep []string
	policy := metav1.DeletePropagationBackground
	if o.Kind == applicationSet { // Kubernetes would delete its Applications
		policy = metav1.DeletePropagationOrphan
		if slices.Contains(o.finalizers, orphanFinalizer) {
			keep = []string{orphanFinalizer}
		}
	}
	version := o.version
	if !slices.Equal(o.finalizers, keep) {
		var err error
		if version, err = l.patch(ctx, o, finalizers(keep...)); err != nil || version == "" {
			return err
		}
	}
	if o.deleting { // the object has gone with its last finalizer
		return nil
	}
	return l.delete(ctx, o, version, policy)
}

// projects takes the finalizers of AppProjects away, which would keep them in a namespace that is deleted. AppProjects have applied
// nothing.
func (l *release) projects(ctx context.Context, all []object) error {
	for _, o := range all {
		l.Say("takes the finalizers of %s away", o.key)
		if _, err := l.patch(ctx, o, finalizers()); err != nil {
			return err
		}
	}
	return nil
}
