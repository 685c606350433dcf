package cilium

// These types have the JSON form of Cilium's own models (api/v1/health/models): names, order, and which empty fields
// are omitted.
type (
	healthStatus struct {
		Local         selfStatus    `json:"local"`
		Nodes         []*nodeHealth `json:"nodes"`
		ProbeInterval string        `json:"probeInterval,omitempty"`
		Timestamp     string        `json:"timestamp,omitempty"`
	}
	selfStatus struct {
		Name string `json:"name,omitempty"`
	}
	nodeHealth struct {
		Endpoint       *pathStatus      `json:"endpoint,omitempty"` // deprecated, but still sent
		HealthEndpoint *addressesHealth `json:"health-endpoint,omitempty"`
		Host           *addressesHealth `json:"host,omitempty"`
		Name           string           `json:"name,omitempty"`
	}
	addressesHealth struct {
		PrimaryAddress     *pathStatus   `json:"primary-address,omitempty"`
		SecondaryAddresses []*pathStatus `json:"secondary-addresses"`
	}
	pathStatus struct {
		HTTP *connectivityStatus `json:"http,omitempty"`
		ICMP *connectivityStatus `json:"icmp,omitempty"`
		IP   string              `json:"ip,omitempty"`
	}
	connectivityStatus struct {
		LastProbed string `json:"lastProbed,omitempty"`
		Latency    int64  `json:"latency,omitempty"` // nanoseconds
		Status     string `json:"status,omitempty"`  // empty: reachable
	}
)

// reachable tells whether both probes were answered. A path that was not probed yet is neither reachable nor failed.
func (p *pathStatus) reachable() bool {
	return p.ICMP != nil && p.ICMP.Status == "" && p.HTTP != nil && p.HTTP.Status == ""
}

func (p *pathStatus) failed() bool {
	return p.ICMP != nil && p.ICMP.Status != "" || p.HTTP != nil && p.HTTP.Status != ""
}

func (h *addressesHealth) all() []*pathStatus {
	if h == nil || h.PrimaryAddress == nil {
		return nil
	}
	return append([]*pathStatus{h.PrimaryAddress}, h.SecondaryAddresses...)
}

// reachable counts the addresses that answer.
func (h *addressesHealth) reachable() (answer, all int) {
	for _, p := range h.all() {
		all++
		if p.reachable() {
			answer++
		}
	}
	return answer, all
}

// healthy tells whether no probe of the node has failed, as Cilium counts it: a node that was not probed yet is healthy.
func (n *nodeHealth) healthy() bool {
	for _, p := range append(n.Host.all(), n.HealthEndpoint.all()...) {
		if p.failed() {
			return false
		}
	}
	return true
}
