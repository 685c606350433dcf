package tree

import (
	"fmt"

	"github.com/slipway-platform/slipway/cluster"
)

// class is a StorageClass that Flux applies.
type class struct{ name, provisioner, file string }

// checkStorage returns advice about storage: classes and drivers that no manifest brings, if they are nearly one that a manifest brings,
// and Flux's own volume on a class that only Flux makes. More is not known: charts and operators make classes, too.
func (r *reader) checkStorage(stack *cluster.Cluster) (advice cluster.Problems) {
	var findings cluster.Findings
	var classes, drivers []string
	for _, one := range r.classes {
		classes, drivers = append(classes, one.name), append(drivers, one.provisioner)
		if volume := stack.GitOps.Flux.Storage; volume != nil && volume.Class == one.name {
			findings.Found("gitops.flux.storage.class", "name a class that is there before Flux",
				"%s is made by %s, which Flux applies only once it has its volume: a new cluster waits for ever", one.name, one.file)
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
	return findings.All()
}
