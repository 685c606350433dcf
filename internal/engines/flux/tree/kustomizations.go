package tree

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
)

const kustomizeGroup = "kustomize.config.k8s.io"

// kustomizeFields are the fields of a kustomization: api/types/kustomization.go of kustomize 5. It refuses others.
var kustomizeFields = []string{
	"apiVersion", "bases", "buildMetadata", "commonAnnotations", "commonLabels", "components", "configMapGenerator", "configurations", "crds",
	"generatorOptions", "generators", "helmChartInflationGenerator", "helmCharts", "helmGlobals", "imageTags", "images", "kind", "labels",
	"metadata", "namePrefix", "nameSuffix", "namespace", "openapi", "patches", "patchesJson6902", "patchesStrategicMerge", "replacements",
	"replicas", "resources", "secretGenerator", "sortOptions", "transformers", "validators", "vars",
}

// isRemote reports whether kustomize fetches a resource from somewhere else: by a URL, or by a host's name, whose repository ends at "//".
func isRemote(resource string) bool {
	host, _, _ := strings.Cut(resource, "/")
	byHost := strings.Contains(resource, "//") && strings.Contains(host, ".") && !strings.HasPrefix(host, ".")
	return byHost || strings.Contains(resource, "://") || strings.Contains(resource, "?ref=") || strings.HasPrefix(resource, "git@")
}

// checkKustomizations returns advice about kustomizations that kustomize refuses.
func (r *reader) checkKustomizations() cluster.Problems {
	var findings cluster.Findings
	for _, d := range r.declared {
		if !slices.Contains(kustomizations, path.Base(d.file)) {
			continue
		}
		found := func(remedy, problem string, values ...any) {
			findings.Found("gitops.path", remedy, "%s: %s", d.file, fmt.Sprintf(problem, values...))
		}
		fields := fieldsOf(d.document, "")
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if !slices.Contains(kustomizeFields, name) {
				found(cluster.OneOf(name, kustomizeFields), "%s is no field of a kustomization", name)
			}
		}
		if d.Kind != "Kustomization" && d.Kind != "Component" {
			found("write Kustomization", "%s is no kind that kustomize knows", d.Kind)
		}
		if len(d.HelmCharts) > 0 {
			found("write a HelmRelease", "has helmCharts, which Flux does not render")
		}
		seen := map[string]bool{}
		for _, resource := range d.allResources() {
			if seen[path.Clean(resource)] {
				found("keep one", "names %s twice", resource)
			}
			seen[path.Clean(resource)] = true
		}
		for _, file := range d.patchFiles() {
			if at := path.Join(path.Dir(d.file), file); !strings.HasPrefix(at, "..") {
				if _, err := fs.Stat(r.repository, at); err != nil {
					found("commit it, or remove its patch", "%s is not in the repository", at)
				}
			}
		}
	}
	return findings.All()
}

// allResources are the resources of a kustomization, under their former name, too.
func (o object) allResources() []string { return slices.Concat(o.Resources, o.Bases) }

// patchFiles returns the files of a kustomization's patches.
func (o object) patchFiles() (files []string) {
	for _, patch := range slices.Concat(o.Patches, o.PatchesJSON6902) {
		if patch.Path != "" {
			files = append(files, patch.Path)
		}
	}
	for _, patch := range o.PatchesStrategicMerge {
		if !strings.Contains(patch, "\n") && !strings.Contains(patch, ": ") { // the other form is the patch itself
			files = append(files, patch)
		}
	}
	return slices.DeleteFunc(files, func(file string) bool { return isRemote(file) || strings.Contains(file, "${") })
}
