package health

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/probe"
)

// What a zero duration in a spec or a Wait means.
const (
	DefaultTimeout   = 10 * time.Minute       // longest wait for all conditions together
	DefaultStableFor = 400 * time.Millisecond // how long all conditions must hold without a break
)

// Target is the part that the specs of all waits have in common: which cluster, and for how long.
type Target struct {
	Cluster    string         `json:"cluster"`              // name, for the report
	Kubeconfig string         `json:"kubeconfig,omitempty"` // content; secret
	Timeout    probe.Duration `json:"timeout,omitempty"`    // longest wait for all conditions together; 0 means DefaultTimeout
	StableFor  probe.Duration `json:"stableFor,omitempty"`  // how long all conditions must hold without a break; 0 means DefaultStableFor

	Skip cluster.SkippedNodes `json:"skip,omitempty"` // declared nodes that are left out: the report names them, and nothing waits for them
}

// SetDefaults sets the durations that are 0.
func (t *Target) SetDefaults() {
	t.Timeout = probe.Duration(t.Timeout.Or(DefaultTimeout))
	t.StableFor = probe.Duration(t.StableFor.Or(DefaultStableFor))
}

// SetTarget replaces the target, which is part of every spec.
func (t *Target) SetTarget(target Target) { *t = target }

// skipped returns a result for each node that is left out.
func (t Target) skipped() []Result {
	var results []Result
	for _, node := range t.Skip {
		result := Skip(node.Name, "lifecycle.skip leaves it out: "+node.Reason)
		result.Check = "every declared node takes part"
		results = append(results, result)
	}
	return results
}

// Validate returns every problem of the target.
func (t Target) Validate() error {
	return errors.Join(t.ValidatePublic(), probe.Required("kubeconfig", t.Kubeconfig, "give the content of a kubeconfig"))
}

// ValidatePublic returns every problem of the target apart from a missing kubeconfig.
func (t Target) ValidatePublic() error {
	return errors.Join(probe.Required("cluster", t.Cluster, "give the cluster's name"),
		probe.NotNegative("timeout", t.Timeout), probe.NotNegative("stableFor", t.StableFor))
}

// CheckURL returns an error unless a text is a URL without a password, or "". It is the URL of a repository or another source. The text may
// hold a password, so an error does not quote it as it is.
func CheckURL(text, of string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil
	case err != nil || u.Scheme == "":
		return fmt.Errorf("url: is not a URL; give the %s's, e.g. https://git.home.arpa/platform/slipway.git", of)
	}
	if _, password := u.User.Password(); password {
		return fmt.Errorf("url: %s holds a password; put the credentials into the %s's Secret", u.Redacted(), of)
	}
	return nil
}

// DropCredentials removes the credentials.
func (t *Target) DropCredentials() { t.Kubeconfig = "" }

// Declared is a spec S of which a stack has an output, by its pointer.
type Declared[S any] interface {
	*S
	probe.Spec
	SetTarget(target Target)
	DropCredentials()
	ValidatePublic() error
	ValidateDeclared() error
}

// Public returns the JSON of a spec without its credentials: the stack's output that the probe's subcommand reads by --spec.
func Public[S any, P Declared[S]](spec P) (string, error) {
	public := *spec
	P(&public).DropCredentials()
	return probe.Public(&public, spec.ValidatePublic(), spec.ValidateDeclared())
}
