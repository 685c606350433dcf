package services

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/lab/workload"
)

// injectFrom is the annotation with the Secret, NAMESPACE/NAME, that holds the CA of a webhook.
const injectFrom = "cert-manager.io/inject-ca-from-secret"

// StartCertManagerCAInjector runs a simulated cainjector. It writes the CA into each webhook configuration that names a
// Secret with it. Other sources of a CA are not modelled, nor are CRDs and APIServices.
func StartCertManagerCAInjector(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	i, ctx := workload.NewInstance(ctx)
	fmt.Fprintln(c.Log, "simulated cainjector: it writes CAs into webhook configurations")
	i.After(c.Cluster.PodStart, func() {
		i.SetReady(true)
		workload.Repeat(ctx, c, 2*workload.CheckInterval, func() error { return inject(ctx, c) })
	})
	return i, nil
}

func inject(ctx context.Context, c workload.Container) error {
	registrations := c.Cluster.Client.AdmissionregistrationV1()
	validating, err := registrations.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	mutating, err := registrations.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var problems []error
	for _, one := range validating.Items {
		var clients []admissionregistrationv1.WebhookClientConfig
		for _, webhook := range one.Webhooks {
			clients = append(clients, webhook.ClientConfig)
		}
		problems = append(problems, injectCA(ctx, c, one.ObjectMeta, clients, registrations.ValidatingWebhookConfigurations()))
	}
	for _, one := range mutating.Items {
		var clients []admissionregistrationv1.WebhookClientConfig
		for _, webhook := range one.Webhooks {
			clients = append(clients, webhook.ClientConfig)
		}
		problems = append(problems, injectCA(ctx, c, one.ObjectMeta, clients, registrations.MutatingWebhookConfigurations()))
	}
	return errors.Join(problems...)
}

// patcher is the API of one of the two kinds of webhook configuration.
type patcher[T any] interface {
	Patch(ctx context.Context, name string, how types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (T, error)
}

// injectCA writes the CA into a webhook configuration that lacks it.
func injectCA[T any](
	ctx context.Context, c workload.Container, meta metav1.ObjectMeta, clients []admissionregistrationv1.WebhookClientConfig, api patcher[T],
) error {
	patch, err := caPatch(ctx, c, meta, clients)
	if patch == nil {
		return err
	}
	_, err = api.Patch(ctx, meta.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: "cert-manager-cainjector"})
	return err
}

// caPatch is the patch with the CA that a webhook configuration lacks; nil if it lacks none or the CA is not known yet.
func caPatch(
	ctx context.Context, c workload.Container, meta metav1.ObjectMeta, clients []admissionregistrationv1.WebhookClientConfig,
) ([]byte, error) {
	namespace, name, found := strings.Cut(meta.Annotations[injectFrom], "/")
	if !found {
		return nil, nil
	}
	secret, err := c.Cluster.Client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || len(secret.Data["ca.crt"]) == 0 {
		return nil, err
	}
	var operations []any
	for at, client := range clients {
		if !bytes.Equal(client.CABundle, secret.Data["ca.crt"]) {
			operations = append(operations, map[string]any{
				"op": "add", "path": fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", at), "value": secret.Data["ca.crt"],
			})
		}
	}
	if len(operations) == 0 {
		return nil, nil
	}
	return json.Marshal(operations)
}
