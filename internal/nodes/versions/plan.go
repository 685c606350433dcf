// Package versions compares the versions that the nodes of a cluster run with those that are declared: what is to be upgraded, and which
// change is refused, and why.
package versions

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/gen/xslices"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"golang.org/x/mod/semver"

	"github.com/slipway-platform/slipway/cluster/machineconfig"
	"github.com/slipway-platform/slipway/cluster/releases"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// Component is a part of Kubernetes whose image a machine configuration names.
type Component string

// The components. Talos runs the first three as static pods on control planes.
const (
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Kubelet           Component = "kubelet"
)

// StaticPods lists the components that run on control planes, in the order in which they are upgraded.
var StaticPods = []Component{APIServer, ControllerManager, Scheduler}

// Running is what a configured node runs.
type Running struct {
	Node      turn.Node
	Talos     string               // version, such as v1.12.7
	Next      string               // version of Talos that the next boot runs, from an upgrade that was killed; "" if none is known
	Schematic string               // "" if the machine was not installed from an image factory
	Images    map[Component]string // in its machine configuration

	Configuration config.Provider // of the machine; nil if it is not known
}

// Plan is what is to be done.
type Plan struct {
	Talos      []turn.Node               // nodes to upgrade, control planes first
	Kubernetes map[Component][]turn.Node // nodes by the component to upgrade, control planes first
	Minor      bool                      // the minor release of Kubernetes changes
	Back       bool                      // Kubernetes returns to the former release: an upgrade has ended at an API server
}

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.Talos) == 0 && len(p.Kubernetes) == 0 }

// String says in a sentence what is to be done.
func (p Plan) String() string {
	var parts []string
	if len(p.Talos) > 0 {
		parts = append(parts, "Talos on "+turn.Names(p.Talos))
	}
	for _, component := range append(slices.Clone(StaticPods), Kubelet) {
		if nodes := p.Kubernetes[component]; len(nodes) > 0 {
			parts = append(parts, string(component)+" on "+turn.Names(nodes))
		}
	}
	return strings.Join(parts, "; ")
}

// NewPlan compares what the nodes run with what is declared. Its error has every reason for which nothing may be done.
func NewPlan(declared Releases, running []Running) (Plan, error) {
	running = slices.Clone(running)
	slices.SortStableFunc(running, func(a, b Running) int { return turn.ByRole(a.Node, b.Node) })
	plan := Plan{}
	var problems []error
	nodesOf := places{} // by the version of Talos that they run
	for _, node := range running {
		boots := cmp.Or(node.Next, node.Talos)
		if node.Talos != declared.Talos || boots != declared.Talos || node.Schematic != "" && node.Schematic != declared.Schematic {
			plan.Talos = append(plan.Talos, node.Node)
		}
		nodesOf.add(node.Talos, node.Node)
	}
	problems = append(problems, upgradeProblem("talos.version", "Talos", declared.Talos, nodesOf))
	kubernetes, err := plan.kubernetes(declared, running)
	if plan.Back = undoes(declared.Kubernetes, running); plan.Back {
		kubernetes = nil
	}
	problems = append(problems, err, upgradeProblem("kubernetes.version", "Kubernetes", declared.Kubernetes, kubernetes))
	if versions := kubernetes.versions(); len(plan.Talos) > 0 && len(versions) > 0 {
		problems = append(problems, supports("talos.version", declared.Talos, versions[0]))
	}
	if len(plan.Kubernetes) > 0 {
		problems = append(problems, supports("kubernetes.version", declared.Talos, declared.Kubernetes))
	}
	if !plan.Back { // what goes back has run with its arguments before
		problems = append(problems, unfit(declared, running)...)
	}
	if err := errors.Join(problems...); err != nil {
		return Plan{}, err
	}
	return plan, nil
}

// Releases are what a cluster runs, or is to run.
type Releases struct {
	Talos      string `json:"talos"`      // version, such as v1.12.7
	Schematic  string `json:"schematic"`  // id of the image factory's schematic, which stands for the extensions
	Kubernetes string `json:"kubernetes"` // version, such as v1.35.8
	Cilium     Cilium `json:"cilium"`     // is only compared with what runs: its release changes it
}

