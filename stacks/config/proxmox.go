package config

import (
	"fmt"
	"strings"
)

func (v *validator) validateProxmox() {
	p := v.Proxmox
	if endpoint := v.webURL("proxmox.endpoint", p.Endpoint, "https"); endpoint != nil && strings.Trim(endpoint.Path, "/") != "" {
		v.found("proxmox.endpoint", "did you mean "+endpoint.Scheme+"://"+endpoint.Host+"/?",
			"%s has a path, and the API's own is added to it", p.Endpoint)
	}
	if len(p.Nodes) == 0 {
		v.found("proxmox.nodes", "name at least one Proxmox node", "is empty")
	}
	for i, node := range p.Nodes {
		v.label(fmt.Sprintf("proxmox.nodes[%d]", i), node)
	}
	v.distinct("proxmox.nodes", p.Nodes)
	v.shape("proxmox.datastores.iso", p.Datastores.ISO, storageForm, "the name of a Proxmox storage", "local")
	v.shape("proxmox.datastores.disks", p.Datastores.Disks, storageForm, "the name of a Proxmox storage", "local-lvm")
	if len(p.Bridge) > maxBridgeName {
		v.found("proxmox.bridge", fmt.Sprintf("write at most %d characters", maxBridgeName), "%s is too long for a Linux bridge", p.Bridge)
	}
	v.shape("proxmox.bridge", p.Bridge, bridgeForm, "the name of a bridge", "vmbr0")
	for i, tag := range p.Tags {
		v.shape(fmt.Sprintf("proxmox.tags[%d]", i), tag, tagForm, "a tag as Proxmox keeps it", "team-a")
	}
	v.distinct("proxmox.tags", p.Tags)
	if p.VLAN < 0 || p.VLAN > maxVLAN {
		v.found("proxmox.vlan", fmt.Sprintf("write a number from 1 to %d, or remove it for untagged", maxVLAN), "%d is not a VLAN tag", p.VLAN)
	}
}
