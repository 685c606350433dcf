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

	StorageVault string // of 1Password, through which clusters share a storage; "" without one

	CiliumRepository string // of Cilium's chart, in place of Cilium's own; "" for that
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
	Gateway  netip.Addr   `json:"gateway"` // none: the first address of NodeCIDR
	IPv6     struct {
		NodeCIDR    netip.Prefix `json:"nodeCIDR"`
		Gateway     netip.Addr   `json:"gateway"`
		Nameservers []netip.Addr `json:"nameservers"`
	} `json:"ipv6"` // zero: the machines have IPv4 only
	Nameservers []netip.Addr `json:"nameservers"` // none: the gateway
	NTP         []string     `json:"ntp"`         // names or addresses; none: Talos's own
}

// Servers are the addresses that the machines ask for names, or for the time.
func (n Network) Servers() []netip.Addr {
	out := slices.Concat(n.Nameservers, n.IPv6.Nameservers)
	for _, server := range n.NTP {
		if a, err := netip.ParseAddr(server); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// Gateways are the addresses of the network's routers, with the prefix lengths of their networks. It omits a link-local address, which
// needs no network of its own.
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

// GitOps is the source of Flux: a Git repository, an OCI artifact or a bucket.
type GitOps struct {
	URL       string     `json:"url"` // of the Git repository; "" if it is something else
	Branch    string     `json:"branch"`
	Username  string     `json:"username"`
	Public    bool       `json:"public"`
	OCI       *OCI       `json:"oci"`
	Bucket    *Bucket    `json:"bucket"`
	GitHubApp *GitHubApp `json:"githubApp"`

	Settings map[string]string `json:"settings"` // of the tree
}

// Snapshots is the bucket for snapshots of etcd that the settings of the tree name.
func (g GitOps) Snapshots() (bucket Bucket, region string, named bool) {
	endpoint := g.Settings["ETCD_BACKUP_ENDPOINT"]
	host := strings.TrimSuffix(strings.TrimPrefix(endpoint, "https://"), "/")
	return Bucket{Endpoint: host, Name: g.Settings["ETCD_BACKUP_BUCKET"]}, g.Settings["ETCD_BACKUP_REGION"], endpoint != ""
}

// OCI is an artifact in a registry.
type OCI struct {
	URL string `json:"url"` // oci://HOST/REPOSITORY
	Tag string `json:"tag"`
}

// Bucket is a bucket of a server that speaks S3.
type Bucket struct {
	Endpoint string `json:"endpoint"` // HOST or HOST:PORT
	Name     string `json:"name"`
}

// GitHubApp is a GitHub App that is installed for the repository.
type GitHubApp struct {
	ID             int    `json:"id"`
	InstallationID int    `json:"installationId"` // 0 if the owner is given
	Owner          string `json:"owner"`
	BaseURL        string `json:"baseURL"` // of GitHub's API; "" means https://api.github.com
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
			Storage struct {
				Vault string `json:"vault"`
			} `json:"slipway:storage"`
			Cilium struct {
				Repository string `json:"repository"`
			} `json:"slipway:cilium"`
		} `json:"config"`
	}
	if err := yaml.Unmarshal(data, &raw); err != nil {
		return File{}, fmt.Errorf("stack file %s: %w", path, err)
	}
	f := File{Stack: stack, Path: path, Cluster: raw.Config.Cluster.Name, ID: raw.Config.Cluster.ID,
		Proxmox: raw.Config.Proxmox, Network: raw.Config.Network, Pools: raw.Config.Pools, GitOps: raw.Config.GitOps,
		Peers: raw.Config.Mesh.Peers, OnePassword: raw.Config.Secrets.OnePassword, StorageVault: raw.Config.Storage.Vault,
		CiliumRepository: raw.Config.Cilium.Repository}
	f.ID = cmp.Or(f.ID, 1)
	if n := &f.Network; !n.Gateway.IsValid() && n.NodeCIDR.IsValid() {
		n.Gateway = n.NodeCIDR.Masked().Addr().Next()
	}
	f.Proxmox.Bridge = cmp.Or(f.Proxmox.Bridge, "vmbr0")
	f.Proxmox.Datastores.ISO = cmp.Or(f.Proxmox.Datastores.ISO, "local")
	f.Proxmox.Datastores.Disks = cmp.Or(f.Proxmox.Datastores.Disks, "local-lvm")
	f.GitOps.Branch = cmp.Or(f.GitOps.Branch, "main")
	f.GitOps.Username = cmp.Or(f.GitOps.Username, "flux")
	if one := f.OnePassword; one != nil {
		one.Probe.Item, one.Probe.Field = cmp.Or(one.Probe.Item, "slipway-probe"), cmp.Or(one.Probe.Field, "password")
	}
	if oci := f.GitOps.OCI; oci != nil {
		oci.Tag = cmp.Or(oci.Tag, "latest")
	}
	return f, f.check()
}

// check checks the URLs from which the lab takes the names that it answers for.
func (f File) check() error {
	type named struct{ key, url, scheme string }
	urls := []named{{"slipway:proxmox.endpoint", f.Proxmox.Endpoint, "https"}}
	switch source := f.GitOps; {
	case source.OCI != nil:
		urls = append(urls, named{"slipway:gitops.oci.url", source.OCI.URL, "oci"})
	case source.Bucket != nil:
		urls = append(urls, named{"slipway:gitops.bucket.endpoint", "https://" + source.Bucket.Endpoint, "https"})
	default:
		urls = append(urls, named{"slipway:gitops.url", source.URL, "https"})
	}
	if app := f.GitOps.GitHubApp; app != nil && app.BaseURL != "" {
		urls = append(urls, named{"slipway:gitops.githubApp.baseURL", app.BaseURL, "https"})
	}
	if f.CiliumRepository != "" {
		urls = append(urls, named{"slipway:cilium.repository", f.CiliumRepository, "https"})
	}
	for _, one := range urls {
		if u, err := url.Parse(one.url); err != nil || u.Scheme != one.scheme || u.Host == "" {
			return fmt.Errorf("stack file %s: %s: %q is no %s URL; the lab has to know which name to answer for",
				f.Path, one.key, one.url, one.scheme)
		}
	}
	return nil
}
