// Package charts packages charts. Some are the lab's own, for charts whose source cannot be had. Each takes the values
// that Slipway sets for the original, refuses others, and creates objects with the same names, so that callers notice
// no difference.
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

//go:embed all:*/*
var sources embed.FS

// As packages the chart of an archive into dir as another version, which stands for one that the lab does not have.
func As(version, archive, dir string) (string, error) {
	chart, err := loader.LoadFile(archive)
	if err != nil {
		return "", fmt.Errorf("lab chart %s: %w", archive, err)
	}
	chart.Metadata.Version, chart.Metadata.AppVersion = version, "v"+version
	return chartutil.Save(chart, dir)
}

// FluxOperator packages the chart of flux-operator into dir and returns the archive's path. crds is a folder of CRDs
// from the operator's own source.
func FluxOperator(dir, crds string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("no CRD in %s", crds)
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
	return Pack("flux-operator", dir, files...)
}

// ExternalSecrets packages external-secrets' own chart from the folder source into dir, with a version of the chart and a version of the
// program, such as 0.20.4. They differ if the chart stands for one that the lab does not have. It leaves out the chart's optional
// dependency, whose archive the sources lack, and has no CRDs, which the project adds to its release.
func ExternalSecrets(dir, source, version, program string) (string, error) {
	chart, err := loader.LoadDir(source)
	if err != nil {
		return "", fmt.Errorf("chart external-secrets: %w", err)
	}
	chart.Metadata.Version, chart.Metadata.AppVersion = version, "v"+program
	chart.Metadata.Dependencies, chart.Lock = nil, nil
	return chartutil.Save(chart, dir)
}

// ArgoCD packages Argo CD's own chart from the folder source into dir. It leaves out the chart's optional dependency redis-ha, whose
// archive the sources lack: with redis-ha.enabled, there is no Redis.
func ArgoCD(dir, source string) (string, error) {
	chart, err := loader.LoadDir(source)
	if err != nil {
		return "", fmt.Errorf("chart argo-cd: %w", err)
	}
	chart.Metadata.Dependencies, chart.Lock = nil, nil
	return chartutil.Save(chart, dir)
}

// Own packages a project's own chart from the folder source into dir, with the version of its release; "" means that the sources have it.
func Own(dir, source, version string) (string, error) {
	chart, err := loader.LoadDir(source)
	if err != nil {
		return "", fmt.Errorf("chart in %s: %w", source, err)
	}
	if version != "" {
		chart.Metadata.Version, chart.Metadata.AppVersion = version, version
	}
	return chartutil.Save(chart, dir)
}

// Rook packages Rook's own chart into dir, with the version of the release, such as v1.20.6. In the folder source are the chart, its
// library, and the chart of the operator of the CSI drivers, in the version that Rook's chart names.
func Rook(dir, source, version string) (string, error) {
	rook, err := loader.LoadDir(filepath.Join(source, "chart"))
	if err != nil {
		return "", fmt.Errorf("chart rook-ceph: %w", err)
	}
	rook.Metadata.Version, rook.Metadata.AppVersion, rook.Lock = version, version, nil
	for _, folder := range []string{"library", "csi-operator"} {
		part, err := loader.LoadDir(filepath.Join(source, folder))
		if err != nil {
			return "", fmt.Errorf("chart rook-ceph: its %s: %w", folder, err)
		}
		for _, dependency := range rook.Metadata.Dependencies {
			if dependency.Name == part.Name() {
				part.Metadata.Version = dependency.Version
			}
		}
		rook.AddDependency(part)
	}
	return chartutil.Save(rook, dir)
}

// Pack packages the lab's own chart of that name, a folder of this package, into dir, with additional files. It returns the archive's path.
func Pack(name, dir string, files ...*loader.BufferedFile) (string, error) {
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
