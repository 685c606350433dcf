package cluster

import (
	"fmt"
	"net/netip"
	pathpkg "path"
	"strings"
)

// outside checks the servers that the machines, Flux or this program need before the cluster exists: none may have an address of
// the cluster itself.
func (c clusterCheck) outside() {
	for _, server := range c.servers() {
		c.outsideHost(server.path, server.host)
	}
	for _, release := range c.Releases() {
		c.chartRepository(release.source())
	}
	c.routers()
	for _, one := range c.fetched() {
		c.notEachMachine(one.path, urlOf(one.url).Hostname())
	}
}

// fetchedURL is a URL that machines or pods fetch from, and its key.
type fetchedURL struct{ path, url string }

// fetched returns all such URLs.
func (c *Cluster) fetched() []fetchedURL {
	all := []fetchedURL{{"talos.factory", c.Talos.Factory}, {"gitops.url", c.GitOps.URL}}
	if oci := c.GitOps.OCI; oci != nil {
		all = append(all, fetchedURL{"gitops.oci.url", oci.URL})
	}
	if bucket := c.GitOps.Bucket; bucket != nil {
		all = append(all, fetchedURL{"gitops.bucket.endpoint", "https://" + bucket.Endpoint})
	}
	return all
}

// server is a server that is needed before the cluster exists, by its name or address.
type server struct{ path, host string }

// servers returns the servers that the machines, Flux or this program need before the cluster exists.
func (c *Cluster) servers() []server {
	var all []server
	address := func(path string, one, gateway netip.Addr) {
		if one != gateway {
			all = append(all, server{path, one.String()})
		}
	}
	for i, one := range c.Network.Nameservers {
		address(ItemPath("network.nameservers", i), one, c.Network.Gateway)
	}
	if six := c.Network.IPv6; six != nil {
		for i, one := range six.Nameservers {
			address(ItemPath(ipv6Path+".nameservers", i), one, six.Gateway)
		}
	}
	for i, one := range c.Network.NTP {
		all = append(all, server{ItemPath("network.ntp", i), one})
	}
	atURL := func(path, text string) {
		if host := urlOf(text).Hostname(); host != "" {
			all = append(all, server{path, host})
		}
	}
	atURL("proxmox.endpoint", c.Proxmox.Endpoint)
	for _, one := range c.fetched() {
		atURL(one.path, one.url)
	}
	if !c.GitOps.ByArgoCD() {
		atURL("gitops.flux.registry", "oci://"+c.GitOps.Flux.Registry)
	}
	for _, release := range c.Releases() {
		atURL(release.source())
	}
	for _, set := range c.CRDs.Sets() {
		atURL("crds."+set.Key+".url", set.Source.URL)
	}
	for _, registry := range sorted(c.Talos.RegistryMirrors) {
		for i, mirror := range c.Talos.RegistryMirrors[registry] {
			atURL(ItemPath(EntryPath("talos.registryMirrors", registry), i), mirror)
		}
	}
	return all
}

// notEachMachine checks a server that machines or pods use: localhost is a different host on each of them.
func (c clusterCheck) notEachMachine(path, host string) {
	address, err := netip.ParseAddr(host)
	if err == nil && address.IsLoopback() || strings.EqualFold(host, "localhost") {
		c.Found(path, "write a host that the machines reach", "%s is a different host on each machine", host)
	}
}

// chartRepository checks that the URL of a chart repository is not the URL of a file in it.
func (c clusterCheck) chartRepository(path, text string) {
	if folder, file := pathpkg.Split(text); file == "index.yaml" || strings.HasSuffix(file, ".tgz") {
		c.Found(path, "write "+strings.TrimSuffix(folder, "/"), "%s is a file of the chart repository", text)
	}
}

// routers checks that no router is an address of the cluster itself. The pool is checked with the pool.
func (c clusterCheck) routers() {
	bgp := c.Network.LoadBalancers.BGP
	if bgp == nil {
		return
	}
	for i, peer := range bgp.Peers {
		path := ItemPath("network.loadBalancers.bgp.peers", i) + ".address"
		what := c.OwnAddress(peer.Address)
		for _, f := range c.Network.families() {
			if f.noHost(peer.Address) != "" {
				what = f.noHost(peer.Address)
			}
		}
		if peer.Address.IsValid() && what != "" && !c.Network.ipv4().pools(peer.Address) {
			c.Found(path, "write the address of a router", "%s is %s", peer.Address, what)
		}
	}
}

// outsideHost checks a host: one that is written as an address, and the name of a Service.
func (c clusterCheck) outsideHost(path, host string) {
	if name := strings.ToLower(host); strings.HasSuffix(name, ".svc") || strings.HasSuffix(name, "."+DNSDomain) {
		c.Found(path, "write a server outside the cluster", "%s is a Service of the cluster, which exists only once the cluster does", host)
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return
	}
	for _, f := range c.Network.families() {
		if what := f.noHost(address); what != "" {
			c.Found(path, "write a server's address", "%s is %s", address, what)
			return
		}
	}
	if what := c.OwnAddress(address); what != "" {
		c.Found(path, "write a server outside the cluster", "%s is %s, which exists only once the cluster does", address, what)
	}
}

// OwnAddress describes the part of the cluster that has the address, such as "network.vip"; "" if none has it.
func (c *Cluster) OwnAddress(address netip.Addr) string {
	if address == c.Network.VIP {
		return "network.vip"
	}
	if inside := c.insideAddress(address); inside != "" {
		return inside
	}
	for _, f := range c.Network.families() {
		if f.pools(address) {
			return "in the pool " + f.path + ".loadBalancers"
		}
	}
	for i, pool := range c.NodePools {
		for j, node := range pool.Nodes {
			if address == node.Address || address == node.Address6 {
				return fmt.Sprintf("the address of nodePools[%d].nodes[%d]", i, j)
			}
		}
	}
	return ""
}

// insideAddress is OwnAddress for the networks of pods and Services.
func (c *Cluster) insideAddress(address netip.Addr) string {
	for _, f := range c.Network.families() {
		for _, one := range f.networks()[1:] { // the machines' network has other hosts, too
			if one.network.IsValid() && one.network.Contains(address) {
				return fmt.Sprintf("in %s %s", one.path, one.network)
			}
		}
	}
	return ""
}
