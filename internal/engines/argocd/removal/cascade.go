package removal

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cascade makes Argo CD remove what was applied by the root and all below the root. Argo CD does so for an Application with a finalizer,
// and for nothing else, so each Application gets the finalizer before anything is deleted.
type cascade struct {
	*run
	plan    *plan
	looked  bool
	removed map[key]bool
	said    []string // what stays, and why
}

// terminate is the change that ends the sync of an Application. Argo CD deletes nothing before that, and a sync may wait for something to
// become healthy.
var terminate = map[string]any{"status": map[string]any{"operationState": map[string]any{"phase": "Terminating"}}}

// look does the next step, and returns what must still go.
func (c *cascade) look(ctx context.Context) ([]object, error) {
	seen, err := c.run.look(ctx)
	if err != nil {
		return nil, err
	}
	for _, text := range c.plan.learn(seen) {
		c.stays(text)
	}
	left := c.plan.left(seen)
	if _, exists := seen[c.plan.root]; !c.looked && !exists && len(left) > 0 {
		c.stays(fmt.Sprintf("what %s has applied besides Applications: it does not exist any more", c.plan.root))
	}
	c.looked = true
	for _, o := range left {
		c.removed[o.key] = true
	}
	ready, err := c.equip(ctx, left)
	if err != nil || !ready {
		return left, err
	}
	for _, o := range left {
		if o.deleting && o.running {
			c.Say("ends the sync of %s", o.key)
			if _, err := c.patch(ctx, o, terminate); err != nil {
				return nil, err
			}
		}
	}
	for _, o := range c.next(seen, left) {
		if err := c.delete(ctx, o, o.version, metav1.DeletePropagationForeground); err != nil {
			return nil, err
		}
	}
	return left, nil
}

func (c *cascade) stays(text string) {
	c.said = append(c.said, text)
	c.Say("stays: %s", text)
}

// equip gives the finalizer to the Applications that lack it. ready is true if none does.
func (c *cascade) equip(ctx context.Context, left []object) (ready bool, err error) {
	ready = true
	for _, o := range left {
		if o.Kind != application || o.deleting || cascades(o.finalizers) {
			continue
		}
		ready = false
		c.Say("gives %s the finalizer with which Argo CD removes what it has applied", o.key)
		if _, err := c.patch(ctx, o, finalizers(append(slices.Clone(o.finalizers), cascadeFinalizer)...)); err != nil {
			return false, err
		}
	}
	return ready, nil
}

// next returns what is to be deleted now: the root, and each object whose owner is gone. Argo CD deletes the others with their owners.
func (c *cascade) next(seen view, left []object) []object {
	waiting := slices.DeleteFunc(slices.Clone(left), func(o object) bool { return o.deleting })
	next := seen.free(waiting)
	isRoot := func(o object) bool { return o.key == c.plan.root }
	if i := slices.IndexFunc(waiting, isRoot); i >= 0 && !slices.ContainsFunc(next, isRoot) {
		next = append(next, waiting[i]) // though something else has applied it
	}
	return next
}
