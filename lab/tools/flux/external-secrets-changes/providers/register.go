// Package register replaces external-secrets' list of all providers. The lab has a server for one of them.
package register

import (
	"context"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	"github.com/external-secrets/external-secrets/pkg/provider/onepassword"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// perStore gives each store a client of its own, as external-secrets 2.5 and newer do. The provider of 0.20.4 has one client, whose token and
// vaults are those of the store that was used last.
type perStore struct{ esv1.Provider }

// NewClient returns a client for a store.
func (perStore) NewClient(
	ctx context.Context, store esv1.GenericStore, kube client.Client, namespace string,
) (esv1.SecretsClient, error) {
	return (&onepassword.ProviderOnePassword{}).NewClient(ctx, store, kube, namespace)
}

func init() {
	esv1.ForceRegister(perStore{&onepassword.ProviderOnePassword{}},
		&esv1.SecretStoreProvider{OnePassword: &esv1.OnePasswordProvider{}}, esv1.MaintenanceStatusMaintained)
}
