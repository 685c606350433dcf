package tree

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
)

const argoCDGroup = "argoproj.io"

// applicationSource is a source of an Application of Argo CD.
type applicationSource struct {
	RepoURL string `yaml:"repoURL"`
	Path    string
	Plugin  struct{ Name string }
}

// applicationSources returns the sources of an Application. What has another form is left to Argo CD.
func (o object) applicationSources() (sources []applicationSource) {
	if o.Spec.Sources.Decode(&sources) != nil {
		sources = nil
	}
	var one applicationSource
	if o.Spec.Source.Kind == yaml.MappingNode && o.Spec.Source.Decode(&one) == nil {
		sources = append(sources, one)
	}
	return sources
}

// applicationFolders returns the folders of this repository that an Application applies. A manifest without a repository gets it from the
// component kubernetes/argocd/application, with the plugin.
func (o object) applicationFolders(settings map[string]string) (folders []string) {
	for _, source := range o.applicationSources() {
		if source.Path != "" && (source.RepoURL == "" || expand(source.RepoURL, settings) == settings["SOURCE_URL"]) {
			folders = append(folders, source.Path)
		}
	}
	return folders
}

// applicationLayer tells whether an Application has its settings replaced: its source names the plugin for that.
func (o object) applicationLayer() layer {
	replaced := slices.ContainsFunc(o.applicationSources(), func(s applicationSource) bool {
		return s.Plugin.Name == cluster.ArgoCDPlugin || s.RepoURL == "" && s.Path != ""
	})
	return layer{name: o.Metadata.Name, nothing: !replaced, application: true}
}

// checkOfFlux returns advice about objects of Flux in a tree that Argo CD applies: nothing acts on them, but for releases, in whose place
// the plugin puts what their charts make.
func (r *reader) checkOfFlux() cluster.Problems {
	var findings cluster.Findings
	var ofFlux []declared
	for _, d := range r.declared {
		isRelease := d.Kind == "HelmRelease" || d.Kind == "HelmRepository"
		switch {
		case !strings.HasSuffix(d.group(), ".toolkit.fluxcd.io"):
		case isRelease && !d.layer.nothing:
			for _, field := range d.unknownToPlugin() {
				findings.Found("gitops.path", "remove it, or write an Application for the chart",
					"%s: %s of the %s %s is for Flux, and gitops.engine is argocd", d.file, field, d.Kind, d.Metadata.Name)
			}
		default:
			ofFlux = append(ofFlux, d)
		}
	}
	if len(ofFlux) > 0 {
		others := ""
		if more := len(ofFlux) - 1; more > 0 {
			others = fmt.Sprintf(" (and %d more)", more)
		}
		findings.Found("gitops.path", "write an Application for what it applies, as docs/argocd.md shows",
			"%s declares the %s %s%s of Flux, and gitops.engine is argocd, so that nothing acts on it",
			ofFlux[0].file, ofFlux[0].Kind, ofFlux[0].Metadata.Name, others)
	}
	return findings.All()
}

// ownedByArgoCD reports whether a release has a form that Slipway hands over: of the Secrets with values, it names Slipway's alone.
func (d declared) ownedByArgoCD(spec map[string]any) bool {
	from, _ := spec["valuesFrom"].([]any)
	if len(from) != 1 {
		return false
	}
	one, _ := from[0].(map[string]any)
	return one["kind"] == "Secret" && one["name"] == cluster.ValuesSecret(d.Metadata.Name)
}

// checkOwned returns advice about components that the engine owns, whose files it does not apply.
func (r *reader) checkOwned(stack *cluster.Cluster, settings map[string]string) cluster.Problems {
	var findings cluster.Findings
	folder := clean(stack.GitOps.Path)
	for _, release := range stack.Releases() {
		git := stack.InGit(release.Name)
		switch {
		case git == nil || r.read[git.File]:
		case release.Owner == cluster.OwnerArgoCD:
			findings.Found(release.Key+".owner", "name platform.yaml in the kustomization of "+folder+", as docs/argocd.md shows",
				"%s, and no Application below %s applies %s", release.Owner, folder, git.File)
		case release.Owner == cluster.OwnerFlux && !r.appliedElsewhere(git.File, settings):
			findings.Found(release.Key+".owner", r.toName(folder, git.File), "%s, and Flux does not apply %s", release.Owner, git.File)
		}
	}
	return findings.All()
}

// ToName returns what to name in which kustomization, so that Flux applies a file below gitops.path; "" if Flux applies the file, or if the
// manifests cannot be read, which Check reports.
func ToName(repository fs.FS, stack *cluster.Cluster, file string) string {
	reader, folder, settings := newReader(repository), clean(stack.GitOps.Path), stack.Settings()
	if reader.all(folder, settings) != nil || reader.read[file] || reader.appliedElsewhere(file, settings) {
		return ""
	}
	return reader.toName(folder, file)
}

// toName returns what to name in which kustomization: in that beside the file, or in that of the folder.
func (r *reader) toName(folder, file string) string {
	at, kustomization := path.Dir(file), kustomizationIn(r.repository, path.Dir(file))
	if !r.read[kustomization] {
		at, kustomization = folder, kustomizationIn(r.repository, folder)
	}
	return "name " + strings.TrimPrefix(file, at+"/") + " in the resources of " + kustomization
}

// appliedElsewhere reports whether a file may be applied in a way that is not followed: from another place, or by a source of its own.
func (r *reader) appliedElsewhere(file string, settings map[string]string) bool {
	return r.remote() || slices.ContainsFunc(r.layers(), func(d declared) bool {
		at := clean(expand(d.Spec.Path, settings))
		return d.Spec.SourceRef.Name != cluster.FluxSync && (at == "." || strings.HasPrefix(file, at+"/"))
	})
}

// unknownToPlugin returns the paths of what Argo CD's plugin refuses in a HelmRelease or a HelmRepository.
func (d declared) unknownToPlugin() (paths []string) {
	parts := map[string]string{"spec": "repository"}
	if d.Kind == "HelmRelease" {
		parts = map[string]string{
			"spec": "spec", "spec.driftDetection": "driftDetection", "spec.install": "install", "spec.upgrade": "upgrade",
			"spec.chart.spec": "chart",
		}
	}
	var whole map[string]any
	if d.document.Decode(&whole) != nil {
		return nil
	}
	for at, part := range parts {
		known := cluster.ArgoCDPluginKnows(part)
		fields, _ := cluster.ValueAt(whole, at).(map[string]any)
		for key := range fields {
			takes := slices.Contains(known, key)
			switch at + "." + key {
			case "spec.valuesFrom":
				takes = d.ownedByArgoCD(fields)
			case "spec.suspend": // what is suspended is not rendered, and would be removed
				takes = d.Metadata.Annotations["kustomize.toolkit.fluxcd.io/prune"] == "disabled"
			}
			if !takes {
				paths = append(paths, at+"."+key)
			}
		}
	}
	slices.Sort(paths)
	return paths
}
