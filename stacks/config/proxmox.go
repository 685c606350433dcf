package config

import (
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/labels"
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
	if problem := labels.Validate(map[string]string{labelRegion: p.Cluster}); p.Cluster != "" && problem != nil {
		v.found("proxmox.cluster", fmt.Sprintf("write at most %d letters, digits, -, _ and ., with a letter or digit at both ends", maxLabel),
			"%s is not the value of a Kubernetes label", p.Cluster)
	}
	v.bridge("proxmox.bridge", p.Bridge)
	v.tags("proxmox.tags", p.Tags)
	v.vlan("proxmox.vlan", p.VLAN)
}

func (v *validator) bridge(path, bridge string) {
	if len(bridge) > maxBridgeName {
		v.found(path, fmt.Sprintf("write at most %d characters", maxBridgeName), "%s is too long for a Linux bridge", bridge)
	}
	v.shape(path, bridge, bridgeForm, "the name of a bridge", "vmbr0")
}

func (v *validator) tags(path string, tags []string) {
	for i, tag := range tags {
		v.shape(fmt.Sprintf("%s[%d]", path, i), tag, tagForm, "a tag as Proxmox keeps it", "team-a")
	}
	v.distinct(path, tags)
}

func (v *validator) vlan(path string, vlan int) {
	if vlan < 0 || vlan > maxVLAN {
		v.found(path, fmt.Sprintf("write a number from 1 to %d, or remove it for untagged", maxVLAN), "%d is not a VLAN tag", vlan)
	}
}
