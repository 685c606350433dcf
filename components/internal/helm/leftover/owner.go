package leftover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/probe"
)

var helmReleases = schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}

// triedLimit is as long as Flux waits for the pods of a release, if its HelmRelease does not say another timeout.
const triedLimit = 5 * time.Minute

// seenLimit is how long a kubelet needs at most until Argo CD's plugin sees a changed Secret.
const seenLimit = 2 * time.Minute

// Owner is an engine that owns, or owned, a release.
type Owner interface {
	fmt.Stringer
	// Released makes sure that the engine does not own the release in the cluster, or returns an error. It would undo, at its next change,
	// what is about to be installed.
	Released(ctx context.Context, kubeconfig string) error
	// Tried makes the engine read the values of the release again, and returns once the engine has tried them, or if the engine does not own
	// the release. It gives up after triedLimit, also if the API server does not answer.
	Tried(ctx context.Context, kubeconfig string) error
	// Command is the command that shows more.
	Command() string
}

// OwnerOf returns an engine as the owner of a release.
func OwnerOf(release string, engine cluster.Owner) Owner {
	if engine == cluster.OwnerArgoCD {
		return argoCD{release: release, every: 5 * time.Second, seen: seenLimit}
	}
	return flux{namespace: cluster.FluxNamespace, name: release}
}

// flux is the HelmRelease with which Flux owns, or owned, a release.
type flux struct {
	namespace, name string
	limit           time.Duration // of Tried; 0 means triedLimit
}

// Released makes sure that the HelmRelease is suspended, or that there is none.
func (f flux) Released(ctx context.Context, kubeconfig string) error {
	return inCluster(ctx, kubeconfig, f, func(ctx context.Context, api *kubeapi.Client) error {
		var live struct {
			Spec struct {
				Suspend bool `json:"suspend"`
			} `json:"spec"`
		}
		path := "/apis/helm.toolkit.fluxcd.io/v2/namespaces/" + f.namespace + "/helmreleases/" + f.name
		found, err := api.ReadJSON(ctx, path, &live)
		if err == nil && found && !live.Spec.Suspend { // found is false without Flux, too
			return errors.New("is active in the cluster, and Pulumi is to change its release; commit and push spec.suspend: true, " +
				"wait until Flux has applied it, and run up again; or write owner: flux")
		}
		return err
	})
}

// Tried returns once the release has changed, or the status of the HelmRelease says why not. Nobody tries the values if the HelmRelease
// does not exist, or is suspended.
func (f flux) Tried(ctx context.Context, kubeconfig string) error {
	api, err := kubeapi.New([]byte(kubeconfig), requestTimeout)
	if err != nil {
		return err
	}
	ctx, cancel := probe.Within(ctx, cmp.Or(f.limit, triedLimit))
	defer cancel()
	objects := api.Objects.Resource(helmReleases).Namespace(f.namespace)
	var live *unstructured.Unstructured
	read := func(ctx context.Context) (err error) {
		live, err = objects.Get(ctx, f.name, metav1.GetOptions{})
		return err
	}
	if err := kubeapi.Retry(ctx, nil, func() error { return read(ctx) }); apierrors.IsNotFound(err) { // without Flux, too
		return nil
	} else if err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	if suspended, _, _ := unstructured.NestedBool(live.Object, "spec", "suspend"); suspended {
		return nil
	}
	request := time.Now().Format(time.RFC3339Nano)
	annotation := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"reconcile.fluxcd.io/requestedAt": request}}}
	if _, err := kubeapi.Merge(ctx, objects, f.name, annotation); err != nil {
		return err
	}
	return probe.Wait{}.Until(ctx, f.String(), func(ctx context.Context) (string, error) {
		if err := read(ctx); err != nil {
			return err.Error(), nil
		}
		if handled, _, _ := unstructured.NestedString(live.Object, "status", "lastHandledReconcileAt"); handled != request {
			return "Flux has not tried the changed values yet", nil
		}
		return "", nil
	})
}

// String returns the kind, namespace and name, for messages.
func (f flux) String() string { return fmt.Sprintf("HelmRelease %s/%s", f.namespace, f.name) }

func (f flux) Command() string {
	return fmt.Sprintf("kubectl -n %s describe helmrelease %s", f.namespace, f.name)
}

// Unlock removes the record of an upgrade that was interrupted, or returns an error. Helm refuses every further upgrade while this record
// exists. The record before it stays, so that the next upgrade begins where the interrupted one began.
func Unlock(ctx context.Context, kubeconfig string, release Release) error {
	return inCluster(ctx, kubeconfig, release, func(ctx context.Context, api *kubeapi.Client) error {
		records, err := release.records(ctx, api)
		if err != nil {
			return err
		}
		for _, one := range records {
			if len(records) == 1 || !strings.HasPrefix(one.status, "pending-") {
				continue // the only record is that of an installation
			}
			if err := release.remove(ctx, api, one); err != nil {
				return err
			}
		}
		return nil
	})
}
