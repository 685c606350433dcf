// Package storage checks that pods get volumes: the CSI drivers are registered on the nodes, and a volume of each StorageClass is bound,
// written, read and removed.
package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/externalsecrets"
)

// Checks are in the order in which storage comes up.
var Checks = []health.Check[*Spec, *Cluster]{classesExist, providerKnown, driversRegistered, volumesWork}

// Cluster is what was seen of a cluster's storage. The zero value has seen nothing.
type Cluster struct {
	Nodes   health.Seen[Node]  // CSINodes
	Classes health.Seen[Class] // StorageClasses
	Volumes map[string]Volume  // of the probe, by their class

	Connection externalsecrets.Cluster // the ExternalSecret of the spec's Connection, without its store
}

// Node is a node with the drivers that its kubelet has registered.
type Node struct {
	Name    string
	Drivers []string
}

// Class is a StorageClass.
type Class struct {
	Name, Driver string
	Retain       bool // a volume stays when its claim is deleted
}

// Volume is the attempt with a volume of a class.
type Volume struct {
	Doing  string // what the attempt waits for; "" before it begins and when it has ended
	Failed string // why the last attempt failed; "" if none did
	Done   bool   // it was bound, written, read and removed
	Job    string // name of the Job, and of the claim's and the pod's first part
	Pod    string // "" before it exists
	Claim  string // "" before it exists
}

var classesExist = health.Check[*Spec, *Cluster]{
	Name:   "every declared StorageClass exists",
	Looks:  "the StorageClass",
	ByHand: "kubectl get storageclass CLASS -o yaml",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		if len(spec.Classes) == 0 {
			return []health.Result{health.Skip("", "no class is declared")}
		}
		var results []health.Result
		for _, name := range spec.Classes {
			subject := classSubject(name)
			switch _, exists := seen.class(name); {
			case exists:
				results = append(results, health.Pass(subject))
			default:
				result, unread := seen.Classes.Unread(subject, "it")
				if !unread {
					result = health.Fail(subject, "does not exist"+others(seen.Classes.Items, func(c Class) string { return c.Name })).
						WithCommand("kubectl get storageclasses")
				}
				results = append(results, result)
			}
		}
		return results
	},
}

var driversRegistered = health.Check[*Spec, *Cluster]{
	Name:   "every CSI driver is registered on every node that must have it",
	Looks:  "the CSINode of each node that takes ordinary pods, for the declared drivers and those of the StorageClasses",
	ByHand: "kubectl get csinode NODE -o yaml",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		if seen.absent(spec) {
			return []health.Result{health.Skip("", "the provider is absent")}
		}
		results := xslices.FlatMap(seen.drivers(spec), func(driver string) []health.Result { return seen.registered(spec, driver) })
		if len(results) == 0 {
			return []health.Result{health.Block("", "no StorageClass is known, whose driver it would be")}
		}
		return results
	},
}

var volumesWork = health.Check[*Spec, *Cluster]{
	Name: "a volume of every StorageClass is bound, written, read and removed",
	Looks: "a Job with a volume of 1Gi, which one container writes and the next one reads; it is removed together with its volume, by " +
		"Kubernetes itself if the probe is killed",
	ByHand: "kubectl -n NAMESPACE describe jobs,pods,persistentvolumeclaims -l app.kubernetes.io/name=" + ProbeName,
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		if len(spec.Classes) == 0 {
			return []health.Result{health.Skip("", "no class is declared")}
		}
		return xslices.Map(spec.Classes, func(name string) health.Result { return seen.works(spec, name) })
	},
}

// ProbeName is the value of the label app.kubernetes.io/name of what the probe creates.
const ProbeName = "slipway-storage-probe"

// Evaluate runs all checks.
func Evaluate(spec *Spec, seen *Cluster) []health.Result {
	return health.Evaluate(Checks, spec, seen, func(subject string) []string {
		values := []string{"NAMESPACE", Namespace}
		if class, is := strings.CutPrefix(subject, classSubject("")); is {
			values = append(values, "CLASS", class)
		}
		if node, _, is := strings.Cut(subject, ": "); is {
			values = append(values, "NODE", node)
		}
		return values
	})
}

// May reports whether a volume of a class can be tried, and the class.
func (seen *Cluster) May(spec *Spec, name string) (Class, bool) {
	class, exists := seen.class(name)
	if !exists || class.Retain || spec.Connection != nil && seen.connected(spec).Verdict != health.Passed {
		return class, false
	}
	return class, health.Hold(seen.registered(spec, class.Driver))
}

