package cluster

import "encoding/json"

// Service is a core service: a Helm release that is in the cluster before anything that a person would call a workload.
type Service struct {
	Name       string // of the release; fixed, so that Flux can adopt it
	Namespace  string
	Chart      string // name in Repository, or an oci:// reference without a tag
	Version    string // of the chart
	Repository string // https URL of the chart repository; "" exactly if Chart is an oci:// reference
	Values     any    // the part of the chart's values that Slipway sets, in the chart's own words

	MakeNamespace bool // the namespace is the service's own
	Privileged    bool // its pods need what the pod security standard "baseline", Talos's default, forbids

	// Accepts is an object that the API accepts once the service works, offered as a dry run; nil asks for none.
	Accepts *Sample
}

// Sample is an object to offer to the API.
type Sample struct {
	Resource string // plural name of its kind, such as certificates
	Object   json.RawMessage
}

// Services lists the cluster's core services. The others are installed side by side once the first one, its DNS, runs.
func (c *Cluster) Services() []Service {
	services := []Service{c.CoreDNS.service(c.Network)}
	if c.Spegel.Enabled {
		services = append(services, c.Spegel.service())
	}
	if c.CertManager.Enabled {
		services = append(services, c.CertManager.service())
	}
	return services
}
