package config

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/fluxrelease"
)

// inGit are the keys of a component that its file in the tree gives if Flux owns it, and that file's path of each.
var inGit = map[string]string{
	"version":    "spec.chart.spec.version",
	"repository": "HelmRepository spec.url",
	"chart":      "HelmRepository spec.url",
	"values":     "spec.values",
}

// loadOwned reads from the tree what Flux owns, and returns the stack with it. Everything that reads the stack then knows the chart, the
// version and the values that Git declares.
func loadOwned(source Source, c *cluster.Cluster) (*cluster.Cluster, error) {
	var findings cluster.Findings
	declared, merged := map[string]cluster.Git{}, source
	merged.Values = maps.Clone(source.Values)
	files := map[string]string{} // section → file
	for _, release := range c.Releases() {
		git := fluxrelease.Read(source.Tree, c.GitOps, release, c.Settings(), &findings)
		if git != nil {
			declared[release.Name] = *git
		}
		if release.Owner != cluster.OwnerFlux {
			notOwned(release, git, &findings)
			continue
		}
		files[release.Key] = fluxrelease.File(c.GitOps, release.Name)
		owned(source, release, files[release.Key], git, &findings)
		if git != nil {
			merge(merged.Values, release, *git)
		}
	}
	if err := findings.Err(); err != nil {
		return nil, err
	}
	if len(files) > 0 {
		var err error
		if c, err = load(merged); err != nil {
			return nil, inFiles(cluster.ProblemsOf(err), files)
		}
	}
	c.Git = declared
	return c, nil
}

// notOwned checks that Flux leaves a release alone that Pulumi owns.
func notOwned(release cluster.Service, git *cluster.Git, findings *cluster.Findings) {
	if git != nil && !git.Suspended {
		findings.Found(release.Key+".owner", "write spec.suspend: true there to take it back from Flux, or write flux here to hand it over",
			"%s, and %s declares a HelmRelease that is not suspended", release.Owner, git.File)
	}
}

// owned checks that a component that Flux owns is declared in the tree, and there only.
func owned(source Source, release cluster.Service, file string, git *cluster.Git, findings *cluster.Findings) {
	at := release.Key + ".owner"
	switch {
	case git == nil && findings.Len() == 0:
		findings.Found(at, fmt.Sprintf("write it with: make handover-file STACK=%s COMPONENT=%s", source.Stack, release.Name),
			"%s needs %s in the repository, which does not exist", release.Owner, file)
	case git != nil && git.Suspended:
		findings.Found(at, "remove spec.suspend there, or write pulumi here to take it back",
			"%s, and the HelmRelease in %s is suspended", release.Owner, file)
	}
	section, _ := sectionOf(source.Values, release.Key)
	for _, key := range slices.Sorted(maps.Keys(inGit)) {
		if _, given := section[key]; given && !(key == "version" && git == nil) {
			findings.Found(release.Key+"."+key, "remove it here", "is %s in %s, too, which Flux reads", inGit[key], file)
		}
	}
}

// sectionOf returns the keys of a section that may be below another one, and the tree of the section at the top.
func sectionOf(values map[string]Value, path string) (section, top map[string]any) {
	name, below, _ := strings.Cut(path, ".")
	top = map[string]any{}
	if text := values[Namespace+":"+name].Text; text != "" {
		if json.Unmarshal([]byte(text), &top) != nil {
			return nil, nil // cannot be: it was read before
		}
	}
	section = top
	for below != "" {
		var key string
		key, below, _ = strings.Cut(below, ".")
		inner, is := section[key].(map[string]any)
		if !is {
			inner = map[string]any{}
			section[key] = inner
		}
		section = inner
	}
	return section, top
}

// merge adds what the tree declares of a component to the raw configuration, as if the stack file had it.
func merge(values map[string]Value, release cluster.Service, git cluster.Git) {
	section, top := sectionOf(values, release.Key)
	section["version"] = git.Version
	if git.Repository == "" {
		section["chart"] = git.Chart
	} else {
		section["repository"] = git.Repository
	}
	if len(git.Values) > 0 {
		section["values"] = json.RawMessage(git.Values)
	}
	text, err := json.Marshal(top)
	if err != nil {
		panic("config: a section that was read cannot be written: " + err.Error())
	}
	name, _, _ := strings.Cut(release.Key, ".")
	values[Namespace+":"+name] = Value{Text: string(text)}
}

// inFiles gives each problem of a value that is in a file of the tree the path there.
func inFiles(problems cluster.Problems, files map[string]string) error {
	moved := make(cluster.Problems, len(problems))
	for i, problem := range problems {
		moved[i] = problem
		for section, file := range files {
			for key, there := range inGit {
				rest, below := strings.CutPrefix(problem.Path, section+"."+key)
				if below && (rest == "" || strings.ContainsAny(rest[:1], ".[")) {
					moved[i] = &cluster.Problem{Path: file + ": " + there + rest, Problem: problem.Problem, Remedy: problem.Remedy}
				}
			}
		}
	}
	return moved
}

// empty is a tree without files.
type empty struct{}

// Open finds nothing.
func (empty) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
