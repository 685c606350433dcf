package observe

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/cluster/secrecy"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/externalsecrets"
)

// ExternalSecrets reads what the checks of package externalsecrets judge. It only lists and watches objects.
type ExternalSecrets struct {
	*observer[externalsecrets.Spec, externalsecrets.Cluster]
}

// NewExternalSecrets returns an ExternalSecrets that has read nothing yet.
func NewExternalSecrets(spec *externalsecrets.Spec, kube *Kube) *ExternalSecrets {
	return &ExternalSecrets{newObserver(spec, kube, externalsecrets.Evaluate)}
}

// Watch reads until ctx ends, and returns when everything it started has ended.
func (e *ExternalSecrets) Watch(ctx context.Context) {
	w := e.watches(ctx)
	defer w.Wait()
	keep(w, externalSecretsKind("clustersecretstores", "", ""), plain(externalSecretsObject),
		func(seen *externalsecrets.Cluster) *health.Seen[externalsecrets.Object] { return &seen.Stores })
	keep(w, externalSecretsKind("externalsecrets", e.spec.Namespace, e.spec.ExternalSecret), plain(externalSecretsObject),
		func(seen *externalsecrets.Cluster) *health.Seen[externalsecrets.Object] { return &seen.Secrets })
	keep(w, kind{GroupVersionResource: kubeapi.Events}, plain(warning),
		func(seen *externalsecrets.Cluster) *health.Seen[externalsecrets.Warning] { return &seen.Warnings })
}

// externalSecretsKind is an object of External Secrets Operator.
func externalSecretsKind(resource, namespace, name string) kind {
	gvr := schema.GroupVersionResource{Group: "external-secrets.io", Version: "v1", Resource: resource}
	return kind{GroupVersionResource: gvr, Namespace: namespace, Name: name}
}

// externalSecretsObject reads a ClusterSecretStore or an ExternalSecret.
func externalSecretsObject(object *unstructured.Unstructured) (externalsecrets.Object, error) {
	seen := externalsecrets.Object{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), Current: true}
	if seen.Kind == externalsecrets.Secret {
		// GENERATION-HASH; the hash is of annotations and labels.
		synced, _, _ := unstructured.NestedString(object.Object, "status", "syncedResourceVersion")
		generation, _, _ := strings.Cut(synced, "-")
		seen.Current = generation == strconv.FormatInt(object.GetGeneration(), 10)
	}
	ready := kubeapi.ConditionOf(object.Object, "Ready")
	seen.Ready, seen.Reason, seen.Message = ready.Status, ready.Reason, secrecy.Line(firstLine(ready.Message))
	return seen, nil
}

// warning reads an event. An event that is no warning has no text.
func warning(object *unstructured.Unstructured) (externalsecrets.Warning, error) {
	event, err := kubeapi.Typed[corev1.Event](object)
	if err != nil || event.Type != corev1.EventTypeWarning {
		return externalsecrets.Warning{}, err
	}
	return externalsecrets.Warning{
		Kind: event.InvolvedObject.Kind, Namespace: event.Namespace, Name: event.InvolvedObject.Name,
		Text: secrecy.Line(fmt.Sprintf("event %s: %s", cmp.Or(event.Reason, "without a reason"), firstLine(event.Message))),
		Time: eventTime(event).UnixNano(),
	}, nil
}
