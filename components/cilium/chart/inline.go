package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
)

// Blank returns the chart's values with a placeholder for each certificate and key. The chart is rendered with them. So the
// renderer gets no key and runs before any key exists, and the first preview shows errors in chart, values or versions.
// BlankManifests.Fill replaces the placeholders afterwards.
func (v Values) Blank() (map[string]any, error) {
	return v.Tree(v.Documents(func(path string) any { return base64Of(placeholder(path)) }))
}

// placeholder returns the placeholder for the PEM document at a path of the chart's values. No placeholder is a prefix of another.
func placeholder(path string) string { return "slipway:" + path }

// Check takes the objects that the chart renders with the values of Blank. It adds Helm's ownership metadata, so that Helm or Flux can
// adopt them, and refuses objects that cannot work as inline manifests. In a mesh, it adds the Secrets of MeshCertificates.
func (v Values) Check(objects []map[string]any) (BlankManifests, error) {
	var problems []error
	for _, object := range objects {
		problems = append(problems, mark(object))
	}
	text, err := json.Marshal(objects)
	problems = append(problems, err)
	for _, what := range v.Certificates() {
		for _, path := range []string{what.Path + ".cert", what.Path + ".key"} {
			plain, encoded := []byte(placeholder(path)), []byte(base64Of(placeholder(path)))
			if !bytes.Contains(text, plain) && !bytes.Contains(text, encoded) {
				problems = append(problems, fmt.Errorf("no object holds the value %s; pick a chart version that takes it", path))
			}
		}
	}
	return append(objects, v.meshSecrets()...), errors.Join(problems...)
}

// Helm's ownership metadata. Helm sets it on each object of a release, and adopts an existing object only if it is there.
const (
	labelManagedBy             = "app.kubernetes.io/managed-by"
	managedByHelm              = "Helm"
	annotationReleaseName      = "meta.helm.sh/release-name"
	annotationReleaseNamespace = "meta.helm.sh/release-namespace"
)

// annotationHook marks an object as a hook, which Helm creates at a certain time only.
const annotationHook = "helm.sh/hook"

// clusterScoped lists kinds without a namespace that the Kubernetes provider does not know.
var clusterScoped = map[string]bool{
	"GatewayClass":                     true,
	"ValidatingAdmissionPolicy":        true,
	"ValidatingAdmissionPolicyBinding": true,
}

// mark adds Helm's ownership metadata to an object. It refuses a hook, because Talos would not run it at its time.
func mark(object map[string]any) error {
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		return fmt.Errorf("%s without metadata: is no Kubernetes object; report it to the chart's authors", kind)
	}
	if annotations, _ := metadata["annotations"].(map[string]any); annotations[annotationHook] != nil {
		return fmt.Errorf("%s %v: is a hook, which Talos does not run; turn off the option that renders it", kind, metadata["name"])
	}
	cluster.SetValue(metadata, ReleaseName, "annotations", annotationReleaseName)
	cluster.SetValue(metadata, ReleaseNamespace, "annotations", annotationReleaseNamespace)
	cluster.SetValue(metadata, managedByHelm, "labels", labelManagedBy)
	if clusterScoped[kind] {
		delete(metadata, "namespace")
	}
	return nil
}

// BlankManifests are Cilium's objects with placeholders for certificates and keys.
type BlankManifests []map[string]any

// Fill writes the objects in their order as a YAML stream, in which it replaces the placeholders with the PEM documents of the same
// path. The stream contains private keys: handle it as a secret.
func (b BlankManifests) Fill(documents map[string]string) (string, error) {
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

// replaced returns a copy of a tree in which the replacer has changed every string except the keys of maps.
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
