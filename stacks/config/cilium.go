package config

import (
	"strings"

	"github.com/slipway-platform/slipway/components/core/pins"
)

// validateCilium checks what of Cilium is in use against each other and against the machines. That the chart takes the
// values is for the component to check, with the chart's own schema.
func (v *validator) validateCilium() {
	c := v.Cilium
	v.chart("cilium.version", c.Version)
	v.webURL("cilium.repository", c.Repository, "https")
	switch hubble := c.Hubble; {
	case hubble.Relay.On() && !hubble.Enabled.On():
		v.found("cilium.hubble.relay", "remove it, or set cilium.hubble.enabled: true", "true needs Hubble, which is off")
	case hubble.UI && !hubble.Enabled.On():
		v.found("cilium.hubble.ui", "remove it, or set cilium.hubble.enabled: true", "true needs Hubble, which is off")
	case hubble.UI && !hubble.Relay.On():
		v.found("cilium.hubble.ui", "remove it, or set cilium.hubble.relay: true", "true needs the relay, which is off")
	}
	if c.BandwidthManager == BandwidthBBR && c.Masquerade != MasqueradeBPF {
		v.found("cilium.bandwidthManager", "set cilium.masquerade: bpf, or write edt",
			"%s needs routing in BPF, which Cilium has only with masquerading in BPF", c.BandwidthManager)
	}
	if c.Routing == RoutingNative {
		v.oneWire()
	}
	if !c.GatewayAPI.On() {
		return
	}
	if source := v.CRDs.GatewayAPI; source.Skip {
		v.found("crds.gatewayAPI.skip", "remove it, or set cilium.gatewayAPI: false", "true leaves out what cilium.gatewayAPI needs before Cilium starts")
	} else if releaseForm.MatchString(source.Version) && chartForm.MatchString(c.Version) {
		if err := pins.GatewayAPIFitsCilium(source.Version, c.Version); err != nil {
			problem, remedy, _ := strings.Cut(err.Error(), "; ")
			path := "crds.gatewayAPI.version"
			if source.Version == pins.GatewayAPI.Version { // likely the default, so that it is Cilium's that was chosen
				path, remedy = "cilium.version", strings.Replace(remedy, "use v", "set "+path+": v", 1)
			}
			v.found(path, remedy, "%s", problem)
		}
	}
}

// oneWire checks that native routing can work: each machine sends pods' packets straight to the other's address.
func (v *validator) oneWire() {
	first := -1
	for i, pool := range v.NodePools {
		switch {
		case pool.VLAN == nil:
		case first < 0:
			first = i
		case *pool.VLAN != *v.NodePools[first].VLAN:
			v.found("cilium.routing", "give all pools the same VLAN, or write tunnel",
				"%s needs all machines on one wire, and nodePools[%d] is in VLAN %d, nodePools[%d] in %d",
				v.Cilium.Routing, first, *v.NodePools[first].VLAN, i, *pool.VLAN)
			return
		}
	}
}
