package chart

import (
	"strings"

	"github.com/slipway-platform/slipway/cluster"
)

// Certificate describes a certificate, and its key.
type Certificate struct {
	Name       string   // short name, such as hubble-server; unique in a cluster
	Path       string   // path of the chart's values cert and key; of a Secret of Slipway's, its path among the documents of inline manifests
	Secret     string   // Secret that Slipway makes of the certificate; "": the chart makes one from its values
	Use        string   // for a server or for a client, not for both: agents, relay and etcd check both sides of a connection
	CommonName string   // etcd uses it as the client's user name
	DNSNames   []string // none means no DNS name
	IPs        []string // none means no IP address
}

// Certificates returns the certificates that the chart takes as values, with the names that the chart itself would give them.
// Hubble's UI needs none: it connects to the relay inside the cluster, where the relay's server uses no TLS.
func (v Values) Certificates() (needed []Certificate) {
	if v.Cilium.Hubble.Enabled {
		server := "*." + v.Identity.Name + ".hubble-grpc.cilium.io"
		needed = append(needed, Certificate{
			Name: "hubble-server", Path: "hubble.tls.server", Use: "server_auth", CommonName: server, DNSNames: []string{server},
		})
	}
	if v.Cilium.Hubble.HasRelay() {
		const relay = "*.hubble-relay.cilium.io"
		needed = append(needed, Certificate{
			Name: "hubble-relay", Path: "hubble.relay.tls.client", Use: "client_auth", CommonName: relay, DNSNames: []string{relay},
		})
	}
	return needed
}

// MeshCertificates returns the certificates that the pods of the mesh mount, each from a Secret of its own; none without a mesh. The chart
// would make some of the Secrets up to Cilium 1.19, and makes none later.
func (v Values) MeshCertificates() []Certificate {
	if !v.Mesh.IsMember() {
		return nil
	}
	const server = "clustermesh-apiserver.cilium.io"
	needed := []Certificate{
		{
			Name: "mesh-server", Use: "server_auth", CommonName: server,
			DNSNames: []string{server, "*." + cluster.MeshDomain, "clustermesh-apiserver." + ReleaseNamespace + ".svc"},
			IPs:      []string{"127.0.0.1", "::1"},
		},
		{Name: "mesh-admin", Use: "client_auth", CommonName: "admin-" + v.Identity.Name},
		{Name: "mesh-remote", Use: "client_auth", CommonName: "remote"},
		// With this certificate, agents and operator read the copy of the peers' state in their own cluster.
		{Name: "mesh-local", Use: "client_auth", CommonName: "local-" + v.Identity.Name},
	}
	for i := range needed {
		needed[i].Path = "slipway." + needed[i].Name
		needed[i].Secret = "clustermesh-apiserver-" + strings.TrimPrefix(needed[i].Name, "mesh-") + "-cert"
	}
	return needed
}

// PathCA is the path of the chart's value for the CA's certificate. The CA's private key is never put into the cluster: its
// owner can impersonate any part of Cilium, and nothing in the cluster needs it.
const PathCA = "tls.ca.cert"

// place sets values at their dotted paths in a tree, and returns the tree.
func place(tree, values map[string]any) map[string]any {
	for path, value := range values {
		cluster.SetValue(tree, value, strings.Split(path, ".")...)
	}
	return tree
}
