package mesh

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/slipway-platform/slipway/internal/health"
)

// Answer is what a mesh API server answered to this computer. No request is sent to it: the connection ends with the TLS handshake.
type Answer struct {
	Asked   bool
	Err     string        // why there is no connection; "" if there is one
	TLS     string        // why the handshake failed; "" if it did not, or was not tried
	Left    time.Duration // how long the certificate is still valid; 0 if it was not read
	Expires string        // when it expires, e.g. 2029-05-01; "" if it was not read
}

// expiresSoon is how long before its end a certificate is remarked. `up` renews it in its last 90 days.
const expiresSoon = 30 * 24 * time.Hour

// Certificates of clients are not read, because they are in Secrets beside their keys. The connections of agents and kvstoremesh show that
// they are valid.
var certificatesValid = check{
	Name:   "the mesh API servers have certificates of the mesh's CA",
	Looks:  "the TLS handshake with each address that answers to this computer: CA, name, end; no Secret is read",
	ByHand: "openssl s_client -connect ADDRESS:2379 -servername PEER.mesh.cilium.io",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		if spec.CA == "" {
			return []health.Result{health.Skip("", "no CA is given to compare with")}
		}
		results := []health.Result{seen.certificate(spec, spec.Name, spec.Address)}
		for _, peer := range spec.Peers {
			switch is := seen.presence(spec, peer); {
			case is.absent != "":
			case !is.judged:
				results = append(results, health.NotSeen(peer.Name, "whether it exists"))
			default:
				results = append(results, seen.certificate(spec, peer.Name, peer.Address))
			}
		}
		return results
	},
}

func (seen *Cluster) certificate(spec *Spec, name string, address netip.Addr) health.Result {
	answer, result := seen.Answers[name], health.Pass(name)
	switch {
	case !answer.Asked:
		return health.NotSeen(name, "its certificate")
	case answer.Err != "":
		return health.Skip(name, "its certificate was not looked at: "+spec.at(address)+" does not answer here ("+answer.Err+")")
	case answer.TLS != "":
		result = health.Fail(name, answer.TLS).
			WithCommand(fmt.Sprintf("openssl s_client -connect %s:%d -servername %s.%s", address, spec.Port, name, spec.Domain))
	case answer.Left < expiresSoon:
		result.Reason = "that of " + name + " expires on " + answer.Expires + "; run pulumi up in its stack"
	}
	return result
}
