package tree

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/syntax"
	"github.com/slipway-platform/slipway/internal/engines/flux/handover"
)

const layerGroup = "kustomize.toolkit.fluxcd.io"

// layerFields are the fields of the spec of a Kustomization of Flux: api/v1/kustomization_types.go of kustomize-controller 1.9. The API
// server refuses others.
var layerFields = []string{
	"buildMetadata", "commonMetadata", "components", "decryption", "deletionPolicy", "dependsOn", "force", "healthCheckExprs", "healthChecks",
	"ignore", "ignoreMissingComponents", "images", "interval", "kubeConfig", "namePrefix", "nameSuffix", "patches", "path", "postBuild",
	"prune", "retryInterval", "serviceAccountName", "sourceRef", "suspend", "targetNamespace", "timeout", "wait",
}

// sourceKinds are the kinds of sources that a Kustomization of Flux takes.
var sourceKinds = []string{"Bucket", "ExternalArtifact", "GitRepository", "OCIRepository"}

// layers returns the Kustomizations of Flux that were read.
func (r *reader) layers() []declared {
	return slices.DeleteFunc(slices.Clone(r.declared), func(d declared) bool { return d.Kind != "Kustomization" || d.group() != layerGroup })
}

// checkLayers returns advice about Kustomizations of Flux that the API server refuses, or that wait for ever.
func (r *reader) checkLayers() cluster.Problems {
	var findings cluster.Findings
	layers := r.layers()
	needs := map[string][]string{}
	for _, layer := range layers {
		needs[layer.Metadata.Name] = layer.needs()
	}
	names := slices.Sorted(maps.Keys(needs))
	for _, layer := range layers {
		found := func(remedy, problem string, values ...any) {
			findings.Found("gitops.path", remedy, "%s: Kustomization %s: %s", layer.file, layer.Metadata.Name, fmt.Sprintf(problem, values...))
		}
		layer.checkFields(found)
		layer.checkSource(found)
		for _, needed := range layer.needs() {
			switch {
			case strings.Contains(needed, "${") || r.remote() || slices.Contains(names, needed):
			case cluster.Suggest(needed, names) != "":
				found("did you mean "+cluster.Suggest(needed, names)+"?", "waits for %s, which no manifest declares", needed)
			default:
				found("apply it, too, or remove it from dependsOn", "waits for %s, which no manifest declares", needed)
			}
		}
		if circle := handover.Circle(layer.Metadata.Name, func(name string) []string { return needs[name] }); circle != nil {
			found("remove one of them from dependsOn", "waits for itself: %s", strings.Join(circle, " → "))
		}
	}
	return findings.All()
}

// needs returns the names of the Kustomizations that one waits for.
func (d declared) needs() (names []string) {
	var on []struct{ Name string }
	if d.Spec.DependsOn.Decode(&on) != nil {
		return nil
	}
	for _, one := range on {
		names = append(names, one.Name)
	}
	return names
}

// remote reports whether manifests of another place are applied, too.
func (r *reader) remote() bool {
	return slices.ContainsFunc(r.declared, func(d declared) bool {
		return slices.ContainsFunc(slices.Concat(d.allResources(), d.Components), isRemote)
	})
}

// checkFields compares the fields of spec with those that there are.
func (d declared) checkFields(found func(remedy, problem string, values ...any)) {
	fields := fieldsOf(d.document, "spec")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(layerFields, name) {
			found(cluster.OneOf(name, layerFields), "%s is no field of its spec", name)
		}
	}
	for _, name := range []string{"interval", "timeout", "retryInterval"} {
		value, given := fields[name]
		switch {
		case !given && name == "interval":
			found("add one, such as interval: 10m", "has no %s", name)
		case !given || strings.Contains(value.Value, "${"):
		default:
			if _, err := time.ParseDuration(value.Value); err != nil {
				found("write a number with a unit, such as 10m", "its %s %s is no duration", name, syntax.ShownText(value.Value))
			}
		}
	}
	for _, name := range []string{"prune", "wait", "force", "suspend"} {
		value, given := fields[name]
		switch {
		case !given && name == "prune":
			found("add prune: true, or false", "does not say whether it prunes")
		case given && value.Tag != "!!bool" && !strings.Contains(value.Value, "${"):
			found("write true or false, without quotes", "its %s is neither true nor false", name)
		}
	}
}

// checkSource checks the kind of the source.
func (d declared) checkSource(found func(remedy, problem string, values ...any)) {
	source := d.Spec.SourceRef
	switch {
	case source.Name == "":
		found("add sourceRef, such as {kind: GitRepository, name: "+cluster.FluxSync+"}", "has no source")
	case strings.Contains(source.Kind, "${") || slices.Contains(sourceKinds, source.Kind):
	default:
		found(cluster.OneOf(source.Kind, sourceKinds), "%s is no kind of its sourceRef", syntax.ShownText(source.Kind))
	}
	if meant := syntax.Nearest(source.Name, []string{cluster.FluxSync}, 2); meant != "" && source.Name != meant {
		found("did you mean "+meant+"?", "its source %s is not declared", source.Name)
	}
}

// fieldsOf returns the values of a document, or of a mapping at its top, by key.
func fieldsOf(document *yaml.Node, of string) map[string]*yaml.Node {
	fields := map[string]*yaml.Node{}
	if document == nil || len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return fields
	}
	add := func(mapping *yaml.Node) {
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			fields[mapping.Content[i].Value] = mapping.Content[i+1]
		}
	}
	if add(document.Content[0]); of == "" {
		return fields
	}
	below := fields[of]
	if clear(fields); below != nil && below.Kind == yaml.MappingNode {
		add(below)
	}
	return fields
}