func classSubject(name string) string { return "StorageClass " + name }

func (seen *Cluster) class(name string) (Class, bool) {
	return seen.Classes.Find(func(c Class) bool { return c.Name == name })
}

// drivers returns the declared drivers and those of the declared classes that exist, each once.
func (seen *Cluster) drivers(spec *Spec) []string {
	drivers := slices.Clone(spec.Drivers)
	for _, name := range spec.Classes {
		if class, exists := seen.class(name); exists && !slices.Contains(drivers, class.Driver) {
			drivers = append(drivers, class.Driver)
		}
	}
	return drivers
}

// registered judges a driver on the nodes that must have it.
func (seen *Cluster) registered(spec *Spec, driver string) []health.Result {
	if driver == cluster.LocalProvisioner {
		return []health.Result{health.Skip("driver "+driver, "makes folders on the nodes' disks, and is no CSI driver")}
	}
	if result, unread := seen.Nodes.Unread("driver "+driver, "CSINodes"); unread {
		return []health.Result{result.WithCommand("kubectl get csinodes -o yaml")}
	}
	has := func(node Node) bool { return slices.Contains(node.Drivers, driver) }
	if len(spec.Nodes) == 0 {
		if slices.ContainsFunc(seen.Nodes.Items, has) {
			return []health.Result{health.Pass("driver " + driver)}
		}
		return []health.Result{health.Fail("driver "+driver, "is registered on no node").WithCommand("kubectl get csinodes -o yaml")}
	}
	var results []health.Result
	for _, name := range spec.Nodes {
		subject := name + ": driver " + driver
		node, exists := seen.Nodes.Find(func(n Node) bool { return n.Name == name })
		switch {
		case !exists:
			results = append(results, health.Fail(subject, "there is no CSINode: no driver was ever registered on the node"))
		case has(node):
			results = append(results, health.Pass(subject))
		default:
			results = append(results, health.Fail(subject, "is not registered"+
				others(node.Drivers, func(driver string) string { return driver })))
		}
	}
	return results
}

// works judges the volume of a class.
func (seen *Cluster) works(spec *Spec, name string) health.Result {
	subject := classSubject(name)
	class, exists := seen.class(name)
	volume := seen.Volumes[name]
	switch {
	case !exists:
		return health.Block(subject, "the StorageClass does not exist")
	case class.Retain:
		return health.Skip(subject, "is not tried: its volumes are retained, so that the probe's would stay; look at a volume that is in use")
	case seen.absent(spec):
		return health.Skip(subject, "is not tried: its provider "+spec.Connection.Provider+" is absent")
	case volume.Done:
		return health.Pass(subject)
	case spec.Connection != nil && seen.connected(spec).Verdict != health.Passed:
		return health.Block(subject, "the connection to "+spec.Connection.Provider+" is not known")
	case !health.Hold(seen.registered(spec, class.Driver)):
		return health.Block(subject, "driver "+class.Driver+" is not registered on every node")
	case volume == (Volume{}) || spec.Once && volume.Failed == "":
		return health.NotSeen(subject, "the volume")
	}
	reason := cmp.Or(volume.Doing, "the next attempt begins soon")
	if volume.Failed != "" {
		reason = volume.Failed
		if volume.Doing != "" {
			reason += "; the next attempt: " + volume.Doing
		}
		if spec.Connection != nil {
			reason += fmt.Sprintf("; if nothing else is wrong, the item of %[1]s may be of an earlier %[1]s: see docs/gates.md, \"The storage\"",
				spec.Connection.Provider)
		}
	}
	result := health.Fail(subject, reason)
	for kind, object := range map[string]string{"Pod": volume.Pod, "PersistentVolumeClaim": volume.Claim, "Job": volume.Job} {
		if object != "" {
			result = result.Asks(health.Question{Kind: health.Events, Object: kind, Namespace: Namespace, Name: object})
		}
	}
	slices.SortFunc(result.Ask, func(a, b health.Question) int { return cmp.Compare(b.Object, a.Object) }) // the pod's last
	return result
}

// others lists what there is instead.
func others[T any](items []T, name func(T) string) string {
	if len(items) == 0 {
		return "; there is none"
	}
	return "; there are " + strings.Join(xslices.Map(items, name), ", ")
}
