package probe

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

// newRigOf returns a healthy cluster of that many nodes, three of them control planes.
func newRigOf(t *testing.T, nodes int) (*rig, []fakecluster.Member) {
	t.Helper()
	r := &rig{kube: fakecluster.NewKube(t), talos: fakecluster.NewTalos(t)}
	r.spec = gate.Spec{
		Target:      health.Target{Cluster: "infra", Kubeconfig: r.kube.Config, Timeout: probe.Duration(time.Minute)},
		Talosconfig: r.talos.Config,
		Cilium:      &gate.Cilium{Version: "1.18.7", Mode: cluster.CiliumHelm, ClusterName: "infra", ClusterID: 1, Routing: "tunnel"},
		Network: &gate.Network{
			PodCIDRs:     []netip.Prefix{netip.MustParsePrefix(fakecluster.PodCIDR)},
			ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix(fakecluster.ServiceCIDR)},
		},
	}
	var all []fakecluster.Member
	for i := range nodes {
		member := fakecluster.Member{Name: fmt.Sprintf("infra-node-%d", i+1), Address: fmt.Sprintf("10.25.11.%d", i+1), ControlPlane: i < 3}
		node := gate.Machine{Name: member.Name, Role: cluster.Worker, Address: netip.MustParseAddr(member.Address)}
		if member.ControlPlane {
			node.Role = cluster.ControlPlane
		}
		all, r.spec.Nodes = append(all, member), append(r.spec.Nodes, node)
	}
	fakecluster.Healthy(t, r.kube, r.talos, all)
	return r, all
}

// The figures are in the test's log. The limits are for the calls while waiting and for all calls.
func TestGate_SendsFewRequestsAndOpensSoonWithAHundredNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	const waits = 3 * time.Second
	for _, nodes := range []int{5, 100} {
		for name, c := range map[string]struct {
			breakIt, repair func(*rig, []fakecluster.Member)
		}{
			"an agent crashes": {
				func(r *rig, all []fakecluster.Member) {
					fakecluster.PutAgent(t, r.kube, all[nodes-1], false)
					fakecluster.PutNode(t, r.kube, all[nodes-1], "False")
				},
				func(r *rig, all []fakecluster.Member) {
					fakecluster.PutAgent(t, r.kube, all[nodes-1], true)
					fakecluster.PutNode(t, r.kube, all[nodes-1], "True")
				},
			},
			"no agent reaches another": {
				func(r *rig, all []fakecluster.Member) {
					r.kube.OnExec(fakecluster.Agents(all, "Connection timed out"))
				},
				func(r *rig, all []fakecluster.Member) { r.kube.OnExec(fakecluster.Agents(all, "")) },
			},
		} {
			t.Run(fmt.Sprintf("%d nodes, %s", nodes, name), func(t *testing.T) {
				r, all := newRigOf(t, nodes)
				c.breakIt(r, all)
				var repaired time.Time
				var before int
				time.AfterFunc(waits, func() {
					before = calls(r)
					repaired = time.Now()
					c.repair(r, all)
				})
				code, report, progress := r.probe(t)
				assert.Equal(t, exitOpen, code, progress)
				after := time.Since(repaired)
				t.Logf("%d calls in %s of waiting, %d in all (%d counted by the probe); open %s after the truth", before, waits, calls(r),
					report.APICalls, after.Round(time.Millisecond))
				t.Log(breakdown(r))
				// Each node is asked twice for its services, watched, and asked for its agent's status and reachability; at the end once more.
				assert.Less(t, before, 150+6*nodes)
				assert.Less(t, calls(r), 250+9*nodes)
				// The machine is busy with the whole fake cluster, so the limit is high. A condition that flaps by mistake costs ten seconds.
				assert.Less(t, after, 8*time.Second)
				assert.Empty(t, report.Flaps)
			})
		}
	}
}

// calls are all requests that both servers have seen.
func calls(r *rig) int {
	sum := 0
	for _, counts := range []map[string]int{r.kube.Requests(), r.talos.Calls()} {
		for n := range maps.Values(counts) {
			sum += n
		}
	}
	return sum
}

// breakdown lists the requests by kind.
func breakdown(r *rig) string {
	text := ""
	for _, counts := range []map[string]int{r.kube.Requests(), r.talos.Calls()} {
		for _, what := range slices.Sorted(maps.Keys(counts)) {
			text += fmt.Sprintf("\n%6d %s", counts[what], what)
		}
	}
	return text
}
