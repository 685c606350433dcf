//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestResume_AKilledReplacementOfAControlPlaneIsFinishedFirst kills runs that replace a control plane, when the new VM waits for its
// configuration. The other two keep etcd's quorum, so they must not change before the new one has joined.
func TestResume_AKilledReplacementOfAControlPlaneIsFinishedFirst(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "rejoins", controlPlanesAlone)
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.part("another generation", killedGeneration)
	l.part("rebuilt by hand", killedRebuild)
	unprotectAndDestroy(l)
}

// controlPlanesAlone leaves the three control planes of infra, without anything after the network.
func controlPlanesAlone(s settings) {
	s.withoutProviders()
	planes := s.pool(0)["nodes"]
	oneNode(s)
	s.pool(0)["nodes"] = planes
	s.set("gitops", map[string]any{"enabled": false})
}

// killedGeneration declares another generation of a control plane, and a change of all.
func killedGeneration(l *lab) {
	const name = "infra-cp-3"
	l.generation(0, name, 2)
	l.declare("talos", map[string]any{"sysctls": map[string]any{"vm.max_map_count": "262145"}})
	changed := l.killedBeforeItsConfiguration(name)
	require.Empty(l.t, changed, "no other node changes before the replaced one is back")
	require.Equal(l.t, []string{"infra-cp-1", "infra-cp-2"}, l.etcdMembers(), "it was removed from etcd")
	changed = l.finishes(name)
	require.Equal(l.t, name, changed[0], "the replaced node is configured first: %v", changed)
	l.haveLimit("262145")
}

// killedRebuild replaces the VM of the control plane that was bootstrapped first, as docs/nodes.md says. Its member of etcd stays.
func killedRebuild(l *lab) {
	const name = "infra-cp-1"
	vms := slices.DeleteFunc(urns(l.t, l, "infra"), func(urn string) bool { return !strings.HasSuffix(urn, name+"-vm") })
	require.Len(l.t, vms, 1)
	l.unprotect(name + "-vm")
	l.killedBeforeItsConfiguration(name, "--replace", vms[0])
	l.declare("talos", map[string]any{"sysctls": map[string]any{"vm.max_map_count": "262146"}})
	l.finishes(name)
	l.haveLimit("262146")
}

// killedBeforeItsConfiguration kills an up when the new VM of a node is about to get its configuration. It returns the other nodes whose
// configurations or VMs the run has begun to change.
func (l *lab) killedBeforeItsConfiguration(name string, args ...string) (others []string) {
	l.t.Helper()
	run := l.engine(slices.Concat([]string{"up", "--yes", "--skip-preview"}, args)...)
	ended := run.follows(func(m moment) bool {
		node, apply, is := machineOf(m)
		if is && node != name && m.op != "same" {
			others = append(others, node)
		}
		return !apply || node != name || m.ended || !strings.HasPrefix(m.op, "create")
	})
	require.False(l.t, ended, "up ended before %s was to get its configuration\n%s", name, end(run.said()))
	require.True(l.t, run.diesAt(point{victim: everything}))
	l.eventually("the new VM waits for its configuration", func() bool {
		for _, vm := range l.status().VMs {
			if vm.Name == name {
				return vm.Stage == "maintenance"
			}
		}
		return false
	})
	return others
}

// machineOf returns the node whose VM or configuration an operation is on, and whether it is the configuration.
func machineOf(m moment) (node string, apply, is bool) {
	resource, _ := strings.CutPrefix(m.urn[strings.LastIndex(m.urn, ":")+1:], "talos-")
	if node, apply = strings.CutSuffix(resource, "-apply"); apply {
		return node, true, true
	}
	node, is = strings.CutSuffix(resource, "-vm")
	return node, false, is
}

// finishes runs up after a kill. It returns the nodes in the order in which the replaced one has got its configuration, and changes of the
// others have begun.
func (l *lab) finishes(name string) (changed []string) {
	l.t.Helper()
	run := l.engine("up", "--yes", "--skip-preview")
	run.follows(func(m moment) bool {
		node, apply, is := machineOf(m)
		if is && m.op != "same" && m.ended == (node == name) && (apply || node != name) {
			changed = append(changed, node)
		}
		return true
	})
	out, err := run.end(longestRun)
	require.NoError(l.t, err, "%s", end(out))
	l.checkOutput(out, pendingOperations)
	require.Subset(l.t, changed, []string{"infra-cp-1", "infra-cp-2", "infra-cp-3"})
	require.Equal(l.t, []string{"infra-cp-1", "infra-cp-2", "infra-cp-3"}, l.etcdMembers())
	l.pulumiSays(pendingOperations, "refresh", "--clear-pending-creates", "--yes", "--skip-preview", "--stack", "infra")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	return changed
}

// haveLimit checks that all control planes have a limit of the kernel.
func (l *lab) haveLimit(limit string) {
	l.t.Helper()
	for _, name := range []string{"infra-cp-1", "infra-cp-2", "infra-cp-3"} {
		require.Contains(l.t, l.onNode(addresses[name], "get", "machineconfig", "--output=yaml"), `vm.max_map_count: "`+limit+`"`, name)
	}
}
