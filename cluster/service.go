package cluster

import (
	"encoding/json"
	"slices"
	"strings"
)

// mapping is a part of the values of a chart, under the keys of the chart.
type mapping map[string]any

// Service is a core service: a Helm release that is installed before all workloads.
type Service struct {
	Key        string // its section in the stack file, such as "coreDNS"
	Name       string // name of the release; fixed, so that Flux can adopt it
	Namespace  string
	Chart      string // name in Repository, or an oci:// reference without a tag
	Version    string // version of the chart
	Repository string // https URL of the chart repository; "" exactly if Chart is an oci:// reference
	Values     any    // the part of the chart's values that Slipway sets, under the chart's own keys

	UserValues ChartValues // the user's own, which are merged into Values last
	Needed     []Needed    // values of the chart that others rely on
	Owner      Owner       // who changes the release after its installation

	off           bool // not installed
	MakeNamespace bool // create the namespace, which is the service's own
	Privileged    bool // its pods violate the pod security standard "baseline", which is Talos's default

	// Accepts is an object that the API accepts in a dry run once the service works; nil means no such check.
	Accepts *Sample
}

// Trees returns the values of the chart, and the part of them that Slipway sets.
func (s Service) Trees() (all, own map[string]any, err error) {
	if all, err = s.UserValues.MergedInto(s.Values); err == nil {
		own, err = ChartValues(nil).MergedInto(s.Values)
	}
	return all, own, err
}

// source returns the key in the stack file that says where the chart is, and its URL.
func (s Service) source() (path, url string) {
	if s.Repository == "" {
		return s.Key + ".chart", s.Chart
	}
	return s.Key + ".repository", s.Repository
}

// chartName returns the chart's own name, which is the last part of a reference.
func (s Service) chartName() string { return s.Chart[strings.LastIndex(s.Chart, "/")+1:] }

// Sample is an object to submit to the API.
type Sample struct {
	Resource string // plural name of its kind, such as certificates
	Object   json.RawMessage
}

// allServices returns all core services, also those that are off.
func (c *Cluster) allServices() []Service {
	return []Service{c.CoreDNS.service(c.Network), c.Spegel.service(c.Talos.RegistryMirrors), c.CertManager.service()}
}

// Services returns the cluster's core services. The first one is its DNS. The others are installed in parallel once it runs.
func (c *Cluster) Services() []Service {
	return slices.DeleteFunc(c.allServices(), func(service Service) bool { return service.off })
}
