package tree

import (
	"fmt"

	"github.com/slipway-platform/slipway/cluster"
)

// checkStorage returns advice about storage: classes and drivers that no manifest brings, if they are nearly one that a manifest brings,
// and Flux's own volume on a class that only Flux makes. More is not known: charts and operators make classes, too.
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
	return findings.All()
}
