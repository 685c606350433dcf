// Package release reads, checks and writes the file of the GitOps tree that declares a component which Flux owns: a HelmRepository
// and a HelmRelease. The same file declares it to Argo CD, whose plugin renders it. It imports no Pulumi.
//
// The required parts of the file keep the component running at the handover and while Flux owns it. Flux keeps its record of the
// release in its own namespace, beside Pulumi's record. It finds no release there, so it installs, and takes over the existing objects as
// they are. See the decision record about ownership.
package release

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/slipway-platform/slipway/cluster"
)

const (
	annotationPrune = "kustomize.toolkit.fluxcd.io/prune"
	disabled        = "disabled"
	helmRelease     = "HelmRelease"
	helmRepository  = "HelmRepository"
)

// File returns the path in the repository of the file that declares a release.
func File(git cluster.GitOps, release string) string {
	return path.Join(git.Path, "platform", release+".yaml")
}

// Read returns what the tree declares of a release; nil without a readable file. It adds a problem for everything in the file that would
// interrupt the component, for Flux or for Pulumi. A suspended file has none: Flux does nothing then. settings are the cluster settings
// that Flux substitutes.
func Read(tree fs.FS, git cluster.GitOps, release cluster.Service, settings map[string]string, findings *cluster.Findings) *cluster.Git {
	file := File(git, release.Name)
	text, err := fs.ReadFile(tree, file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // the path of the tree is a file: the check of the tree says so
		return nil
	}
	if err != nil {
		findings.Include(cluster.NewProblem(file, "make it readable", "%s", err))
		return nil
	}
	r := reader{file: file, release: release, findings: findings}
	return r.read(text, settings)
}

// reader reads one file.
type reader struct {
	file     string
	release  cluster.Service
	findings *cluster.Findings
}

// found adds a problem at a path of the object.
func (r *reader) found(at, remedy, format string, args ...any) {
	r.findings.Include(cluster.NewProblem(r.file+": "+at, remedy, format, args...))
}

func (r *reader) read(text []byte, settings map[string]string) *cluster.Git {
	before := r.findings.Len()
	objects, err := decode(text, settings)
	if err != nil {
		r.findings.Include(cluster.NewProblem(r.file, "correct it", "%s", err))
		return nil
	}
	release, repository := r.only(objects, helmRelease), r.only(objects, helmRepository)
	if release == nil || repository == nil {
		return nil
	}
	git := &cluster.Git{File: r.file, Suspended: value(release, "spec.suspend") == true}
	if !git.Suspended {
		for _, rule := range r.rules() {
			r.check(release, rule)
		}
	}
	r.chart(git, release, repository)
	r.values(git, release)
	if r.findings.Len() > before {
		return nil
	}
	return git
}

// only returns the file's object of a kind, which must have the release's name and Flux's namespace.
func (r *reader) only(objects []map[string]any, kind string) map[string]any {
	var found []map[string]any
	for _, object := range objects {
		if object["kind"] == kind {
			found = append(found, object)
		}
	}
	if len(found) != 1 {
		r.findings.Include(cluster.NewProblem(r.file, "declare one", "has %d objects of kind %s", len(found), kind))
		return nil
	}
	for at, want := range map[string]string{"metadata.name": r.release.Name, "metadata.namespace": cluster.FluxNamespace} {
		if is := value(found[0], at); is != want {
			r.found(kind+" "+at, "write "+want, "%s is another one than that of the component", shown(is))
			return nil
		}
	}
	return found[0]
}

// chart reads chart, version and repository.
func (r *reader) chart(git *cluster.Git, release, repository map[string]any) {
	const at = "spec.chart.spec."
	chart, _ := value(release, at+"chart").(string)
	version, isText := value(release, at+"version").(string)
	if !isText || version == "" {
		r.found(at+"version", "write an exact version, in quotes", "%s is no version", shown(value(release, at+"version")))
	}
	url, _ := value(repository, "spec.url").(string)
	if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "oci://") {
		r.found(helmRepository+" spec.url", "write an https:// or oci:// URL", "%s is no URL of a chart repository", shown(url))
	}
	if want := path.Base(r.release.Chart); chart != want {
		r.found(at+"chart", "write "+want, "%s is another chart than the component's", shown(chart))
	}
	for name, want := range map[string]any{"kind": helmRepository, "name": r.release.Name} {
		if is := value(release, at+"sourceRef."+name); is != want {
			r.found(at+"sourceRef."+name, fmt.Sprintf("write %v", want), "%s is not the repository in this file", shown(is))
		}
	}
	git.Version, git.Chart, git.Repository = version, chart, url
	oci := strings.HasPrefix(url, "oci://")
	if oci {
		git.Chart, git.Repository = strings.TrimSuffix(url, "/")+"/"+chart, ""
	}
	if isOCI := value(repository, "spec.type") == "oci"; isOCI != oci {
		r.found(helmRepository+" spec.type", "write type: oci with an oci:// URL, and leave it out with https", "does not go with %s", url)
	}
	if oci != (r.release.Repository == "") {
		form := "https://"
		if r.release.Repository == "" {
			form = "oci://"
		}
		r.found(helmRepository+" spec.url", "write a URL that begins with "+form, "%s is of another kind than the component's", url)
	}
}

// values reads the user's values, and checks that Flux gets those of Slipway from the Secret.
func (r *reader) values(git *cluster.Git, release map[string]any) {
	const at = "spec.valuesFrom"
	want := map[string]any{"kind": "Secret", "name": cluster.ValuesSecret(r.release.Name)}
	from, _ := value(release, at).([]any)
	remedy := fmt.Sprintf("write [{kind: Secret, name: %s}]", cluster.ValuesSecret(r.release.Name))
	switch {
	case len(from) == 0:
		r.found(at, remedy, "is missing, so that Flux would roll out the chart without what Slipway sets")
	case len(from) > 1:
		r.found(at, remedy+", and the others below spec.values", "has %d sources, and only that of Slipway can be checked", len(from))
	default:
		one, _ := from[0].(map[string]any)
		for key, is := range one {
			if key == "valuesKey" && is == cluster.ValuesKey {
				continue
			}
			if want[key] != is {
				r.found(at+"[0]."+key, remedy, "%s is not the source of Slipway's values", shown(is))
			}
		}
		for key := range want {
			if one[key] == nil {
				r.found(at+"[0]."+key, remedy, "is missing")
			}
		}
	}
	switch tree := value(release, "spec.values").(type) {
	case nil:
	case map[string]any:
		if len(tree) > 0 {
			git.Values = asJSON(tree)
		}
	default:
		r.found("spec.values", "write a mapping", "%s is no mapping", shown(tree))
	}
}

// value returns what is at a dotted path of an object; nil if there is nothing. A key in brackets may have dots:
// metadata.annotations[a.b/c].
func value(object map[string]any, at string) any {
	at, key, bracket := strings.Cut(at, "[")
	found := cluster.ValueAt(object, at)
	if below, _ := found.(map[string]any); bracket {
		return below[strings.TrimSuffix(key, "]")]
	}
	return found
}

func shown(value any) string {
	if value == nil {
		return "nothing"
	}
	return fmt.Sprint(value)
}
