package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// chartSources are charts of the tree whose sources are part of a Go module that the lab pins.
var chartSources = map[string]struct{ pinnedIn, module, folder string }{
	"descheduler":  {"descheduler-chart", "sigs.k8s.io/descheduler", "charts/descheduler"},
	"external-dns": {"external-dns-chart", "sigs.k8s.io/external-dns", "charts/external-dns"},
	"rook-ceph":    {"rook-crds", "github.com/rook/rook", "deploy/charts/rook-ceph"},
}

// standIns is the folder of the lab's charts that stand in for others, of the same names. They know only the values that the tree sets.
var standIns = filepath.Join(repository, "lab", "registry", "charts")

// chartOf loads the chart of a HelmRelease. original is false if it is the lab's.
func chartOf(name string) (loaded *chart.Chart, original bool, err error) {
	source, original := chartSources[name]
	folder, version := filepath.Join(standIns, name), ""
	if original {
		var dir string
		if dir, version, err = module(source.pinnedIn, source.module); err != nil {
			return nil, true, err
		}
		folder = filepath.Join(dir, source.folder)
		if name == "rook-ceph" {
			return rookChart(folder, version)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "Chart.yaml")); err != nil {
		return nil, original, fmt.Errorf("chart %s cannot be had; add its module to chartSources, or a chart to the lab", name)
	}
	loaded, err = loader.LoadDir(folder)
	if err == nil && name == "descheduler" { // its sources have the version before
		loaded.Metadata.Version = strings.TrimPrefix(version, "v")
	}
	return loaded, original, err
}

// rookChart loads the chart of Rook, whose release sets its version and adds its library. Its other dependency is switched off.
func rookChart(folder, version string) (*chart.Chart, bool, error) {
	rook, err := loader.LoadDir(folder)
	if err != nil {
		return nil, true, err
	}
	library, err := loader.LoadDir(filepath.Join(folder, "..", "library"))
	if err != nil {
		return nil, true, err
	}
	rook.Metadata.Version, rook.Metadata.Dependencies, rook.Lock = version, nil, nil
	rook.AddDependency(library)
	return rook, true, nil
}

// Render renders the chart of a HelmRelease with its values, as Helm does for a new release. original is false if the chart is the lab's.
func Render(release Object) (objects []Object, original bool, err error) {
	name, version := release.Text("spec", "chart", "spec", "chart"), release.Text("spec", "chart", "spec", "version")
	loaded, original, err := chartOf(name)
	if err != nil {
		return nil, original, err
	}
	if loaded.Metadata.Version != version {
		return nil, original, fmt.Errorf("spec.chart.spec.version: is %s, and the chart that can be had is %s", version, loaded.Metadata.Version)
	}
	values, _, err := unstructured.NestedMap(release.Object, "spec", "values")
	if err != nil {
		return nil, original, err
	}
	objects, err = objectsOf(loaded, values, release.Text("spec", "releaseName"), release.GetNamespace())
	return objects, original, err
}

// objectsOf renders a chart for a new release.
func objectsOf(loaded *chart.Chart, values map[string]any, name, namespace string) (objects []Object, err error) {
	options := chartutil.ReleaseOptions{Name: name, Namespace: namespace, IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(loaded, values, options, nil)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	for file, text := range files {
		if strings.HasSuffix(file, "NOTES.txt") {
			continue
		}
		for document := range strings.SplitSeq("\n"+text, "\n---") {
			object := Object{Unstructured: &unstructured.Unstructured{}}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if object.GetKind() == "" {
				continue
			}
			if object.GetNamespace() == "" && !clusterScoped(object) {
				object.SetNamespace(namespace)
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// clusterScoped reports whether a kind of Kubernetes itself has no namespace, as far as charts of the tree have such objects.
func clusterScoped(object Object) bool {
	return strings.HasPrefix(object.GetKind(), "Cluster") || strings.HasSuffix(object.GetKind(), "WebhookConfiguration") ||
		object.GetKind() == "APIService"
}
