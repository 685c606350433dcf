package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	fluxrelease "github.com/slipway-platform/slipway/internal/engines/flux/release"
)

// inGit are the keys of a component that its file in the tree gives if an engine owns it, each with its path in that file.
var inGit = map[string]string{
	"version":    "spec.chart.spec.version",
	"repository": "HelmRepository spec.url",
	"chart":      "HelmRepository spec.url",
	"values":     "spec.values",
}

// owned is what Git declares of the components.
type owned struct {
	declared map[string]cluster.Git // by their releases
	layer    map[string]*object     // sections with what the stack file does not have, because an engine owns the component
	files    map[string]string      // files of these components, by the paths of their sections
}

// readOwned reads from the tree what the engine owns. Everything that reads the stack then knows the chart, the version and the values that
// Git declares.
func readOwned(source Source, c *cluster.Cluster, findings *cluster.Findings) owned {
	all := owned{declared: map[string]cluster.Git{}, layer: map[string]*object{}, files: map[string]string{}}
	for _, release := range c.Releases() {
		before := findings.Len()
		git := fluxrelease.Read(source.Tree, c.GitOps, release, c.Settings(), findings)
		if git != nil {
			all.declared[release.Name] = *git
		}
		if !release.Owner.IsEngine() {
			notOwned(c.GitOps, release, git, findings)
			continue
		}
		file := fluxrelease.File(c.GitOps, release.Name)
		switch {
		case git != nil:
			checkOwned(source, release, file, git, findings)
			all.files[release.Key] = file
			section, _, _ := strings.Cut(release.Key, ".")
			all.layer[section] = layerOf(release, *git).over(all.layer[section])
		case findings.Len() == before && !source.OwnedLater:
			findings.Found(release.Key+".owner", fmt.Sprintf("write it with: slipway handover-file %s %s", source.Stack, release.Name),
				"%s needs %s in the repository, which does not exist", release.Owner, file)
		}
	}
	return all
}

// notOwned checks that the engine leaves a release alone that Pulumi owns.
func notOwned(g cluster.GitOps, release cluster.Service, git *cluster.Git, findings *cluster.Findings) {
	if git != nil && !git.Suspended {
		engine := g.Engine.Owner()
		remedy := fmt.Sprintf("write spec.suspend: true there to take it back from %s, or write %s here to hand it over", engine.Title(), engine)
		findings.Found(release.Key+".owner", remedy, "%s, and %s declares a HelmRelease that is not suspended", release.Owner, git.File)
	}
}

// checkOwned checks that a component that an engine owns is declared in the tree, and there only.
func checkOwned(source Source, release cluster.Service, file string, git *cluster.Git, findings *cluster.Findings) {
	if git.Suspended {
		findings.Found(release.Key+".owner", "remove spec.suspend there, or write pulumi here to take it back",
			"%s, and the HelmRelease in %s is suspended", release.Owner, file)
	}
	section := sectionOf(source.Values, release.Key)
	for _, key := range slices.Sorted(maps.Keys(inGit)) {
		if section.get(key) != nil {
			findings.Found(release.Key+"."+key, "remove it here", "is %s in %s, too, which %s reads", inGit[key], file, release.Owner.Title())
		}
	}
}

// sectionOf returns a section, which may be below another one; nil if there is none.
func sectionOf(values map[string]Value, path string) *object {
	name, below, _ := strings.Cut(path, ".")
	tree, _ := values[Namespace+":"+name].parsed(name)
	section, _ := tree.(*object)
	for _, key := range steps(below) {
		section, _ = section.get(key).(*object)
	}
	return section
}

// layerOf returns a component's section, with what Git declares of the component.
func layerOf(release cluster.Service, git cluster.Git) *object {
	layer := newObject()
	layer.add("version", item{value: git.Version})
	if git.Repository == "" {
		layer.add("chart", item{value: git.Chart})
	} else {
		layer.add("repository", item{value: git.Repository})
	}
	if given, _, err := parseJSON("", git.Values.String()); err == nil {
		layer.add("values", item{value: given})
	}
	_, below, _ := strings.Cut(release.Key, ".")
	for _, key := range slices.Backward(steps(below)) {
		upper := newObject()
		upper.add(key, item{value: layer})
		layer = upper
	}
	return layer
}

// placed gives each problem of a value that is in a file of the tree the path there.
func (o owned) placed(problems cluster.Problems) cluster.Problems {
	moved := make(cluster.Problems, len(problems))
	for i, problem := range problems {
		moved[i] = problem
		for section, file := range o.files {
			for key, there := range inGit {
				if from := section + "." + key; cluster.Within(problem.Path, from) {
					moved[i] = &cluster.Problem{Path: file + ": " + there + problem.Path[len(from):], Problem: problem.Problem, Remedy: problem.Remedy}
				}
			}
		}
	}
	return moved
}
