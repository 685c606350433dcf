// Package charts holds charts of the lab's own, for charts whose source cannot be had, and packages those whose source
// can. Each of its own takes the values that its original takes (those that Slipway sets, and refuses the rest) and makes
// the same-named objects, so that nothing above it can tell.
package charts

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

//go:embed all:flux-operator all:coredns all:spegel
var sources embed.FS

// FluxOperator packages the chart of flux-operator into dir and returns the archive's path. crds is a folder of
// CustomResourceDefinitions, which come with the operator's own source.
func FluxOperator(dir, crds string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("no CustomResourceDefinition in %s", crds)
	}
	var files []*loader.BufferedFile
	for _, path := range paths {
		data, readErr := os.ReadFile(path)
		err = errors.Join(err, readErr)
		files = append(files, &loader.BufferedFile{Name: "crd-bases/" + filepath.Base(path), Data: data})
	}
	if err != nil {
		return "", fmt.Errorf("lab chart flux-operator: %w", err)
	}
	return pack("flux-operator", dir, files...)
}

// CoreDNS packages the chart of CoreDNS into dir and returns the archive's path.
func CoreDNS(dir string) (string, error) { return pack("coredns", dir) }

// Spegel packages the chart of Spegel into dir and returns the archive's path.
func Spegel(dir string) (string, error) { return pack("spegel", dir) }

// CertManager packages cert-manager's own chart, whose source is in the folder of that name, into dir, as the project's
// release does: with the version, such as v1.21.2, put in.
func CertManager(dir, source, version string) (string, error) {
	chart, err := loader.LoadDir(source)
	if err != nil {
		return "", fmt.Errorf("chart cert-manager: %w", err)
	}
	chart.Metadata.Version, chart.Metadata.AppVersion = version, version
	return chartutil.Save(chart, dir)
}

// pack makes an archive of a chart that is kept beside this file, and of more files.
func pack(name, dir string, files ...*loader.BufferedFile) (string, error) {
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
	chart, err := loader.LoadFiles(files)
	if err != nil {
		return "", fmt.Errorf("lab chart %s: %w", name, err)
	}
	return chartutil.Save(chart, dir)
}