// Refused returns every reason for which `up` refuses to bring a cluster whose nodes all run one set of versions to another one.
func (r Releases) Refused(running Releases) error {
	node := Running{Node: turn.Node{Name: "all nodes"}, Talos: running.Talos, Images: map[Component]string{Kubelet: ":" + running.Kubernetes}}
	_, err := NewPlan(Releases{Talos: r.Talos, Kubernetes: r.Kubernetes}, []Running{node})
	return errors.Join(err, r.Cilium.Problem([]string{running.Cilium.declared()}))
}

// places are the nodes that run something, by its version.
type places map[string][]turn.Node

func (p places) add(version string, node turn.Node) {
	if !slices.Contains(p[version], node) {
		p[version] = append(p[version], node)
	}
}

// versions returns all versions that run, the lowest first.
func (p places) versions() []string { return slices.SortedFunc(maps.Keys(p), semver.Compare) }

// kubernetes adds the components that run another version to the plan, and returns where which version runs.
func (p *Plan) kubernetes(declared Releases, running []Running) (places, error) {
	var problems []error
	nodesOf := places{}
	for _, node := range running {
		for component, image := range node.Images {
			version, err := ImageVersion(image)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w", node.Node.Name, component, err))
				continue
			}
			nodesOf.add(version, node.Node)
			if version != declared.Kubernetes {
				if p.Kubernetes == nil {
					p.Kubernetes = map[Component][]turn.Node{}
				}
				p.Kubernetes[component] = append(p.Kubernetes[component], node.Node)
				p.Minor = p.Minor || semver.MajorMinor(version) != semver.MajorMinor(declared.Kubernetes)
			}
		}
	}
	return nodesOf, errors.Join(problems...)
}

// upgradeProblem returns why a program must not be upgraded to the declared version.
func upgradeProblem(path, program, declared string, nodesOf places) error {
	versions := nodesOf.versions()
	if len(versions) == 0 {
		return nil
	}
	lowest, highest := versions[0], versions[len(versions)-1]
	on := func(version string) string { return version + ", which runs on " + turn.Names(nodesOf[version]) }
	skip, err := minors(lowest, declared)
	if err != nil {
		return fmt.Errorf("%s: %s %s: %w", path, program, on(lowest), err)
	}
	apart, err := minors(lowest, highest)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %s %s: %w", path, program, on(highest), err)
	case semver.Compare(declared, highest) < 0:
		return fmt.Errorf("%s: %s is older than %s, and downgrades are not made; declare %s or a later one", path, declared, on(highest), highest)
	case apart > 1: // one that was left out for long: the cluster cannot go back for it
		return fmt.Errorf("%s: %s skips minor releases after %s, and %s runs elsewhere; raise the generation of %s",
			path, declared, on(lowest), highest, turn.Names(nodesOf[lowest]))
	case skip > 1:
		return fmt.Errorf("%s: %s skips minor releases after %s; declare one minor release after the other", path, declared, on(lowest))
	}
	return nil
}

// supports returns an error if a version of Talos does not run a version of Kubernetes.
func supports(path, talos, kubernetes string) error {
	if fit, fits := releases.Talos.Fits(talos, releases.Kubernetes, kubernetes); !fits {
		return fmt.Errorf("%s: Talos %s does not run Kubernetes %s, only %s; upgrade in two runs of up, so that each pair fits",
			path, talos, kubernetes, fit)
	}
	return nil
}

// undoes reports whether all components run a version but some API servers, which have a newer one. An upgrade begins with them, and this
// one has come no further: so far, older API servers have read all that newer ones may have written.
func undoes(kubernetes string, running []Running) bool {
	newer := false
	for _, node := range running {
		for component, image := range node.Images {
			version, err := ImageVersion(image)
			switch {
			case version == kubernetes:
			case err == nil && component == APIServer && semver.Compare(version, kubernetes) > 0:
				newer = true
			default:
				return false
			}
		}
	}
	return newer
}

