package upgrade

import (
	"errors"
	"fmt"
	"time"

	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Spec says what the nodes of a cluster are to run.
type Spec struct {
	turn.Declared
	versions.Releases // all required but Cilium

	// Installers are the images that Talos of this version and schematic is installed from, by the names of all nodes; required.
	Installers map[string]string `json:"installers"`

	BootedSince time.Time `json:"bootedSince,omitzero"` // nodes that have booted before are rebooted

	AllowRemovedAPIs bool           `json:"allowRemovedAPIs,omitempty"` // upgrade although clients use APIs that the new version lacks
	Snapshots        snapshot.Place `json:"snapshots"`                  // for the one that is taken before the upgrade
}

// Longest returns how long a run may take: the time for the images and the control planes, and for each node a turn of every kind.
func (s *Spec) Longest() time.Duration {
	return time.Hour + time.Duration(len(s.Nodes))*(s.LongestDrain()+2*s.ReturnTimeout.Duration)
}

// Validate returns every problem of the spec. Its errors hold nothing of the talosconfig.
func (s *Spec) Validate() error {
	var future error
	if s.BootedSince.After(time.Now()) {
		future = fmt.Errorf("bootedSince: is %s, which is in the future: each run would reboot all nodes", s.BootedSince.Format(time.RFC3339))
	}
	return errors.Join(
		future, s.Declared.Validate(),
		probe.Required("talos", s.Talos, "give the version of Talos"),
		probe.Required("schematic", s.Schematic, "give the id of the schematic"),
		s.checkInstallers(),
		probe.Required("kubernetes", s.Kubernetes, "give the version of Kubernetes"),
	)
}

func (s *Spec) checkInstallers() error {
	var problems []error
	for _, node := range s.Nodes {
		image := s.Installers[node.Name]
		problems = append(problems, probe.Required("installers."+node.Name, image, "give the image that Talos is installed from"))
	}
	return errors.Join(problems...)
}
