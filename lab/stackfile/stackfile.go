// Package stackfile reads from a project's stack files what the lab must simulate: the names and addresses that `pulumi
// up` contacts. It reads only a few keys and does not check the others. The program reads the same files strictly.
package stackfile

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// File is the file of one stack.
type File struct {
	Stack   string // e.g. "infra"
	Path    string
	Cluster string // name
	ID      int    // of the cluster
	Proxmox Proxmox
	Network Network
	Pools   []Pool
	GitOps  GitOps
	Peers   []string // stacks of the same mesh

	OnePassword *OnePassword // nil if the stack reads nothing from 1Password
}

// Pool is a pool of machines, with the values that differ from the stack's.
type Pool struct {
	Bridge    string `json:"bridge"`
	Datastore string `json:"datastore"`
	DataDisks []struct {
		Datastore string `json:"datastore"`
	} `json:"dataDisks"`
}

// Bridges are the bridges of the stack's machines.
func (f File) Bridges() []string {
	out := []string{f.Proxmox.Bridge}
	for _, p := range f.Pools {
		out = append(out, p.Bridge)
	}
	return distinct(out)
}

// DiskDatastores are the datastores of the machines' disks.
func (f File) DiskDatastores() []string {
	out := []string{f.Proxmox.Datastores.Disks}
	for _, p := range f.Pools {
		out = append(out, p.Datastore)
		for _, d := range p.DataDisks {
			out = append(out, d.Datastore)
		}
	}
	return distinct(out)
}

// distinct sorts names, and removes duplicates and empty ones.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
}

// Proxmox is the Proxmox VE cluster of the stack's machines.
type Proxmox struct {
	Endpoint   string   `json:"endpoint"`
	Nodes      []string `json:"nodes"`
	Bridge     string   `json:"bridge"`
	Datastores struct {
		ISO   string `json:"iso"`
		Disks string `json:"disks"`
	} `json:"datastores"`
}

// Network is the network of the stack's machines.
type Network struct {
	NodeCIDR netip.Prefix `json:"nodeCIDR"`
	Gateway  netip.Addr   `json:"gateway"`
	IPv6     struct {
		NodeCIDR netip.Prefix `json:"nodeCIDR"`
		Gateway  netip.Addr   `json:"gateway"`
	} `json:"ipv6"` // zero: the machines have IPv4 only
}

// Gateways are the addresses of the network's routers, with the prefix lengths of their networks. It omits a link-local
// one, which needs no network of its own.
func (n Network) Gateways() (out []netip.Prefix) {
	for _, g := range []struct {
		address netip.Addr
		network netip.Prefix
	}{{n.Gateway, n.NodeCIDR}, {n.IPv6.Gateway, n.IPv6.NodeCIDR}} {
		if g.address.IsValid() && g.network.IsValid() && !g.address.IsLinkLocalUnicast() {
			out = append(out, netip.PrefixFrom(g.address, g.network.Bits()))
		}
	}
	return out
}

// GitOps is the Git source of Flux.
type GitOps struct {
	URL      string `json:"url"`
	Branch   string `json:"branch"`
	Username string `json:"username"`
	Public   bool   `json:"public"`
}

// OnePassword is what a stack reads from 1Password.
type OnePassword struct {
	Vaults []string `json:"vaults"` // by title or id
	Probe  struct {
		Item  string `json:"item"`  // title or id
		Field string `json:"field"` // label
	} `json:"probe"`
}

// Find reads every Pulumi.<stack>.yaml of the project in dir, sorted by the clusters' ids.
func Find(dir string) ([]File, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "Pulumi.*.yaml"))
	if err != nil {
		return nil, err
	}
	var files []File
	for _, path := range paths {
		f, err := Read(path)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("lab: no Pulumi.<stack>.yaml in %s; run it in the project's folder", dir)
	}
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(a.ID, b.ID) })
	return files, nil
}

// Read reads one stack file.
func Read(path string) (File, error) {
	stack := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "Pulumi."), ".yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		return File{}, fmt.Errorf("stack file: %w", err)
	}
	var raw struct {
		Config struct {
			Cluster struct {
				Name string `json:"name"`
				ID   int    `json:"id"`
			} `json:"slipway:cluster"`
			Proxmox Proxmox `json:"slipway:proxmox"`
			Network Network `json:"slipway:network"`
			Pools   []Pool  `json:"slipway:nodePools"`
			GitOps  GitOps  `json:"slipway:gitops"`
			Mesh    struct {
				Peers []string `json:"peers"`
			} `json:"slipway:mesh"`
			Secrets struct {
				OnePassword *OnePassword `json:"onepassword"`
			} `json:"slipway:secrets"`
		} `json:"config"`
	}
	if err := yaml.Unmarshal(data, &raw); err != nil {
		return File{}, fmt.Errorf("stack file %s: %w", path, err)
	}
	f := File{Stack: stack, Path: path, Cluster: raw.Config.Cluster.Name, ID: raw.Config.Cluster.ID,
		Proxmox: raw.Config.Proxmox, Network: raw.Config.Network, Pools: raw.Config.Pools, GitOps: raw.Config.GitOps,
		Peers: raw.Config.Mesh.Peers, OnePassword: raw.Config.Secrets.OnePassword}
	f.Proxmox.Bridge = or(f.Proxmox.Bridge, "vmbr0")
	f.Proxmox.Datastores.ISO = or(f.Proxmox.Datastores.ISO, "local")
	f.Proxmox.Datastores.Disks = or(f.Proxmox.Datastores.Disks, "local-lvm")
	f.GitOps.Branch = or(f.GitOps.Branch, "main")
	f.GitOps.Username = or(f.GitOps.Username, "flux")
	if one := f.OnePassword; one != nil {
		one.Probe.Item, one.Probe.Field = or(one.Probe.Item, "slipway-probe"), or(one.Probe.Field, "password")
	}
	for key, value := range map[string]string{"slipway:proxmox.endpoint": f.Proxmox.Endpoint, "slipway:gitops.url": f.GitOps.URL} {
		if u, err := url.Parse(value); err != nil || u.Scheme != "https" || u.Host == "" {
			return File{}, fmt.Errorf("stack file %s: %s: %q is no https URL; the lab has to know which name to answer for", path, key, value)
		}
	}
	return f, nil
}

func or(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
