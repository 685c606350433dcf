// Package rotate defines the spec, the passes and the report of `slipway-probe rotate`, which replaces the certificate authority of the
// Talos APIs in a running cluster. Package perform does it.
package rotate

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/internal/turn"
)

// Spec says which certificate authority the nodes of a cluster are to have.
type Spec struct {
	Cluster     string         `json:"cluster"`           // name; required
	Nodes       []turn.Node    `json:"nodes"`             // all declared nodes, control planes among them; required
	Authorities []Authority    `json:"authorities"`       // all generations, oldest first; the last is the declared one; two at least
	Timeout     probe.Duration `json:"timeout,omitempty"` // longest wait for the whole run; 0 means Longest
}

// Authority is one generation of the certificate authority, and the credentials of an administrator that it has signed. All texts are
// base64 of PEM, as in the outputs of the Talos provider.
type Authority struct {
	Certificate string `json:"certificate"`   // of the authority; required
	Key         string `json:"key,omitempty"` // of the authority; secret; required for the last one

	ClientCertificate string `json:"clientCertificate"` // required
	ClientKey         string `json:"clientKey"`         // secret; required
}

// Longest returns how long a run may take for a number of nodes.
func Longest(nodes int) time.Duration { return 30*time.Minute + time.Duration(nodes)*time.Minute }

// SetDefaults sets what was left out.
func (s *Spec) SetDefaults() { s.Timeout = probe.Duration(s.Timeout.Or(Longest(len(s.Nodes)))) }

// Validate returns every problem of the spec. Its errors hold nothing of keys and certificates.
func (s *Spec) Validate() error {
	problems := []error{
		probe.Required("cluster", s.Cluster, "give the cluster's name"), probe.NotNegative("timeout", s.Timeout), turn.CheckNodes(s.Nodes),
	}
	if len(s.Authorities) < 2 {
		problems = append(problems, errors.New("authorities: are fewer than two; give all generations, the declared one last"))
	}
	for i, authority := range s.Authorities {
		texts := map[string]string{
			"certificate": authority.Certificate, "clientCertificate": authority.ClientCertificate, "clientKey": authority.ClientKey,
		}
		if i == len(s.Authorities)-1 {
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

// Certificates returns the certificates of the authorities in PEM, oldest first.
func (s *Spec) Certificates() []string {
	var all []string
	for _, authority := range s.Authorities {
		text, _ := decode(authority.Certificate) // Validate has read it
		all = append(all, text)
	}
	return all
}

// IssuingKey returns the key of the declared authority in PEM; secret.
func (s *Spec) IssuingKey() string {
	text, _ := decode(s.Authorities[len(s.Authorities)-1].Key) // Validate has read it
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
