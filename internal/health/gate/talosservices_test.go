package gate

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/health"
)

var running = talosapi.Service{State: "Running", Known: true, Healthy: true}

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	for _, node := range spec.Nodes {
		services := seen.Talos[node.Name].Services
		services["apid"], services["machined"], services["kubelet"] = running, running, running
		services["ext-qemu-guest-agent"] = talosapi.Service{State: "Running"}
		if node.Role == cluster.ControlPlane {
			services["etcd"], services["trustd"] = running, running
		}
	}
})

var _ = fault("kubelet-down-on-a-worker", func(c *Cluster) {
	c.Talos["infra-worker-1"].Services["kubelet"] = talosapi.Service{State: "Failed", Message: "Failed to start: exit status 255"}
	c.Nodes.Items[3].Ready, c.Nodes.Items[3].Reason = "Unknown", "NodeStatusUnknown"
	agentOf(c, "infra-worker-1").Ready = false
})

var _ = fault("kubelet-restarts-for-ever", func(c *Cluster) {
	c.Talos["infra-worker-2"].Services["kubelet"] = talosapi.Service{State: "Waiting",
		Message: `Error running Containerd(kubelet), going to restart forever: task "kubelet" failed: exit code 1 (last log "")`}
	c.Nodes.Items, c.Agents.Items = c.Nodes.Items[:4], c.Agents.Items[:4]
})

var _ = fault("kubelet-down-a-moment-ago", func(c *Cluster) {
	c.Talos["infra-worker-1"].Services["kubelet"] = talosapi.Service{State: "Failed"}
	c.CiliumHealth["infra-worker-1"] = CiliumHealth{Asked: true, Err: "dial tcp 10.25.11.21:10250: connection refused"}
})

var _ = fault("kubelet-down-before-it-registered", func(c *Cluster) {
	c.Talos["infra-worker-2"].Services["kubelet"] = talosapi.Service{State: "Preparing", Message: "Creating service runner"}
	c.Nodes.Items, c.Agents.Items = c.Nodes.Items[:4], c.Agents.Items[:4]
})

var _ = fault("kubelet-unhealthy", func(c *Cluster) {
	c.Talos["infra-worker-1"].Services["kubelet"] = talosapi.Service{State: "Running", Known: true,
		HealthError: "Get \"http://127.0.0.1:10248/healthz\": connection refused"}
})

var _ = fault("extension-waits", func(c *Cluster) {
	c.Talos["infra-worker-1"].Services["ext-lldpd"] = talosapi.Service{State: "Waiting", Message: "Waiting for extension service config"}
})

var _ = fault("service-health-unknown", func(c *Cluster) { c.Talos["infra-cp-2"].Services["apid"] = talosapi.Service{State: "Running"} })

var _ = fault("etcd-service-missing", func(c *Cluster) {
	delete(c.Talos["infra-cp-2"].Services, "etcd")
	onTalos(c, func(n *TalosNode) {
		n.Etcd = Etcd{Asked: true, Err: &health.Broken{Reason: "Unavailable: connection refused"}}
	}, "infra-cp-2")
})

var _ = fault("etcd-down-everywhere", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) {
		n.Services["etcd"] = talosapi.Service{State: "Preparing"}
		n.Etcd = Etcd{Asked: true, Err: &health.Broken{Reason: "Unavailable: connection refused"}}
	}, controlPlaneNames...)
	c.API = APIServer{Asked: true, Err: &health.Broken{Reason: "connection refused"}}
})

func TestGate_AnExtensionMayHaveFinishedAndNeedsNoHealthCheck(t *testing.T) {
	for state, holds := range map[string]bool{"Running": true, "Finished": true, "Failed": false, "Waiting": false} {
		seen := healthy(declared())
		seen.Talos["infra-worker-1"].Services["ext-zpool-importer"] = talosapi.Service{State: state}
		assert.Equal(t, holds, health.Hold(Evaluate(declared(), seen)), state)
		seen = healthy(declared())
		seen.Talos["infra-worker-1"].Services["kubelet"] = talosapi.Service{State: state}
		assert.False(t, health.Hold(Evaluate(declared(), seen)), "a kubelet of unknown health is %s", state)
	}
}

func TestGate_ARequiredServiceMustExist(t *testing.T) {
	spec := declared()
	spec.Services = []string{"ext-qemu-guest-agent"}
	seen := healthy(spec)
	assert.True(t, health.Hold(Evaluate(spec, seen)))
	delete(seen.Talos["infra-worker-2"].Services, "ext-qemu-guest-agent")
	assert.False(t, health.Hold(Evaluate(spec, seen)))
	spec.Services = nil
	assert.True(t, health.Hold(Evaluate(spec, seen)))
}
