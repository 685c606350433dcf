//go:build e2e

package e2e

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRestore_TheMachinesOfALostProxmoxNodeAreMadeAnewOnTheOthers rehearses docs/nodes.md: a server of the Proxmox cluster is gone for
// good, with a control plane and a worker.
func TestRestore_TheMachinesOfALostProxmoxNodeAreMadeAnewOnTheOthers(t *testing.T) {
	t.Parallel()
	const burnt = "pve3"
	lost := []string{"infra-cp-3", "infra-worker-1"}
	l := labOfShape(t, "burnt", func(s settings) {
		s.withoutProviders()
		s.pool(1)["nodes"] = s.pool(1)["nodes"].([]any)[:1]
		s.node(lost[1])["host"] = burnt
		s.set("gitops", map[string]any{"enabled": false})
		s.set("readiness", map[string]any{"timeout": "3m"})
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	before := l.machines()
	for name, vm := range before {
		require.Equal(t, slices.Contains(lost, name), vm.Host == burnt, name)
	}
	l.must("fault", "proxmox-node-gone", burnt)
	l.eventually("the Nodes are not Ready", func() bool {
		return l.field("nodes", `{.items[*].status.conditions[?(@.type=="Ready")].status}`) == "True True Unknown Unknown"
	})
	for i, name := range lost {
		l.generation(i, name, 2)
	}
	l.fails(`received an HTTP 595 response - Reason: No route to host`)

	l.must("fault", "proxmox-node-gone", burnt, "--detail", "forgotten") // steps 1 and 2
	l.eventually("Proxmox VE has forgotten the VMs", func() bool { return len(l.status().VMs) == len(before)-len(lost) })
	l.pulumi("refresh", "--yes", "--skip-preview", "--target", "**-infra-cp-3-vm", "--target", "**-infra-worker-1-vm", "--stack", "infra")
	editStackFile(t, l.stackFile("infra"), func(s settings) {
		s.set("proxmox", map[string]any{"nodes": []any{"pve1", "pve2"}, "allowControlPlanesOnOneHost": true})
		delete(s.node(lost[1]), "host")
	})
	l.fails("infra-cp-3 was placed on pve3, .*; pve3 is no longer in proxmox.nodes: write host: pve1 at .* to move it")
	editStackFile(t, l.stackFile("infra"), func(s settings) {
		for _, name := range lost {
			s.node(name)["host"] = "pve1"
		}
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")

	require.Equal(t, []string{"infra-cp-1", "infra-cp-2", "infra-cp-3"}, l.etcdMembers())
	for name, vm := range l.machines() {
		require.NotEqual(t, burnt, vm.Host, name)
		require.Equal(t, slices.Contains(lost, name), vm.UID != before[name].UID, name)
	}
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	l.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	unprotectAndDestroy(l)
}
