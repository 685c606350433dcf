// Package leftover removes the record of a Helm release that an interrupted run has left in the cluster.
//
// A run that is killed while Helm installs leaves the release's record in the cluster, and no release in the state. Every later
// run would fail, because Helm does not install under a name that is in use. Clear removes the record and nothing else: Helm
// then installs again and adopts the release's objects, whose ownership metadata names it, without a restart of running pods. A
// release that was upgraded, or that has another chart, is refused with a remedy. The package imports no Pulumi and no
// Kubernetes client: those would be larger than the rest of the program.
package leftover

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// DefaultTimeout is the longest wait for an API server that does not answer.
const DefaultTimeout = time.Minute

// Release is a Helm release that is about to be installed.
type Release struct {
	Namespace string
	Name      string
	Chart     string // the chart's own name
}

// Clear makes sure that the release's name is free, or returns an error. Without a leftover it sends one request. The kubeconfig
// is YAML in Talos's form, with a client certificate.
func Clear(ctx context.Context, kubeconfig string, release Release) error {
	ctx, cancel := context.WithTimeoutCause(ctx, DefaultTimeout, fmt.Errorf("gave up after %s", DefaultTimeout))
	defer cancel()
	api, err := connect(kubeconfig)
	if err != nil {
		return fmt.Errorf("%s: %w", release, err)
	}
	if err := release.clear(ctx, api); err != nil {
		return fmt.Errorf("%s: %w", release, err)
	}
	return nil
}

// String returns the kind, namespace and name of the release, for messages.
func (r Release) String() string { return fmt.Sprintf("Helm release %s/%s", r.Namespace, r.Name) }

func (r Release) clear(ctx context.Context, api *client) error {
	records, err := r.records(ctx, api)
	if err != nil || len(records) == 0 {
		return err
	}
	if len(records) > 1 || records[0].revision != "1" {
		return fmt.Errorf("is in the cluster with %d revisions, and not in this stack's state; take it into the state with `pulumi import`, "+
			"or remove it with `helm uninstall`", len(records))
	}
	left := records[0]
	if left.chart != r.Chart {
		return fmt.Errorf("is in the cluster as chart %q, and %q is to be installed; remove it with `helm uninstall`", left.chart, r.Chart)
	}
	err = api.do(ctx, http.MethodDelete, secrets(r.Namespace)+"/"+url.PathEscape(left.secret), nil)
	if errors.Is(err, errNotFound) {
		return nil
	}
	return err
}

func secrets(namespace string) string {
	return "/api/v1/namespaces/" + url.PathEscape(namespace) + "/secrets"
}
