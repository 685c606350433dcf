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

// checkStorage returns advice about storage: misspelt classes and drivers, classes of another role in the storage, and Flux's own volume on
// a class that only Flux makes. More is not known: charts and operators make classes, too.
func (r *reader) checkStorage(stack *cluster.Cluster) (advice cluster.Problems) {
	var findings cluster.Findings
	var classes, drivers []string
	for _, one := range r.declared {
		if one.Kind != "StorageClass" || one.group() != "storage.k8s.io" {
			continue
		}
		name := one.Metadata.Name
		classes, drivers = append(classes, name), append(drivers, one.Provisioner)
		if volume := stack.GitOps.Flux.Storage; volume != nil && volume.Class == name {
			findings.Found("gitops.flux.storage.class", "name a class that is there before Flux",
				"%s is made by %s, which Flux applies only once it has its volume: a new cluster waits for ever", name, one.file)
		}
	}
	near := func(path string, given, known []string) {
		for i, name := range given {
			if meant := cluster.Suggest(name, known); meant != "" && meant != name {
				findings.Found(fmt.Sprintf("%s[%d]", path, i), "did you mean "+meant+"?", "%s comes with no manifest below gitops.path", name)
			}
		}
	}
	near("storage.classes", stack.Storage.Classes, classes)
	near("storage.drivers", stack.Storage.Drivers, drivers)
	with := "storage.role: " + string(stack.Storage.Role)
	if stack.Storage.Local == "" {
		with += " and without storage.local"
	}
	for i, class := range stack.Storage.Classes {
		if slices.Contains(classes, class) {
			continue
		}
		if file := r.unapplied(stack.GitOps.Path, class); file != "" {
			findings.Found(fmt.Sprintf("storage.classes[%d]", i), "remove it, or write the storage.role or storage.local that applies the file",
				"%s is declared by %s, which this stack with %s does not apply", class, file, with)
		}
	}
	if local := stack.Storage.Local; local != "" && !slices.Contains(drivers, cluster.LocalProvisioner) {
		findings.Found("storage.local", "add the folders kubernetes/infrastructure/storage of this release, or remove it",
			"%s, and no manifest below gitops.path makes a StorageClass of %s", local, cluster.LocalProvisioner)
	}
	return findings.All()
}

// checkClaims returns advice if a manifest asks for a volume of the default StorageClass, and neither a manifest nor the stack file names a
// class or a driver. Charts and operators make classes, too: storage.classes says so.
func (r *reader) checkClaims(stack *cluster.Cluster) (advice cluster.Problems) {
	if len(stack.Storage.Classes)+len(stack.Storage.Drivers) > 0 {
		return nil
	}
	for _, one := range r.declared {
		switch {
		case one.Kind == "StorageClass":
			return nil
		case advice == nil && claims(one.document):
			const remedy = "bring a class by the area storage, with storage.role or storage.local; name there the class that comes otherwise; " +
				"or remove what needs it"
			advice = cluster.Problems{cluster.NewProblem("storage.classes", remedy,
				"no manifest below gitops.path makes a StorageClass, and %s %s in %s waits for a volume without one",
				one.Kind, one.Metadata.Name, one.file)}
		}
	}
	return advice
}

// claims reports whether a part of a manifest has the form of a claim that names no class, as pods, operators and charts take it.
func claims(node *yaml.Node) bool {
	var claim struct {
		AccessModes []string `yaml:"accessModes"`
		Class       *string  `yaml:"storageClassName"`
		VolumeName  string   `yaml:"volumeName"`
		Resources   struct{ Requests struct{ Storage string } }
	}
	if node.Kind == yaml.MappingNode && node.Decode(&claim) == nil && len(claim.AccessModes) > 0 &&
		claim.Class == nil && claim.VolumeName == "" && claim.Resources.Requests.Storage != "" {
		return true
	}
	return slices.ContainsFunc(node.Content, claims)
}

// unapplied returns a file that declares a StorageClass, below the first folder of the path, and that the stack does not apply; "" without
// one.
func (r *reader) unapplied(at, class string) (file string) {
	top, _, _ := strings.Cut(clean(at), "/")
	_ = fs.WalkDir(r.repository, top, func(name string, _ fs.DirEntry, err error) error { // what cannot be read is not applied
		if err != nil || path.Ext(name) != ".yaml" || r.read[name] {
			return nil
		}
		text, err := fs.ReadFile(r.repository, name)
		if err != nil || !strings.Contains(string(text), "kind: StorageClass") || !strings.Contains(string(text), class) {
			return nil
		}
		for decoder := yaml.NewDecoder(strings.NewReader(string(text))); file == ""; {
			var one object
			if decoder.Decode(&one) != nil {
				return nil
			}
			if one.Kind == "StorageClass" && one.Metadata.Name == class {
				file = name
			}
		}
		return fs.SkipAll
	})
	return file
}
