package v1

import (
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
)

// SetupWebhookWithManager registers the webhook of SecretStores.
func (c *SecretStore) SetupWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, runtime.Object(c)).WithCustomValidator(&GenericStoreValidator{}).Complete()
}

// SetupWebhookWithManager registers the webhook of ClusterSecretStores.
func (c *ClusterSecretStore) SetupWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, runtime.Object(c)).WithCustomValidator(&GenericStoreValidator{}).Complete()
}
