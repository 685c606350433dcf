// Package charts renders Helm charts from archives on this computer. It asks no cluster, and a chart repository only with a Fetcher.
package charts

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/preview/report"
)

// Renderer renders charts for one cluster.
type Renderer struct {
	Folders    []string // with archives NAME-VERSION.tgz, as `helm pull` writes them, or as the fetcher does
	Fetcher    *Fetcher // fetches what is in none of them; nil means nothing is fetched
	Kubernetes string   // version, such as v1.35.8
}

// kinds are the kinds of CRDs that the bootstrap installs before any chart, and that charts ask for.
var kinds = []string{
	"cert-manager.io/v1", "external-secrets.io/v1", "gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1/GatewayClass",
	"monitoring.coreos.com/v1", "monitoring.coreos.com/v1/PodMonitor", "monitoring.coreos.com/v1/ServiceMonitor",
}

// Add sets the manifests of a chart, or why they cannot be had.
func (r Renderer) Add(ctx context.Context, chart *report.Chart) {
	chart.Manifests, chart.Unrendered = nil, ""
	archive, err := r.find(ctx, *chart)
	if err != nil {
		chart.Unrendered = err.Error()
		return
	}
	manifests, err := r.render(archive, *chart)
	if err != nil {
		chart.Unrendered = "the chart cannot be rendered without the cluster's secrets: " + err.Error()
		return
	}
	chart.Manifests = manifests
}

// find returns the path of a chart's archive.
func (r Renderer) find(ctx context.Context, chart report.Chart) (string, error) {
	for _, folder := range r.Folders {
		for _, archive := range []string{place(folder, chart), filepath.Join(folder, archiveName(chart))} {
			if _, err := os.Stat(archive); !errors.Is(err, fs.ErrNotExist) {
				return archive, nil
			}
		}
	}
	if r.Fetcher == nil {
		return "", fmt.Errorf("%s is not on this computer", archiveName(chart))
	}
	archive, err := r.Fetcher.fetch(ctx, chart)
	if err != nil {
		return "", fmt.Errorf("%s is not on this computer, and cannot be fetched: %w", archiveName(chart), err)
	}
	return archive, nil
}

func (r Renderer) render(archive string, of report.Chart) (map[string]string, error) {
	loaded, err := loader.LoadFile(archive)
	if err != nil {
		return nil, err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	version, err := chartutil.ParseKubeVersion(r.Kubernetes)
	if err != nil {
		return nil, err
	}
	capabilities.KubeVersion = *version
	capabilities.APIVersions = append(capabilities.APIVersions, kinds...)
	values, _ := decodable(of.Values).(map[string]any)
	if err := chartutil.ProcessDependencies(loaded, values); err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: of.Name, Namespace: of.Namespace, IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(loaded, values, options, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	manifests := map[string]string{}
	for file, text := range files {
		if strings.HasSuffix(file, "NOTES.txt") {
			continue
		}
		for document := range strings.SplitSeq("\n"+text, "\n---") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				return nil, fmt.Errorf("%s: %w", path.Base(file), err)
			}
			if title := titleOf(object, of.Namespace); title != "" {
				manifests[title] = strings.Join(report.Lines(shown(object)), "\n")
			}
		}
	}
	return manifests, nil
}

// titleOf names an object; "" if it is none.
func titleOf(object map[string]any, namespace string) string {
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if kind == "" || name == "" {
		return ""
	}
	if own, is := metadata["namespace"].(string); is {
		namespace = own
	}
	return kind + " " + namespace + "/" + name
}

// standIn takes the place of hidden values while a chart is rendered: in base64, because charts decode certificates.
var standIn = base64.StdEncoding.EncodeToString([]byte(report.Hidden))

// decodable returns values with the stand-in for what is hidden or not known yet.
func decodable(value any) any {
	switch value := value.(type) {
	case map[string]any:
		tree := map[string]any{}
		for key, below := range value {
			tree[key] = decodable(below)
		}
		return tree
	case []any:
		list := make([]any, len(value))
		for i, below := range value {
			list[i] = decodable(below)
		}
		return list
	case string:
		if value == report.Hidden || value == report.Later {
			return standIn
		}
	}
	return value
}

// shown returns an object as it is displayed: what a Secret contains is hidden.
func shown(object map[string]any) map[string]any {
	if object["kind"] != "Secret" {
		return object
	}
	for _, part := range []string{"data", "stringData"} {
		if values, is := object[part].(map[string]any); is {
			for key := range values {
				values[key] = report.Hidden
			}
		}
	}
	return object
}
