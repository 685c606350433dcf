package gate

import (
	"time"

	"github.com/slipway-platform/slipway/internal/health"
)

var _ = healthyPart(func(_ *Spec, seen *Cluster) {
	seen.API = APIServer{Asked: true, Ready: true}
})

var _ = fault("api-server-refuses-connections", func(c *Cluster) {
	c.API = APIServer{Asked: true, Err: &health.Broken{Reason: "dial tcp 10.25.11.10:6443: connect: connection refused"}}
	c.Nodes.Err = c.API.Err
})

var _ = fault("api-server-gone-before-it-is-asked-again", func(c *Cluster) {
	c.Nodes.Err = &health.Broken{Reason: "dial tcp 10.25.11.10:6443: connect: connection refused", Gone: true}
	c.AgentSets.Err = c.Nodes.Err
})

var _ = fault("api-server-without-etcd",
	func(c *Cluster) { c.API = APIServer{Asked: true, Failing: []string{"etcd failed: reason withheld"}} })

var _ = fault("api-server-of-another-time", func(c *Cluster) {
	c.API = APIServer{Asked: true, Err: &health.Broken{Reason: "x509: certificate is not valid yet"}, Ahead: -90 * time.Minute}
})
