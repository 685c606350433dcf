// Package leftover removes the record of a Helm release that an interrupted run has left in the cluster.
//
// A run that is killed while Helm installs leaves the release's record in the cluster, and no release in the state. Every later
// run would fail, because Helm does not install under a name that is in use. Clear removes the record and nothing else: Helm
// then installs again and adopts the release's objects, whose ownership metadata names it, without a restart of running pods. A
// release that was upgraded, or that has another chart, is refused with a remedy.
package leftover

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
)

const (
	timeout        = time.Minute      // longest wait for an API server that does not answer
	requestTimeout = 10 * time.Second // for one request
)

// Release is a Helm release that is about to be installed.
type Release struct {
	Namespace string
	Name      string
	Chart     string // the chart's own name
}

// Clear makes sure that the release's name is free, or returns an error. Without a leftover it sends one request.
func Clear(ctx context.Context, kubeconfig string, release Release) error {
	return inCluster(ctx, kubeconfig, release, release.clear)
}

// inCluster calls f with a client of the kubeconfig's cluster. The error names the subject.
func inCluster(ctx context.Context, kubeconfig string, subject fmt.Stringer, f func(context.Context, *kubeapi.Client) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("gave up after %s", timeout))
	defer cancel()
	api, err := kubeapi.New([]byte(kubeconfig), requestTimeout)
	if err == nil {
		err = f(ctx, api)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", subject, err)
	}
	return nil
}

// String returns the kind, namespace and name of the release, for messages.
func (r Release) String() string { return fmt.Sprintf("Helm release %s/%s", r.Namespace, r.Name) }

func (r Release) clear(ctx context.Context, api *kubeapi.Client) error {
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
	return r.remove(ctx, api, left)
}

// remove deletes a record, unless it is gone.
func (r Release) remove(ctx context.Context, api *kubeapi.Client, one record) error {
	err := kubeapi.Retry(ctx, nil, func() error {
		return api.Objects.Resource(kubeapi.Secrets).Namespace(r.Namespace).Delete(ctx, one.secret, metav1.DeleteOptions{})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
