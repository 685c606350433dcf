package storage

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Namespace is where volumes are tried.
const Namespace = "kube-system"

// DefaultAttempt is what a zero Spec.Attempt means.
const DefaultAttempt = 2 * time.Minute

// Spec is the storage that a cluster must offer its pods.
type Spec struct {
	health.Target
	Drivers []string       `json:"drivers,omitempty"` // CSI drivers that must be registered, beside those of the classes
	Nodes   []string       `json:"nodes,omitempty"`   // on which; none means on any
	Classes []string       `json:"classes,omitempty"` // StorageClasses of which a volume is tried
	Image   string         `json:"image,omitempty"`   // of the pod that writes and reads, with sh; "" means that of the Cilium agent
	Attempt probe.Duration `json:"attempt,omitempty"` // longest time for one volume; 0 means DefaultAttempt

	// Connection is what tells a consumer how to connect; nil for a provider, and for a consumer that is told by a Secret from Git.
	Connection *Connection `json:"connection,omitempty"`

	// Once says that nobody waits for a second attempt: a class has no result until its first attempt has ended.
	Once bool `json:"-"`
}

// Connection is the ExternalSecret that brings a consumer the item that the provider of its storage has written into 1Password.
type Connection struct {
	Provider       string `json:"provider"`       // name of the provider's cluster
	Namespace      string `json:"namespace"`      // of the ExternalSecret
	ExternalSecret string `json:"externalSecret"` // name
}

// SetDefaults sets what was left out.
func (s *Spec) SetDefaults() {
	s.Target.SetDefaults()
	s.Attempt = probe.Duration(s.Attempt.Or(DefaultAttempt))
}

// Validate returns every problem of the spec.
func (s *Spec) Validate() error {
	return errors.Join(s.Target.Validate(), s.ValidateDeclared())
}

// ValidateDeclared returns every problem of what is declared.
func (s *Spec) ValidateDeclared() error {
	problems := []error{probe.NotNegative("attempt", s.Attempt)}
	if len(s.Drivers)+len(s.Classes) == 0 {
		problems = append(problems, errors.New("classes: is empty; name at least one StorageClass, or a driver in drivers"))
	}
	for path, names := range map[string][]string{"drivers": s.Drivers, "nodes": s.Nodes, "classes": s.Classes} {
		for i, name := range names {
			at := fmt.Sprintf("%s[%d]", path, i)
			problems = append(problems, probe.Required(at, name, "give a name"))
			if slices.Index(names, name) < i {
				problems = append(problems, fmt.Errorf("%s: %s is there twice; name it once", at, name))
			}
		}
	}
	if c := s.Connection; c != nil {
		problems = append(problems, probe.Required("connection.provider", c.Provider, "give the name of the provider's cluster"),
			probe.Required("connection.namespace", c.Namespace, "give the ExternalSecret's"),
			probe.Required("connection.externalSecret", c.ExternalSecret, "give the name of an ExternalSecret"))
	}
	return errors.Join(problems...)
}
