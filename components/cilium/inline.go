package cilium

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/helm"
)

// Blank returns the chart's values with a placeholder for each certificate and key. The chart is rendered with them, so that
// the renderer sees no key and runs before there is one: what is wrong with chart, values or versions shows in the first
// preview. Manifests puts the keys in afterwards.
func (v Values) Blank() (map[string]any, error) {
	documents := v.documents(Keys{})
	for path := range documents {
		documents[path] = placeholder(path)
	}
	return v.render(documents)
}

// placeholder stands for the PEM document at a path of the chart's values. No placeholder is the beginning of another one.
func placeholder(path string) string { return "slipway:" + path }

// Manifests turns the objects that the chart renders with the values of Blank into one YAML stream: in the same order, with
// the keys, and with Helm's mark of ownership, so that Helm, or Flux, can take them over. It holds private keys: handle it
// as a secret.
func (v Values) Manifests(objects []map[string]any, keys Keys) (string, error) {
	blank, err := v.check(objects)
	if err != nil {
		return "", err
	}
	return blank.fill(v.documents(keys))
}

// check refuses objects that cannot work as inline manifests.
func (v Values) check(objects []map[string]any) (blankManifests, error) {
	var problems []error
	for _, object := range objects {
		problems = append(problems, mark(object))
	}
	text, err := json.Marshal(objects)
	problems = append(problems, err)
	for _, what := range v.certificates() {
		for _, path := range []string{what.path + ".cert", what.path + ".key"} {
			plain, encoded := []byte(placeholder(path)), []byte(base64Of(placeholder(path)))
			if !bytes.Contains(text, plain) && !bytes.Contains(text, encoded) {
				problems = append(problems, fmt.Errorf("no object holds the value %s; pick a chart version that takes it", path))
			}
		}
	}
	return objects, errors.Join(problems...)
}

// What Helm puts on each object of a release, and asks for before it takes over an object that it has not made.
const (
	labelManagedBy             = "app.kubernetes.io/managed-by"
	managedByHelm              = "Helm"
	annotationReleaseName      = "meta.helm.sh/release-name"
	annotationReleaseNamespace = "meta.helm.sh/release-namespace"
)

// annotationHook makes an object one that Helm creates at a certain time only.
const annotationHook = "helm.sh/hook"

// clusterScoped are the kinds without a namespace that the Kubernetes provider does not know.
var clusterScoped = map[string]bool{
	"GatewayClass":                     true,
	"ValidatingAdmissionPolicy":        true,
	"ValidatingAdmissionPolicyBinding": true,
}

// mark gives an object what Helm adds to it on the way to the cluster. Nothing would run a hook at its time, so one is
// refused.
func mark(object map[string]any) error {
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		return fmt.Errorf("%s without metadata: is no Kubernetes object; report it to the chart's authors", kind)
	}
	annotations := entry(metadata, "annotations")
	if annotations[annotationHook] != nil {
		return fmt.Errorf("%s %v: is a hook, which nothing would run; turn off what renders it", kind, metadata["name"])
	}
	annotations[annotationReleaseName], annotations[annotationReleaseNamespace] = ReleaseName, ReleaseNamespace
	entry(metadata, "labels")[labelManagedBy] = managedByHelm
	if clusterScoped[kind] {
		delete(metadata, "namespace")
	}
	return nil
}

// entry is the map of that name, made if there is none.
func entry(metadata map[string]any, name string) map[string]any {
	below, ok := metadata[name].(map[string]any)
	if !ok {
		below = map[string]any{}
		metadata[name] = below
	}
	return below
}

// blankManifests are Cilium's objects, complete but for the placeholders in them.
type blankManifests []map[string]any

// fill writes the objects as a YAML stream, with PEM documents, by path, in the place of their placeholders.
func (b blankManifests) fill(documents map[string]string) (string, error) {
	var pairs []string
	for path, document := range documents {
		pairs = append(pairs, placeholder(path), document, base64Of(placeholder(path)), base64Of(document))
	}
	replacer := strings.NewReplacer(pairs...)
	var stream bytes.Buffer
	for _, object := range b {
		text, err := yaml.Marshal(replaced(object, replacer))
		if err != nil {
			return "", err
		}
		stream.WriteString("---\n")
		stream.Write(text)
	}
	return stream.String(), nil
}

// replaced is a copy of a tree, with the replacer applied to every string in it but the keys of maps.
func replaced(value any, replacer *strings.Replacer) any {
	switch value := value.(type) {
	case string:
		return replacer.Replace(value)
	case map[string]any:
		copied := make(map[string]any, len(value))
		for key, below := range value {
			copied[key] = replaced(below, replacer)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, element := range value {
			copied[i] = replaced(element, replacer)
		}
		return copied
	}
	return value
}

// inline tells whether the machines carry the manifests.
func (v Values) inline() bool { return v.Cilium.Mode == cluster.CiliumInline }

// renderBlank renders the chart before anything is registered. It returns nothing in mode helm.
func (v Values) renderBlank(ctx *pulumi.Context, provider pulumi.ProviderResource) (blankManifests, error) {
	if !v.inline() {
		return nil, nil
	}
	values, err := v.Blank()
	if err != nil {
		return nil, err
	}
	args := &helm.TemplateArgs{
		Name: ReleaseName, Namespace: ReleaseNamespace,
		Chart: chartName, Version: v.Cilium.Version, Repository: v.Cilium.Repository,
		KubernetesVersion: v.Kubernetes.Version,
		Values:            values,
	}
	if v.Cilium.GatewayAPI {
		// They are served by the time that anything of these manifests asks for them; see RestartOperatorForCRDs.
		args.APIVersions = []string{"gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1/GatewayClass"}
	}
	objects, err := helm.Template(ctx, args, pulumi.Provider(provider))
	if err != nil {
		return nil, err
	}
	blank, err := v.check(objects)
	if err != nil {
		return nil, fmt.Errorf("chart %s %s: %w", args.Chart, args.Version, err)
	}
	return blank, nil
}

// render makes the manifests out of the blank ones, as soon as the PEM documents are known.
func (c *CiliumCore) render(blank blankManifests, documents pulumi.StringMap) {
	c.Version = pulumi.String(c.values.Cilium.Version).ToStringOutput()
	c.InlineManifests = pulumi.ToSecret(documents.ToStringMapOutput().ApplyT(blank.fill)).(pulumi.StringOutput)
}
