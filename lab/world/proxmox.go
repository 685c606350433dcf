package world

import (
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/lab/factory"
	"github.com/slipway-platform/slipway/lab/proxmox"
	"github.com/slipway-platform/slipway/lab/stackfile"
	"github.com/slipway-platform/slipway/lab/vm"
)

// firmware powers the VMs on.
func (w *World) firmware() vm.Firmware {
	if w.real != nil {
		return w.real.host
	}
	return w.site
}

// proxmoxConfig is the cluster at a stack's endpoint. It has the nodes, bridges and datastores in the stack files with this endpoint, and
// the defaults of a Proxmox VE installation.
func (w *World) proxmoxConfig(stack stackfile.File) proxmox.Config {
	id, secret, _ := strings.Cut(w.settings.Secrets.ProxmoxToken, "=")
	c := proxmox.Config{
		Tokens: []proxmox.Token{{ID: id, Secret: secret}}, Storages: proxmox.DefaultStorages(),
		Firmware: w.firmware(), Latency: w.Latency, Faults: w.faults, Fetch: w.client(), Image: factory.Parse, Log: w.Log,
	}
	bridges := []string{"vmbr0"} // created by Proxmox VE's installer
	for _, other := range w.stacks {
		if other.Proxmox.Endpoint != stack.Proxmox.Endpoint {
			continue
		}
		bridges = append(bridges, other.Bridges()...)
		for _, name := range other.Proxmox.Nodes {
			if !slices.ContainsFunc(c.Nodes, func(n proxmox.Node) bool { return n.Name == name }) {
				c.Nodes = append(c.Nodes, proxmox.Node{Name: name})
			}
		}
		storages := []proxmox.Storage{{Name: other.Proxmox.Datastores.ISO, Type: "nfs", Content: []string{"iso"}, Shared: true}}
		for _, name := range other.DiskDatastores() {
			storages = append(storages, proxmox.Storage{Name: name, Type: "rbd", Content: []string{"images"}, Shared: true})
		}
		for _, storage := range storages {
			if !slices.ContainsFunc(c.Storages, func(s proxmox.Storage) bool { return s.Name == storage.Name }) {
				c.Storages = append(c.Storages, storage)
			}
		}
	}
	slices.Sort(bridges)
	for i := range c.Nodes {
		c.Nodes[i].Bridges = slices.Compact(slices.Clone(bridges))
	}
	return c
}
