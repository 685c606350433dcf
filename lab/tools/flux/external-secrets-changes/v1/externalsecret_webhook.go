// Package v1 has external-secrets' webhooks for the controller-runtime of the other tools, where NewWebhookManagedBy
// takes the object. WithValidator would panic at each request: it needs a concrete type, and these validators take any.
package v1

import (
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
)

// SetupWebhookWithManager registers the webhook of ExternalSecrets.
func (es *ExternalSecret) SetupWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, runtime.Object(es)).WithCustomValidator(&ExternalSecretValidator{}).Complete()
}