// unfit returns why components would not start in another minor release: the configurations of their nodes have arguments that it does not
// take. The declared configurations, which may lack these already, are applied only after the upgrade. Once more than API servers have the
// release, there is no way back, and the run leaves what does not start to the declared configurations. But it waits for each API server:
// one of the former release is then of a control plane that was left out.
func unfit(declared Releases, running []Running) (problems []error) {
	type at struct{ path, version, what string }
	on := map[at][]turn.Node{}
	add := func(found at, node turn.Node) { on[found] = append(on[found], node) }
	begun := slices.ContainsFunc(running, func(node Running) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(node.Images)), func(component Component) bool {
			return component != APIServer && node.has(component, declared.Kubernetes)
		})
	})
	for _, node := range running {
		if node.Configuration == nil {
			continue
		}
		if semver.MajorMinor(node.Talos) != semver.MajorMinor(declared.Talos) {
			for _, what := range machineconfig.UnfitForTalos(node.Configuration, declared.Talos) {
				add(at{"talos.version", node.Talos, what}, node.Node)
			}
		}
		if begun && (node.Images[APIServer] == "" || node.has(APIServer, declared.Kubernetes)) {
			continue
		}
		wrong := machineconfig.Unfit(node.Configuration, declared.Kubernetes)
		for component, image := range node.Images {
			version, err := ImageVersion(image)
			if err != nil || node.has(component, declared.Kubernetes) {
				continue // in this release it runs with its arguments, or an earlier run has changed it
			}
			for _, what := range wrong[string(component)] {
				add(at{"kubernetes.version", version, what}, node.Node)
			}
		}
	}
	for _, found := range slices.SortedFunc(maps.Keys(on), func(a, b at) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.version, b.version), cmp.Compare(a.what, b.what))
	}) {
		to, back := declared.Kubernetes, !begun
		if found.path == "talos.version" {
			newer := func(node Running) bool { return semver.Compare(node.Talos, found.version) > 0 }
			to, back = declared.Talos, !slices.ContainsFunc(running, newer)
		}
		remedy := fmt.Sprintf("remove it while %s is %s, run up, and then declare %s", found.path, found.version, to)
		if !back {
			remedy = "others are beyond " + found.version + ", so remove it there: talosctl --nodes " + addresses(on[found]) +
				" edit machineconfig; or raise the generation"
		}
		problems = append(problems, fmt.Errorf("%s: %s, and is in the configuration of %s, which the declared one replaces only after the "+
			"upgrade; %s", found.path, found.what, turn.Names(on[found]), remedy))
	}
	return problems
}

// has reports whether a component of a node has the minor release of a version.
func (r Running) has(component Component, version string) bool {
	runs, err := ImageVersion(r.Images[component])
	return err == nil && semver.MajorMinor(runs) == semver.MajorMinor(version)
}

func addresses(nodes []turn.Node) string {
	return strings.Join(xslices.Map(nodes, func(node turn.Node) string { return node.Address.String() }), ",")
}

// minors returns how many minor releases one version is after another.
func minors(from, to string) (int, error) {
	var a, b, x, y int
	if n, _ := fmt.Sscanf(semver.MajorMinor(from), "v%d.%d", &a, &x); n != 2 {
		return 0, fmt.Errorf("%q is not a version", from)
	}
	if n, _ := fmt.Sscanf(semver.MajorMinor(to), "v%d.%d", &b, &y); n != 2 {
		return 0, fmt.Errorf("%q is not a version", to)
	}
	if a != b {
		return 0, fmt.Errorf("%s is of another major release than %s", to, from)
	}
	return y - x, nil
}

// flavours are the suffixes of the tags of Talos's kubelet images.
var flavours = []string{"-fat", "-slim"}

// ImageVersion returns the version in the tag of a component's image.
func ImageVersion(image string) (string, error) {
	_, tag := splitTag(image)
	for _, flavour := range flavours {
		tag = strings.TrimSuffix(tag, flavour)
	}
	if !semver.IsValid(tag) {
		return "", fmt.Errorf("image %q has no version as its tag; remove the patch that sets it", image)
	}
	return tag, nil
}

// WithVersion returns a component's image with another version in its tag, from the same repository and of the same flavour.
func WithVersion(image, version string) string {
	repository, tag := splitTag(image)
	for _, flavour := range flavours {
		if strings.HasSuffix(tag, flavour) {
			version += flavour
		}
	}
	return repository + ":" + version
}

// Tag returns the tag of an image reference; "" without one.
func Tag(image string) string {
	_, tag := splitTag(image)
	return tag
}

// splitTag splits an image reference into repository and tag. A digest is dropped.
func splitTag(image string) (repository, tag string) {
	image, _, _ = strings.Cut(image, "@")
	at := strings.LastIndex(image, ":")
	if at < 0 || strings.Contains(image[at:], "/") {
		return image, ""
	}
	return image[:at], image[at+1:]
}
