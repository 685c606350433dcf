package removal

import (
	"context"
	"errors"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/engines"
)

const (
	lateTimeout = 4 * time.Second // for the questions that the error at the end asks
	maxNamed    = 3               // objects that are named for each Application
)

// late returns the error for objects that are still there at the end of the wait.
func (r *run) late(ctx context.Context, left []object) error {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateTimeout)
	defer cancel()
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // after an interrupt, Pulumi kills the process soon
		cancel()
	}
	kinds := map[string]kubeapi.Kind{}
	problem := engines.StillThere(ctx, r.Removal, left, func(o object) string {
		text := o.State()
		if blockers := r.blockers(asking, o, kinds); o.deleting && len(blockers) > 0 {
			text += "; waits for " + strings.Join(blockers, ", ")
		}
		return r.By(text)
	})
	if r.spec.Delete && len(left) > 0 {
		problem = errors.Join(problem, errors.New(r.By("Argo CD's log: kubectl -n "+r.spec.Namespace+
			" logs --selector=app.kubernetes.io/name=argocd-application-controller --tail=50")))
	}
	return problem
}

// blockers returns the objects of an Application that Argo CD has to remove and that still exist. kinds are those that are known, and grow.
func (r *run) blockers(ctx context.Context, o object, kinds map[string]kubeapi.Kind) (named []string) {
	for _, one := range o.applied {
		if ctx.Err() != nil {
			return named
		}
		of, known := kinds[one.apiVersion+" "+one.kind]
		if !known {
			var err error
			if of, err = r.API.Find(ctx, one.apiVersion, one.kind); err != nil {
				continue // the error at hand matters more
			}
			kinds[one.apiVersion+" "+one.kind] = of
		}
		var objects dynamic.ResourceInterface = r.API.Objects.Resource(of.Resource)
		if of.Namespaced {
			objects = r.API.Objects.Resource(of.Resource).Namespace(one.namespace)
		}
		found, err := objects.Get(ctx, one.name, metav1.GetOptions{})
		if err != nil || one.kind == "CustomResourceDefinition" || keptBy(o, "", found.GetAnnotations()) != "" ||
			ownerOf(found) != (key{Kind: application, Namespace: found.GetNamespace(), Name: o.Name}) {
			continue
		}
		if len(named) == maxNamed {
			return append(named, "and others")
		}
		named = append(named, one.String()+blocked(found))
	}
	return named
}

// blocked says why an object still exists.
func blocked(u *unstructured.Unstructured) string {
	switch {
	case u.GetDeletionTimestamp() == nil:
		return ", which is not being deleted"
	case len(u.GetFinalizers()) > 0:
		return ", which has the finalizers " + strings.Join(u.GetFinalizers(), " and ")
	}
	return ", which is being deleted"
}
