package rotate

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// Subject is what a certificate authority signs for.
type Subject string

// Subjects.
const (
	Talos      Subject = "Talos"      // the Talos APIs: machine.ca
	Kubernetes Subject = "Kubernetes" // the Kubernetes API and its clients: cluster.ca
	Etcd       Subject = "etcd"       // members of etcd and their clients, which are on control planes only: cluster.etcd.ca
)

// Spec says which certificate authority the nodes of a cluster are to have.
type Spec struct {
	turn.Target                    // its talosconfig is not for a CA of Talos
	cluster.TurnChecks             // before the first node is changed, and after each
	Of                 Subject     `json:"of"`          // whose authority is replaced; required
	Authorities        []Authority `json:"authorities"` // all generations, oldest first; the last is the declared one; two at least

	Snapshots snapshot.Place `json:"snapshots"` // for the one that is taken before the first pass

	LeaveNamespaces []string            `json:"leaveNamespaces,omitempty"` // namespaces whose pods are not restarted for a CA of Kubernetes
	Limits          *cluster.TurnLimits `json:"limits,omitempty"`          // of the turns for a CA of etcd; required for it
}

// Authority is one generation of the certificate authority, and the credentials of an administrator that it has signed. All texts are
// base64 of PEM, as in the outputs of the Talos provider.
type Authority struct {
	Certificate string `json:"certificate"`   // of the authority; required
	Key         string `json:"key,omitempty"` // of the authority; secret; required for the last one, of Kubernetes for each

	// Of Talos only. With the keys of Kubernetes' authorities, a run signs the certificates itself with which it asks API servers.
	ClientCertificate string `json:"clientCertificate,omitempty"` // required
	ClientKey         string `json:"clientKey,omitempty"`         // secret; required
}

// Longest returns how long a run may take. A new CA of Kubernetes restarts workloads, one after the other: DaemonSets have a pod on each
// node, and most replace one after the other. One of etcd reboots each control plane twice.
func (s *Spec) Longest() time.Duration {
	longest := 30*time.Minute + time.Duration(len(s.Nodes))*time.Minute
	switch {
	case s.Of == Kubernetes:
		longest += 3*time.Hour + time.Duration(len(s.Nodes))*5*time.Minute
	case s.Of == Etcd && s.Limits != nil:
		declared := turn.Declared{Target: s.Target, TurnLimits: *s.Limits}
		longest += time.Duration(2*len(s.ControlPlanes())) * (declared.LongestDrain() + s.Limits.ReturnTimeout.Duration)
	}
	return longest
}

// Validate returns every problem of the spec. Its errors hold nothing of keys and certificates.
func (s *Spec) Validate() error {
	var problems []error
	switch {
	case s.Of == Etcd && s.Limits == nil:
		problems = append(problems, errors.New("limits: is missing; give the limits of turns"))
	case s.Of == Etcd:
		problems = append(problems, turn.Declared{Target: s.Target, TurnLimits: *s.Limits, TurnChecks: s.TurnChecks}.Validate())
	case s.Of == Kubernetes:
		problems = append(problems, s.CheckTarget(), s.CheckTalosconfig(), cluster.ValidateChecks(s.Checks))
	default:
		problems = append(problems, s.CheckTarget(), cluster.ValidateChecks(s.Checks))
	}
	if !slices.Contains([]Subject{Talos, Kubernetes, Etcd}, s.Of) {
		problems = append(problems, fmt.Errorf("of: is %q; write %s, %s or %s", s.Of, Talos, Kubernetes, Etcd))
	}
	if len(s.Authorities) < 2 {
		problems = append(problems, errors.New("authorities: are fewer than two; give all generations, the declared one last"))
	}
	for i, authority := range s.Authorities {
		texts := map[string]string{"certificate": authority.Certificate}
		if s.Of == Talos {
			texts["clientCertificate"], texts["clientKey"] = authority.ClientCertificate, authority.ClientKey
		}
		if s.Of == Kubernetes || i == len(s.Authorities)-1 {
			texts["key"] = authority.Key
		}
		for key, text := range texts {
			if _, err := decode(text); err != nil {
				problems = append(problems, fmt.Errorf("authorities[%d].%s: %w", i, key, err))
			}
		}
	}
	return errors.Join(problems...)
}

// RefuseSkipped returns why no CA is replaced while nodes are left out that have it; nil if none is. A node without the new CA could not go
// on with the others once the former one is refused.
func (s *Spec) RefuseSkipped() error {
	var names []string
	for _, node := range s.Skip {
		worker := slices.ContainsFunc(s.Nodes, func(one turn.Node) bool { return one.Name == node.Name && one.Role == cluster.Worker })
		if s.Of != Etcd || !worker {
			names = append(names, node.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("lifecycle.skip: leaves out %s, and every node needs the new CA; remove it from lifecycle.skip once it is back, or "+
		"remove the node from nodePools", strings.Join(names, ", "))
}

// Certificates returns the certificates of the authorities in PEM, oldest first.
func (s *Spec) Certificates() []string {
	var all []string
	for _, authority := range s.Authorities {
		text, _ := decode(authority.Certificate) // Validate has read it
		all = append(all, text)
	}
	return all
}

// all returns the indices of all authorities.
func (s *Spec) all() []int {
	indices := make([]int, len(s.Authorities))
	for i := range indices {
		indices[i] = i
	}
	return indices
}

// IssuingKey returns the key of the declared authority in PEM; secret.
func (s *Spec) IssuingKey() string { return s.KeyOf(len(s.Authorities) - 1) }

// KeyOf returns the key of one of the authorities in PEM; secret.
func (s *Spec) KeyOf(authority int) string {
	text, _ := decode(s.Authorities[authority].Key) // Validate has read it
	return text
}

func decode(text string) (string, error) {
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", errors.New("is not base64")
	}
	if block, _ := pem.Decode(decoded); block == nil {
		return "", errors.New("is not base64 of PEM")
	}
	return string(decoded), nil
}
