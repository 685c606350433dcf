package proxmox

import (
	"slices"
	"strings"
)

// networkTypes are the values of the parameter type of getNetworks.
var networkTypes = []string{"bridge", "bond", "eth", "alias", "vlan", "fabric", "OVSBridge", "OVSBond", "OVSPort", "OVSIntPort", "vnet",
	"any_bridge", "any_local_bridge", "include_sdn"}

// networkCard is the card of each node, which is a port of its first bridge.
const networkCard = "eno1"

// getNetworks lists the interfaces of a node: its card, and the bridges that the token may read or use. VNets are not modelled.
func getNetworks(q *request) (any, error) {
	filter := q.form.Get("type")
	if q.form.Has("type") && !slices.Contains(networkTypes, filter) {
		return nil, invalid(map[string]string{
			"type": "value '" + filter + "' does not have a value in the enumeration '" + strings.Join(networkTypes, ", ") + "'"})
	}
	out := []any{}
	if filter == "" || filter == "eth" || filter == "include_sdn" {
		out = append(out, map[string]any{
			"iface": networkCard, "type": "eth", "method": "manual", "method6": "manual", "families": []string{"inet"},
			"exists": 1, "active": 1, "priority": 3,
		})
	}
	if filter != "" && !slices.Contains([]string{"bridge", "any_bridge", "any_local_bridge", "include_sdn"}, filter) ||
		!q.token.has("SDN.Audit") && !q.token.has("SDN.Use") {
		return out, nil
	}
	for i, name := range q.node.Bridges {
		port := networkCard
		if i > 0 {
			port = ""
		}
		out = append(out, map[string]any{
			"iface": name, "type": "bridge", "method": "manual", "method6": "manual", "families": []string{"inet"},
			"bridge_ports": port, "bridge_stp": "off", "bridge_fd": "0", "autostart": 1, "active": 1, "priority": 4 + i,
		})
	}
	return out, nil
}
