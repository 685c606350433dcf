package chart

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"sigs.k8s.io/yaml"
)

// What Helm puts on each object of a release, and asks for before it takes over an object that it has not made.
const (
	LabelManagedBy             = "app.kubernetes.io/managed-by"
	ManagedByHelm              = "Helm"
	AnnotationReleaseName      = "meta.helm.sh/release-name"
	AnnotationReleaseNamespace = "meta.helm.sh/release-namespace"
)

// Release is what a chart is rendered for.
type Release struct {
	Name              string         // of the release
	Namespace         string         // of the release; namespaced objects that name none get it
	KubernetesVersion string         // such as v1.35.8
	APIVersions       []string       // what the cluster serves beside Kubernetes' own, such as gateway.networking.k8s.io/v1/GatewayClass
	Values            map[string]any // what is set over the chart's own values
}

// Render returns the objects of a new release as one YAML stream: in the order in which Helm would create them, with the
// namespace that each is for, and with Helm's mark of ownership, so that Helm, or Flux, can take them over. The same
// input gives the same bytes. Hooks have no place here, for nothing would run them at their time: a chart that renders
// one is refused. So are values that the chart's schema refuses.
func (c *Chart) Render(release Release) (string, error) {
	version, err := chartutil.ParseKubeVersion(release.KubernetesVersion)
	if err != nil {
		return "", fmt.Errorf("kubernetesVersion: %q is no version; write one such as v1.35.8", release.KubernetesVersion)
	}
	if constraint := c.chart.Metadata.KubeVersion; constraint != "" && !chartutil.IsCompatibleRange(constraint, version.Version) {
		return "", fmt.Errorf("kubernetesVersion: chart %s %s wants Kubernetes %s, not %s; pick versions that go together",
			c.chart.Name(), c.Version(), constraint, version.Version)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), release.APIVersions...)
	options := chartutil.ReleaseOptions{Name: release.Name, Namespace: release.Namespace, Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(c.chart, release.Values, options, capabilities)
	if err != nil {
		return "", fmt.Errorf("chart %s %s: %w", c.chart.Name(), c.Version(), err)
	}
	files, err := engine.Render(c.chart, values)
	if err != nil {
		return "", fmt.Errorf("chart %s %s: %w", c.chart.Name(), c.Version(), err)
	}
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, "/NOTES.txt") })
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return "", fmt.Errorf("chart %s %s: %w", c.chart.Name(), c.Version(), err)
	}
	var problems []error
	for _, hook := range hooks {
		problems = append(problems, fmt.Errorf("chart %s %s: %s %s is a hook, which nothing would run; turn off what renders it",
			c.chart.Name(), c.Version(), hook.Kind, hook.Name))
	}
	var stream bytes.Buffer
	for _, manifest := range manifests {
		object, err := release.object(manifest.Content)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", manifest.Name, err))
			continue
		}
		stream.WriteString("---\n")
		stream.Write(object)
	}
	return stream.String(), errors.Join(problems...)
}

// object writes one manifest with what Helm adds to it on the way to the cluster.
func (r Release) object(manifest string) ([]byte, error) {
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		return nil, err
	}
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil || kind == "" {
		return nil, errors.New("rendered something that is no Kubernetes object; report it to the chart's authors")
	}
	entry(metadata, "labels")[LabelManagedBy] = ManagedByHelm
	annotations := entry(metadata, "annotations")
	annotations[AnnotationReleaseName], annotations[AnnotationReleaseNamespace] = r.Name, r.Namespace
	if metadata["namespace"] == nil && !clusterScoped[kind] {
		metadata["namespace"] = r.Namespace
	}
	return yaml.Marshal(object)
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

// clusterScoped are the kinds without a namespace that a chart can be expected to hold. No cluster can be asked.
var clusterScoped = map[string]bool{
	"APIService":                       true,
	"ClusterRole":                      true,
	"ClusterRoleBinding":               true,
	"CustomResourceDefinition":         true,
	"GatewayClass":                     true,
	"IngressClass":                     true,
	"MutatingWebhookConfiguration":     true,
	"Namespace":                        true,
	"PersistentVolume":                 true,
	"PriorityClass":                    true,
	"RuntimeClass":                     true,
	"StorageClass":                     true,
	"ValidatingAdmissionPolicy":        true,
	"ValidatingAdmissionPolicyBinding": true,
	"ValidatingWebhookConfiguration":   true,
}
