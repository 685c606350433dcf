package crds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
)

var resource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// apply applies all CRDs and waits until each is served. It returns the names of the changed CRDs.
func (r *run) apply(ctx context.Context, manifests []*manifest) (map[string]bool, error) {
	before, err := r.versions(ctx)
	if err != nil {
		return nil, err
	}
	var (
		mu       sync.Mutex
		waiting  = map[string]string{} // CRDs that are not served yet, and their last state
		changed  = map[string]bool{}
		problems []error
		all      sync.WaitGroup
		places   = make(chan struct{}, parallel)
	)
	for _, m := range manifests {
		for _, crd := range m.crds {
			waiting[crd.GetName()] = "not applied yet"
			all.Go(func() {
				places <- struct{}{}
				applied, err := r.applyOne(ctx, crd)
				<-places
				if err == nil {
					mu.Lock()
					if applied.GetResourceVersion() != before[applied.GetName()] {
						changed[applied.GetName()] = true
					}
					mu.Unlock()
					err = r.established(ctx, applied, func(state string) {
						mu.Lock()
						defer mu.Unlock()
						waiting[applied.GetName()] = state
					})
				}
				mu.Lock()
				defer mu.Unlock()
				delete(waiting, crd.GetName())
				if err != nil {
					problems = append(problems, fmt.Errorf("CRD %s of %s %s: %w", crd.GetName(), m.source.Name, m.source.Version, err))
				}
			})
		}
	}
	done := make(chan struct{})
	go r.sayMissing(done, func() string {
		mu.Lock()
		defer mu.Unlock()
		return summary(waiting)
	})
	all.Wait()
	close(done)
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return changed, errors.Join(problems...)
}

// versions returns the resource versions of the CRDs that exist.
func (r *run) versions(ctx context.Context) (map[string]string, error) {
	list, err := r.api.Metadata(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
	if err != nil {
		return nil, fmt.Errorf("list of CRDs: %w", err)
	}
	versions := map[string]string{}
	for _, item := range list.Items {
		versions[item.Name] = item.ResourceVersion
	}
	return versions, nil
}

func (r *run) applyOne(ctx context.Context, crd *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var applied *unstructured.Unstructured
	err := kubeapi.Retry(ctx, nil, func() (err error) {
		// Not forced: the other owner of a field would set it again, and so on.
		applied, err = r.api.Objects.Resource(resource).Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: kubeapi.FieldManager})
		return err
	})
	if apierrors.IsConflict(err) {
		return nil, conflict(err)
	}
	return applied, err
}

// conflict returns an error that names the other field managers and their fields.
func conflict(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	fields := map[string][]string{} // by manager
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		manager := cause.Message
		if parts := strings.Split(cause.Message, `"`); len(parts) >= 3 {
			manager = parts[1]
		}
		fields[manager] = append(fields[manager], cause.Field)
	}
	if len(fields) == 0 {
		return err
	}
	var owners []string
	for _, manager := range slices.Sorted(maps.Keys(fields)) {
		owners = append(owners, fmt.Sprintf("%q has set %s", manager, some(fields[manager], 3)))
	}
	return fmt.Errorf("%s to something else; stop it from installing the CRD, then apply the manifest once with "+
		"kubectl apply --server-side --force-conflicts --field-manager=%s",
		strings.Join(owners, ", "), kubeapi.FieldManager)
}

// sayMissing prints regularly what is still missing.
func (r *run) sayMissing(done <-chan struct{}, missing func() string) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if text := missing(); text != "" {
				r.Say("waits for %s", text)
			}
		}
	}
}

func summary(waiting map[string]string) string {
	names := slices.Sorted(maps.Keys(waiting))
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%d CRDs; first: %s: %s", len(names), names[0], waiting[names[0]])
}

// some returns the first entries of a list, and how many more there are.
func some(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
