// Package charts holds charts of the lab's own, for charts whose source cannot be had. Each takes the values that its
// original takes (those that Slipway sets) and makes the same-named objects, so that nothing above it can tell.
package charts

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

//go:embed all:flux-operator
var sources embed.FS

// FluxOperator packages the chart of flux-operator into dir and returns the archive's path. crds is a folder of
// CustomResourceDefinitions, which come with the operator's own source.
func FluxOperator(dir, crds string) (string, error) { return pack("flux-operator", dir, crds) }

func pack(name, dir, crds string) (string, error) {
	var files []*loader.BufferedFile
	err := fs.WalkDir(sources, name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := sources.ReadFile(path)
		files = append(files, &loader.BufferedFile{Name: strings.TrimPrefix(path, name+"/"), Data: data})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("lab chart %s: %w", name, err)
	}
	paths, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil {
		return "", fmt.Errorf("lab chart %s: %w", name, err)
	}
	if len(paths) == 0 {
		return "", fmt.Errorf("lab chart %s: no CustomResourceDefinition in %s", name, crds)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("lab chart %s: %w", name, err)
		}
		files = append(files, &loader.BufferedFile{Name: "crd-bases/" + filepath.Base(path), Data: data})
	}
	chart, err := loader.LoadFiles(files)
	if err != nil {
		return "", fmt.Errorf("lab chart %s: %w", name, err)
	}
	return chartutil.Save(chart, dir)
}
