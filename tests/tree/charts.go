package tree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// chartSources are charts of the tree whose sources are part of a Go module that the lab pins.
var chartSources = map[string]struct{ pinnedIn, module, folder string }{
	"descheduler":      {"descheduler-chart", "sigs.k8s.io/descheduler", "charts/descheduler"},
	"external-dns":     {"external-dns-chart", "sigs.k8s.io/external-dns", "charts/external-dns"},
	"metrics-server":   {"../../tests/tree/sources", "sigs.k8s.io/metrics-server", "charts/metrics-server"},
	"rook-ceph":        {"rook-crds", "github.com/rook/rook", "deploy/charts/rook-ceph"},
	"ceph-csi-drivers": {"rook-crds", cephCSIModule, "deploy/charts/ceph-csi-drivers"},
}

// cephCSIModule has the operator of the CSI drivers, with its chart, on which Rook's depends, and that of the drivers.
const cephCSIModule = "github.com/ceph/ceph-csi-operator"

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
		switch name {
		case "rook-ceph":
			return rookChart(folder, version)
		case "ceph-csi-drivers":
			loaded, err := loader.LoadDir(folder)
			if err == nil {
				loaded.Metadata.Version = strings.TrimPrefix(version, "v") // the project sets it when it publishes the chart
			}
			return loaded, true, err
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

// rookChart loads the chart of Rook, whose release sets its version and adds the charts on which it depends: its library, and the operator
// of the CSI drivers.
func rookChart(folder, version string) (*chart.Chart, bool, error) {
	rook, err := loader.LoadDir(folder)
	if err != nil {
		return nil, true, err
	}
	library, err := loader.LoadDir(filepath.Join(folder, "..", "library"))
	if err != nil {
		return nil, true, err
	}
	module, operatorVersion, err := module("rook-crds", cephCSIModule)
	if err != nil {
		return nil, true, err
	}
	operator, err := loader.LoadDir(filepath.Join(module, "deploy", "charts", "ceph-csi-operator"))
	if err != nil {
		return nil, true, err
	}
	operator.Metadata.Version = strings.TrimPrefix(operatorVersion, "v")
	rook.Metadata.Version, rook.Lock = version, nil
	rook.AddDependency(library, operator)
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
	if err := chartutil.ProcessDependencies(loaded, values); err != nil {
		return nil, original, err
	}
	objects, err = objectsOf(loaded, values, release.Text("spec", "releaseName"), release.GetNamespace())
	if err == nil {
		objects, err = postRender(release, objects)
	}
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

// postRender applies the patches of a release to its rendered objects, as helm-controller does.
func postRender(release Object, objects []Object) ([]Object, error) {
	var patches []any
	for _, step := range release.List("spec", "postRenderers") {
		added, _, err := unstructured.NestedSlice(step, "kustomize", "patches")
		if err != nil {
			return nil, err
		}
		patches = append(patches, added...)
	}
	if len(patches) == 0 {
		return objects, nil
	}
	files := filesys.MakeFsInMemory()
	var before []byte
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, err
		}
		before = append(append(before, "---\n"...), text...)
	}
	kustomization, err := yaml.Marshal(map[string]any{"resources": []string{"rendered.yaml"}, "patches": patches})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(files.WriteFile("rendered.yaml", before), files.WriteFile("kustomization.yaml", kustomization)); err != nil {
		return nil, err
	}
	after, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, ".")
	if err != nil {
		return nil, fmt.Errorf("spec.postRenderers: %w", err)
	}
	objects = nil
	for _, resource := range after.Resources() {
		content, err := resource.Map()
		if err != nil {
			return nil, err
		}
		objects = append(objects, Object{Unstructured: &unstructured.Unstructured{Object: content}})
	}
	return objects, nil
}

// clusterScoped reports whether a kind of Kubernetes itself has no namespace, as far as charts of the tree have such objects.
func clusterScoped(object Object) bool {
	kind := object.GetKind()
	return strings.HasPrefix(kind, "Cluster") || strings.HasSuffix(kind, "WebhookConfiguration") ||
		kind == "CustomResourceDefinition" || kind == "APIService"
}
