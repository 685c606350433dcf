package probe

import (
	"testing"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

// The probe may be run against any cluster at any time. This test lists all requests it sends; each only reads.
func TestGate_OnlyReads(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// Something of each kind is broken, so that the evidence is looked up, too.
	fakecluster.PutAgent(t, r.kube, members[1], false)
	r.talos.Change("10.25.11.21", func(n *fakecluster.TalosNode) {
		n.Services["ext-lldpd"] = &machineapi.ServiceInfo{Id: "ext-lldpd", State: "Waiting"}
	})
	code, _, _ := r.look(t)
	assert.Equal(t, exitUnhealthy, code)

	allowed := map[string]bool{
		"GET readyz": true, "GET " + fakecluster.Nodes: true, "GET " + fakecluster.Pods: true, "GET " + fakecluster.Events: true,
		"GET " + fakecluster.ConfigMaps: true, "GET " + fakecluster.DaemonSets: true, "GET " + fakecluster.Deployments: true,
		"GET " + fakecluster.ServiceCIDRs: true, "GET " + fakecluster.CiliumNodes: true, "GET log": true,
		"GET exec cilium-health status -o json": true, "GET exec cilium-dbg status -o json": true,
	}
	requests := r.kube.Requests()
	for request := range requests {
		assert.True(t, allowed[request], "%s is not known to only read", request)
	}
	assert.Positive(t, requests["GET log"], "no evidence was looked up")
	assert.Positive(t, requests["GET "+fakecluster.Events], "no evidence was looked up")

	readers := map[string]bool{
		"/machine.MachineService/ServiceList": true, "/machine.MachineService/EtcdMemberList": true, "/machine.MachineService/EtcdStatus": true,
		"/machine.MachineService/EtcdAlarmList": true, "/machine.MachineService/Logs": true, "/cosi.resource.State/Watch": true,
		"/cosi.resource.State/Get": true, "/cosi.resource.State/List": true,
	}
	calls := r.talos.Calls()
	for method := range calls {
		assert.True(t, readers[method], "%s is not known to only read", method)
	}
	assert.Positive(t, calls["/machine.MachineService/Logs"])
}
