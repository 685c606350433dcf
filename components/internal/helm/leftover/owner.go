package leftover

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-platform/slipway/internal/kubeapi"
)

// Owner is the HelmRelease with which Flux owns, or owned, a release.
type Owner struct {
	Namespace string
	Name      string
}

// Released makes sure that Flux does not own the release, or returns an error: the HelmRelease is suspended, or there is none. An active
// HelmRelease would undo, at its next change, what is about to be installed.
func Released(ctx context.Context, kubeconfig string, owner Owner) error {
	return inCluster(ctx, kubeconfig, owner, func(ctx context.Context, api *kubeapi.Client) error {
		var live struct {
			Spec struct {
				Suspend bool `json:"suspend"`
			} `json:"spec"`
		}
		path := "/apis/helm.toolkit.fluxcd.io/v2/namespaces/" + owner.Namespace + "/helmreleases/" + owner.Name
		found, err := api.ReadJSON(ctx, path, &live)
		if err == nil && found && !live.Spec.Suspend { // found is false without Flux, too
			return errors.New("is active in the cluster, and Pulumi is to change its release; commit and push spec.suspend: true, " +
				"wait until Flux has applied it, and run up again; or write owner: flux")
		}
		return err
	})
}

// String returns the kind, namespace and name, for messages.
func (o Owner) String() string { return fmt.Sprintf("HelmRelease %s/%s", o.Namespace, o.Name) }

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
