package helm

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/utilities"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// functionTemplate is the provider's token of the function that renders a chart. The SDK's kubernetes/helm/v3 Chart uses it.
const functionTemplate = "kubernetes:helm:template"

// TemplateArgs are the provider's options for rendering a chart that Slipway uses. Fields are required unless they say otherwise.
type TemplateArgs struct {
	Name       string // release name
	Namespace  string // namespace of the release
	Chart      string // name in Repository, or an oci:// reference without a tag
	Version    string // exact chart version
	Repository string // https URL of the chart repository; empty with an oci:// reference

	KubernetesVersion string   // version that the chart is rendered for, such as v1.35.8; empty means the provider's own
	APIVersions       []string // APIs beside Kubernetes's own, such as gateway.networking.k8s.io/v1/GatewayClass; optional

	// Values override the chart's own; nil means the chart's own. They must not contain secrets: the provider gets them in plain
	// text and, at the highest log levels, logs them.
	Values map[string]any
}

// Template calls the Kubernetes provider to download a chart and render it for a new release. It returns the objects in the
// order in which Helm would create them, hooks and tests last. Namespaced objects have a namespace. Helm's ownership metadata is
// not set.
//
// The opts must contain the Kubernetes provider. The call runs in previews, too, and needs no cluster. A kind that the provider
// does not know gets a namespace, even if it is cluster-scoped.
func Template(ctx *pulumi.Context, args *TemplateArgs, opts ...pulumi.InvokeOption) ([]map[string]any, error) {
	options, err := json.Marshal(map[string]any{
		"release_name":                args.Name,
		"namespace":                   args.Namespace,
		"chart":                       args.Chart,
		"version":                     args.Version,
		"fetch_opts":                  map[string]any{"repo": args.Repository},
		"kube_version":                args.KubernetesVersion,
		"api_versions":                args.APIVersions,
		"include_test_hook_resources": true, // so that every rendered object is returned
		"skip_crd_rendering":          true, // Helm does not make them part of a release
		"values":                      args.Values,
	})
	if err != nil {
		return nil, fmt.Errorf("chart values: %w", err)
	}
	var answer struct {
		Objects []map[string]any `pulumi:"result"`
	}
	call := struct {
		Options string `pulumi:"jsonOpts"`
	}{string(options)}
	err = ctx.Invoke(functionTemplate, &call, &answer, utilities.PkgInvokeDefaultOpts(opts)...)
	if err == nil && len(answer.Objects) == 0 {
		err = errors.New("renders no object; check whether the repository serves the right chart")
	}
	if err != nil {
		return nil, fmt.Errorf("chart %s %s from %s: %w", args.Chart, args.Version, args.Repository, err)
	}
	return answer.Objects, nil
}
