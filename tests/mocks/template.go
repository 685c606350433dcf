package mocks

import (
	"encoding/json"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// FunctionTemplate is the Kubernetes provider's function that renders a chart.
const FunctionTemplate = "kubernetes:helm:template"

// CiliumTemplate answers for the Kubernetes provider when it renders Cilium's chart. It returns a ConfigMap with the options of the
// call, an operator, a GatewayClass with the namespace that the provider sets for kinds it does not know, and a Secret for each pair
// of certificate and key in the values. It does not model the rest of Cilium.
func CiliumTemplate(call pulumi.MockCallArgs) (resource.PropertyMap, error) {
	var options struct {
		Namespace         string         `json:"namespace"`
		Version           string         `json:"version"`
		KubernetesVersion string         `json:"kube_version"`
		APIVersions       []string       `json:"api_versions"`
		Values            map[string]any `json:"values"`
	}
	if err := json.Unmarshal([]byte(call.Args["jsonOpts"].StringValue()), &options); err != nil {
		return nil, err
	}
	cluster, _ := options.Values["cluster"].(map[string]any)
	object := func(apiVersion, kind, name, field string, value map[string]any) any {
		return map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": options.Namespace}, field: value,
		}
	}
	objects := []any{object("v1", "ConfigMap", "cilium-config", "data", map[string]any{
		"cluster-name": cluster["name"], "chart": options.Version, "kubernetes": options.KubernetesVersion,
	})}
	for _, api := range options.APIVersions {
		if api == "gateway.networking.k8s.io/v1/GatewayClass" {
			objects = append(objects, object("gateway.networking.k8s.io/v1", "GatewayClass", "cilium", "spec", map[string]any{}))
		}
	}
	authority, _ := options.Values["tls"].(map[string]any)["ca"].(map[string]any)
	var secrets func(name string, values map[string]any)
	secrets = func(name string, values map[string]any) {
		if values["cert"] != nil && values["key"] != nil {
			objects = append(objects, object("v1", "Secret", name, "data", map[string]any{
				"ca.crt": authority["cert"], "tls.crt": values["cert"], "tls.key": values["key"],
			}))
		}
		for key, below := range values {
			if below, ok := below.(map[string]any); ok {
				secrets(name+"-"+key, below)
			}
		}
	}
	secrets("certs", options.Values)
	objects = append(objects, object("apps/v1", "Deployment", "cilium-operator", "spec", map[string]any{"replicas": 2}))
	return resource.NewPropertyMapFromMap(map[string]any{"result": objects}), nil
}
