package crds

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/probe"
)

// established watches a CRD until the API server serves its resources.
func (r *run) established(ctx context.Context, crd *unstructured.Unstructured, seen func(state string)) error {
	name, state := crd.GetName(), ""
	for {
		var done bool
		var err error
		if state, done, err = judge(crd); done || err != nil {
			return err
		}
		seen(state)
		crd, err = r.next(ctx, crd)
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w (last: %s); kubectl get customresourcedefinition %s -o yaml shows more", context.Cause(ctx), state, name)
		}
		err = kubeapi.Retry(ctx, nil, func() (err error) {
			crd, err = r.api.Objects.Resource(resource).Get(ctx, name, metav1.GetOptions{})
			return err
		})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("was deleted during the wait: %w", err)
		case err != nil: // such as that of a server that went away
			return err
		}
	}
}

var errWatchEnded = errors.New("the watch has ended")

// next returns the CRD after its next change. It returns an error if the watch ends.
func (r *run) next(ctx context.Context, crd *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	watcher, err := r.api.Objects.Resource(resource).Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", crd.GetName()).String(),
		ResourceVersion: crd.GetResourceVersion(),
	})
	if err != nil {
		// A server that refuses the watch is not asked again at once.
		probe.Pause(ctx, r.pause)
		return nil, err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if changed, is := event.Object.(*unstructured.Unstructured); is && (event.Type == watch.Modified || event.Type == watch.Added) {
			return changed, nil
		}
		if event.Type == watch.Deleted || event.Type == watch.Error {
			break
		}
	}
	return nil, errWatchEnded
}

// judge reads the conditions of a CRD. If another CRD has its names, waiting does not help, and judge returns an error.
func judge(crd *unstructured.Unstructured) (state string, done bool, err error) {
	if names := kubeapi.ConditionOf(crd.Object, "NamesAccepted"); names.Status == "False" {
		return "", false, fmt.Errorf("its names are not accepted: %s: %s; another CRD has them", names.Reason, names.Message)
	}
	switch established := kubeapi.ConditionOf(crd.Object, "Established"); established.Status {
	case "True":
		return "", true, nil
	case "":
		return "has no conditions yet", false, nil
	default:
		return fmt.Sprintf("not established: %s: %s", established.Reason, established.Message), false, nil
	}
}
