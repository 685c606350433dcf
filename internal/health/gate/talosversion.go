package gate

import (
	"cmp"

	"github.com/slipway-platform/slipway/internal/health"
)

// Version is the version of a program that runs.
type Version struct {
	Err  *health.Broken // it cannot be read
	Runs string         // e.g. v1.12.7
}

// A new version in the stack file changes the installer's image in the machine configuration, which installs nothing.
var talosVersion = check{
	Name:   "every machine runs the declared Talos version",
	Looks:  "the version that the Talos API of each node names; a machine is upgraded with talosctl",
	ByHand: "talosctl -n ADDRESS version",
	Judge: withVersions(func(spec *Spec, seen *Cluster) []health.Result {
		return eachTalos(spec.Nodes, seen, func(node Machine, talos TalosNode) health.Result {
			result := health.Pass(node.Name)
			switch version := talos.Version; {
			case version == nil:
				result = health.NotSeen(node.Name, "the Talos version")
			case version.Err != nil:
				result = health.Unreadable(node.Name, "the Talos version", version.Err)
			case version.Runs != spec.Versions.Talos && !talos.installed():
				result = health.Fail(node.Name, "runs Talos "+version.Runs+" from its image, and installs "+spec.Versions.Talos)
			case version.Runs != spec.Versions.Talos:
				installer := cmp.Or(spec.Versions.Installer, "INSTALLER:"+spec.Versions.Talos)
				result = health.Fail(node.Name, "runs Talos "+version.Runs+", "+spec.Versions.Talos+" is declared; "+
					"upgrade one machine after the other: talosctl -n "+node.Address.String()+" upgrade --image "+installer+
					"; or declare "+version.Runs).ForGood()
			}
			return result
		})
	}),
}

// installed tells whether a machine has booted from its disk. Before that, it runs the release of its image, which may be another one, for
// as long as the installation takes, and Talos has not loaded the kubelet.
func (n TalosNode) installed() bool {
	_, loaded := n.Services["kubelet"]
	return loaded
}

// withVersions makes a check that compares nothing if no versions are declared.
func withVersions(judge func(*Spec, *Cluster) []health.Result) func(*Spec, *Cluster) []health.Result {
	return func(spec *Spec, seen *Cluster) []health.Result {
		if spec.Versions == nil {
			return nil
		}
		return judge(spec, seen)
	}
}
