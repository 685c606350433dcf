package leftover

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Owner is the HelmRelease with which Flux owns, or owned, a release.
type Owner struct {
	Namespace string
	Name      string
}

// Released makes sure that Flux does not own the release, or returns an error: the HelmRelease is suspended, or there is none. An active
// one would undo at its next change what is about to be installed.
func Released(ctx context.Context, kubeconfig string, owner Owner) error {
	ctx, cancel := context.WithTimeoutCause(ctx, DefaultTimeout, fmt.Errorf("gave up after %s", DefaultTimeout))
	defer cancel()
	api, err := connect(kubeconfig)
	if err != nil {
		return fmt.Errorf("%s: %w", owner, err)
	}
	var live struct {
		Spec struct {
			Suspend bool `json:"suspend"`
		} `json:"spec"`
	}
	path := "/apis/helm.toolkit.fluxcd.io/v2/namespaces/" + url.PathEscape(owner.Namespace) + "/helmreleases/" + url.PathEscape(owner.Name)
	switch err := api.do(ctx, http.MethodGet, path, &live); {
	case errors.Is(err, errNotFound): // also without Flux
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", owner, err)
	case !live.Spec.Suspend:
		return fmt.Errorf("%s: is active in the cluster, and Pulumi is to change its release; commit and push spec.suspend: true, "+
			"wait until Flux has applied it, and run up again; or write owner: flux", owner)
	}
	return nil
}

// String returns the kind, namespace and name, for messages.
func (o Owner) String() string { return fmt.Sprintf("HelmRelease %s/%s", o.Namespace, o.Name) }

// Unlock removes the record of an upgrade that was interrupted, or returns an error. Helm refuses every further upgrade as long as it is
// there. The record before it stays, so that the next upgrade begins where the interrupted one began. The kubeconfig is as for Clear.
func Unlock(ctx context.Context, kubeconfig string, release Release) error {
	ctx, cancel := context.WithTimeoutCause(ctx, DefaultTimeout, fmt.Errorf("gave up after %s", DefaultTimeout))
	defer cancel()
	api, err := connect(kubeconfig)
	if err != nil {
		return fmt.Errorf("%s: %w", release, err)
	}
	records, err := release.records(ctx, api)
	if err != nil {
		return fmt.Errorf("%s: %w", release, err)
	}
	for _, one := range records {
		if len(records) == 1 || !strings.HasPrefix(one.status, "pending-") {
			continue // the only record is that of an installation
		}
		err := api.do(ctx, http.MethodDelete, secrets(release.Namespace)+"/"+url.PathEscape(one.secret), nil)
		if err != nil && !errors.Is(err, errNotFound) {
			return fmt.Errorf("%s: %w", release, err)
		}
	}
	return nil
}
