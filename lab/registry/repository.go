// Package registry serves the lab's charts, in a classic chart repository and an OCI registry, and the repository's tree as an OCI
// artifact, as http.Handlers. Package world serves them under the real names.
package registry

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/provenance"
	"helm.sh/helm/v3/pkg/repo"
	"sigs.k8s.io/yaml"
)

// HelmRepository serves chart archives as a chart repository: /index.yaml, and the archives in the same folder.
func HelmRepository(archives ...string) (http.Handler, error) {
	index := repo.NewIndexFile()
	files := map[string]string{}
	for _, path := range archives {
		chart, err := loader.LoadFile(path)
		if err != nil {
			return nil, fmt.Errorf("chart repository: %s: %w", path, err)
		}
		digest, err := provenance.DigestFile(path)
		if err != nil {
			return nil, fmt.Errorf("chart repository: %s: %w", path, err)
		}
		name := filepath.Base(path)
		if err := index.MustAdd(chart.Metadata, name, "", digest); err != nil {
			return nil, fmt.Errorf("chart repository: %s: %w", path, err)
		}
		files["/"+name] = path
	}
	return serve(index, files)
}

// Unbuilt serves a chart repository that names one chart and does not have it, because the lab's user has not built it. What Helm prints
// then is the address of the archive, which therefore contains the command that builds it.
func Unbuilt(chart, version, command string) (http.Handler, error) {
	index := repo.NewIndexFile()
	name := chart + "-is-not-built/" + strings.ReplaceAll(command, " ", "+") + ".tgz"
	if err := index.MustAdd(&helmchart.Metadata{APIVersion: helmchart.APIVersionV2, Name: chart, Version: version}, name, "", ""); err != nil {
		return nil, fmt.Errorf("chart repository: %s: %w", chart, err)
	}
	return serve(index, nil)
}

// serve serves an index, and files by their paths.
func serve(index *repo.IndexFile, files map[string]string) (http.Handler, error) {
	index.SortEntries()
	content, err := yaml.Marshal(index)
	if err != nil {
		return nil, fmt.Errorf("chart repository: index: %w", err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, known := files[r.URL.Path]
		switch {
		case r.URL.Path == "/index.yaml":
			http.ServeContent(w, r, "index.yaml", time.Time{}, bytes.NewReader(content))
		case known:
			http.ServeFile(w, r, path)
		default:
			http.NotFound(w, r)
		}
	}), nil
}
