// Package leftover makes way for a Helm release whose installation an interrupted run has left behind.
//
// A run that is killed while Helm installs leaves the release's record in the cluster and no state that knows of it, and
// every later run would fail, for Helm does not install under a name that is in use. Clear removes the record, and the
// record alone: Helm then installs again and takes over the release's objects, which bear its name, without touching
// what runs. A release that somebody has upgraded, or of another chart, is refused with a remedy. It imports no Pulumi,
// and no Kubernetes client: those would weigh more than the rest of the program.
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

// Release says what is about to be installed.
type Release struct {
	Namespace string
	Name      string
	Chart     string // the chart's own name
}

// Clear makes sure that Helm finds the release's name free or refuses. Without a leftover it costs one request. The
// kubeconfig is YAML as Talos makes it: with a client certificate.
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

// String names the release as Helm's users do.
func (r Release) String() string { return fmt.Sprintf("Helm release %s/%s", r.Namespace, r.Name) }

func (r Release) clear(ctx context.Context, api *client) error {
	records, err := r.records(ctx, api)
	if err != nil || len(records) == 0 {
		return err
	}
	if len(records) > 1 || records[0].revision != "1" {
		return fmt.Errorf("is in the cluster with %d revisions, and in no state of this stack; take it into the state with `pulumi import`, "+
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
