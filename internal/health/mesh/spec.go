package mesh

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/syntax"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Spec is a cluster's place in its mesh.
type Spec struct {
	health.Target
	Name      string     `json:"name"`                // Cilium's name of the cluster
	ID        int        `json:"id"`                  // Cilium's id of the cluster
	Address   netip.Addr `json:"address"`             // declared address of its mesh API server
	Nodes     []string   `json:"nodes,omitempty"`     // nodes whose agents must see the peers; none means those that have a Ready agent
	Peers     []Peer     `json:"peers"`               // the other clusters of the mesh; at least one
	CA        string     `json:"ca,omitempty"`        // certificate of the mesh's CA, PEM; "" means that no certificate is judged
	Namespace string     `json:"namespace,omitempty"` // of Cilium; "" means kube-system
	Domain    string     `json:"domain,omitempty"`    // a certificate must be for NAME.DOMAIN; "" means cluster.MeshDomain
	Port      int        `json:"port,omitempty"`      // at which all mesh API servers answer; 0 means cluster.MeshPort

	// NoPool says that nothing in the stack assigns the declared address: until somebody does, a missing address is only remarked.
	NoPool bool `json:"noPool,omitempty"`
	// Inline says that Cilium is in the machine configuration alone, of which Talos applies changes only when it is told to.
	Inline bool `json:"inline,omitempty"`
	// Strict makes an absent peer, and one with another number of nodes than declared, fail. Otherwise both are only remarked.
	Strict bool `json:"strict,omitempty"`
}

// Peer is another cluster of the mesh.
type Peer struct {
	Name    string     `json:"name"`            // Cilium's name of the cluster
	ID      int        `json:"id"`              // Cilium's id of the cluster
	Nodes   int        `json:"nodes,omitempty"` // declared number of nodes; 0 means any
	Address netip.Addr `json:"address"`         // of its mesh API server
}

// SetDefaults sets what was left out.
func (s *Spec) SetDefaults() {
	s.Target.SetDefaults()
	s.Namespace = cmp.Or(s.Namespace, "kube-system")
	s.Domain = cmp.Or(s.Domain, cluster.MeshDomain)
	s.Port = cmp.Or(s.Port, cluster.MeshPort)
}

// Validate returns every problem of the spec.
func (s *Spec) Validate() error {
	return errors.Join(s.Target.Validate(), s.ValidateDeclared())
}

// ValidateDeclared returns every problem of what is declared.
func (s *Spec) ValidateDeclared() error {
	problems := validateCluster("", s.Name, s.ID, s.Address)
	if len(s.Peers) == 0 {
		problems = append(problems, errors.New("peers: is empty; name at least one other cluster"))
	}
	names, ids := []string{s.Name}, []int{s.ID}
	for i, peer := range s.Peers {
		path := fmt.Sprintf("peers[%d].", i)
		problems = append(problems, validateCluster(path, peer.Name, peer.ID, peer.Address)...)
		if peer.Name != "" && slices.Contains(names, peer.Name) {
			problems = append(problems, fmt.Errorf("%sname: %s is there twice; each cluster has its own name", path, peer.Name))
		}
		if peer.ID != 0 && slices.Contains(ids, peer.ID) {
			problems = append(problems, fmt.Errorf("%sid: %d is there twice; each cluster has its own id", path, peer.ID))
		}
		if peer.Nodes < 0 {
			problems = append(problems, fmt.Errorf("%snodes: %d is negative; give the number, or 0 for any", path, peer.Nodes))
		}
		names, ids = append(names, peer.Name), append(ids, peer.ID)
	}
	if s.CA != "" {
		if fault := syntax.Certificates(s.CA); fault != nil {
			problems = append(problems, errors.New("ca: is not a certificate; give it in PEM, or none"))
		}
	}
	if s.Port < 0 || s.Port > 65535 {
		problems = append(problems, fmt.Errorf("port: %d is not a port; give 1 to 65535, or 0 for %d", s.Port, cluster.MeshPort))
	}
	return errors.Join(problems...)
}

func validateCluster(path, name string, id int, address netip.Addr) []error {
	problems := []error{probe.Required(path+"name", name, "give Cilium's name of the cluster")}
	if id < 1 || id > cluster.MaxClusterID {
		problems = append(problems, fmt.Errorf("%sid: %d is not a cluster id; give 1 to %d", path, id, cluster.MaxClusterID))
	}
	if !address.IsValid() {
		problems = append(problems, fmt.Errorf("%saddress: is empty; give that of the mesh API server", path))
	}
	return problems
}

// withInlineRemedy adds to a result about old values of Cilium what makes Talos apply the new ones, if Cilium is in the machine
// configuration alone.
func (s *Spec) withInlineRemedy(result health.Result) health.Result {
	if s.Inline {
		result.Reason += "; Talos applies changed manifests only with talosctl upgrade-k8s"
		return result.WithCommand("talosctl -n ADDRESS upgrade-k8s --to VERSION")
	}
	return result
}
