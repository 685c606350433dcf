//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The built Talos that the tests boot, and the versions in it.
const (
	realTalos      = "talos-1.12"
	realVersion    = "v1.12.6"
	realKubernetes = "v1.35.8"
)

// realBoots is how long one machine in QEMU may take, without KVM, from nothing to a registered node.
const realBoots = 40 * time.Minute

// TestRealTalos_OneMachineReachesTheGateOfTheMachines boots the real Talos in QEMU, from the unmodified program's VM and configuration:
// image, maintenance mode, installation, bootstrap, kubeconfig. What follows that gate needs images that the lab does not have.
func TestRealTalos_OneMachineReachesTheGateOfTheMachines(t *testing.T) {
	l := labOfShape(t, "real", func(s settings) {
		s.withoutProviders()
		oneNode(s)
		s.set("gitops", map[string]any{"enabled": false})
		s.set("talos", map[string]any{"version": realVersion, "extensions": []any{}}) // nothing answers at the guest agent's channel
		s.set("kubernetes", map[string]any{"version": realKubernetes})
		s.pool(0)["cores"], s.pool(0)["memory"] = 2, "4GiB"
	}, "--talos", realTalos)
	up := l.up("infra")
	up.reachesIn(realBoots, "the gate of the machines", func() bool { return l.created("infra", "machines-probe") })
	state := l.status()
	require.Len(t, state.VMs, 1)
	require.Equal(t, "on", state.VMs[0].Stage, "QEMU runs, no simulated node")
	up.kill("infra")
}

// created tells whether a resource of that name is in the state of a stack, also while an up runs.
func (l *lab) created(stack, name string) bool {
	l.t.Helper()
	out, err := l.try("pulumi", "--non-interactive", "--color=never", "stack", "export", "--stack", stack)
	if err != nil || !strings.HasPrefix(out, "{") {
		return false // there is no state yet
	}
	for _, urn := range urnsIn(l.t, out) {
		if strings.HasSuffix(urn, "::"+name) {
			return true
		}
	}
	return false
}
