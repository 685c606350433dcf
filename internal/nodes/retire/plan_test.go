package retire

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakes/talosapitest"
)

// nodes returns nodes by their names. Each has an address of its own, and a machine of the first generation.
func nodes(names ...string) []turn.Node {
	var list []turn.Node
	for _, name := range names {
		node := turn.Node{Name: name, Role: cluster.Worker, Address: talosapitest.AddressOf(name), Generation: 1}
		if strings.HasPrefix(name, "cp-") {
			node.Role = cluster.ControlPlane
		}
		list = append(list, node)
	}
	return list
}

// of returns a spec that declares nodes.
func of(declared []turn.Node) *Spec {
	spec := &Spec{Declared: turn.Declared{Target: turn.Target{Nodes: declared}}}
	cluster.SetDefaults(&spec.TurnLimits)
	return spec
}

// again returns nodes with another generation of those with the names.
func again(all []turn.Node, generation int, names ...string) []turn.Node {
	all = slices.Clone(all)
	for i := range all {
		if slices.Contains(names, all[i].Name) {
			all[i].Generation = generation
		}
	}
	return all
}

func TestPlan_NodesThatAreNotDeclaredAnyMoreLeaveControlPlanesFirst(t *testing.T) {
	former := NewRecord(nodes("worker-2", "worker-1", "cp-1", "cp-2", "cp-3", "worker-3"))
	plan, err := NewPlan(former, of(nodes("cp-1", "cp-2", "cp-4", "worker-3")), false)
	require.NoError(t, err)
	assert.Equal(t, nodes("cp-3", "worker-1", "worker-2"), plan.Leave)
	assert.Equal(t, nodes("cp-1", "cp-2", "worker-3"), plan.Stay, "cp-4 has still to join")
	assert.Equal(t, "cp-3, worker-1, worker-2 leave the cluster, control planes first, before anything else is changed, "+
		"and then their machines are deleted", plan.String())
}

// A machine of another generation leaves as one that is not declared any more.
func TestPlan_AMachineOfAGreaterGenerationLeavesAndJoinsAgain(t *testing.T) {
	before := nodes("cp-1", "cp-2", "cp-3", "worker-1", "worker-2", "worker-3")
	spec := of(again(nodes("cp-1", "cp-2", "cp-3", "worker-1", "worker-2"), 2, "cp-2", "worker-1", "worker-2"))
	spec.MaxUnavailable = "2"
	plan, err := NewPlan(NewRecord(before), spec, false)
	require.NoError(t, err)
	assert.Equal(t, nodes("cp-2", "worker-1", "worker-2", "worker-3"), plan.Leave)
	assert.Equal(t, nodes("cp-1", "cp-3"), plan.Stay)
	assert.Equal(t, []string{"cp-2", "worker-1", "worker-2"}, plan.Replaced)
	assert.Equal(t, "cp-2, worker-1, worker-2, worker-3 leave the cluster, control planes first, before anything else is changed, and then "+
		"their machines are deleted; made anew: cp-2, worker-1, worker-2", plan.String())
}

func TestPlan_AClusterKeepsItsIdentity(t *testing.T) {
	before := of(nodes("cp-1"))
	before.Identity = Identity{Name: "infra", ID: 1, VIP: netip.MustParseAddr("10.25.11.10")}
	for want, change := range map[string]func(*Identity){
		"cluster.name: the cluster has infra, and lab is declared; declare infra":                   func(i *Identity) { i.Name = "lab" },
		"cluster.id: the cluster has 1, and 7 is declared; declare 1":                               func(i *Identity) { i.ID = 7 },
		"network.vip: the cluster has 10.25.11.10, and 10.25.11.9 is declared; declare 10.25.11.10": func(i *Identity) { i.VIP = i.VIP.Prev() },
	} {
		declared := *before
		change(&declared.Identity)
		plan, err := NewPlan(before.Record(), &declared, false)
		require.NoError(t, err, "whether the cluster runs, the plan does not know")
		require.EqualError(t, plan.Moved, want+", or destroy the cluster first, or make another one beside it")
		require.NoError(t, plan.Erased)

		read, err := ReadRecord(before.Record().String())
		require.NoError(t, err)
		require.Equal(t, before.Record(), read)
		read.Identity = Identity{} // as in that of an earlier release
		plan, err = NewPlan(read, &declared, false)
		require.NoError(t, err)
		require.NoError(t, plan.Moved)
	}
}

// The StorageClass of a consumer names its RADOS namespace, and keeps it. A cluster that was no consumer has no such class.
func TestPlan_AConsumerKeepsItsRadosNamespace(t *testing.T) {
	const none = cluster.RookNamespace
	for _, one := range []struct{ former, declared, says string }{
		{none, "apps", "the cluster has none, and apps is declared; remove it"},
		{"apps", none, "the cluster has apps, and none is declared; declare apps"},
		{"apps", "other", "the cluster has apps, and other is declared; declare apps"},
		{"", "apps", ""}, {"apps", "", ""}, {"apps", "apps", ""},
	} {
		before, declared := of(nodes("cp-1")), of(nodes("cp-1"))
		before.Identity, declared.Identity = Identity{Name: "apps", Volumes: one.former}, Identity{Name: "apps", Volumes: one.declared}
		former, err := ReadRecord(before.Record().String())
		require.NoError(t, err)
		plan, err := NewPlan(former, declared, false)
		require.NoError(t, err)
		if one.says == "" {
			require.NoError(t, plan.Moved, one)
			continue
		}
		require.EqualError(t, plan.Moved, "storage.radosNamespace: "+one.says+", or destroy the cluster first, or make another one beside it")
	}
}

// The default names of nodes have the cluster's name.
func TestPlan_NamesAnotherIdentityBeforeWhatFollowsFromIt(t *testing.T) {
	before, declared := of(nodes("cp-infra")), of(nodes("cp-lab"))
	before.Identity, declared.Identity = Identity{Name: "infra"}, Identity{Name: "lab"}
	_, err := NewPlan(before.Record(), declared, false)
	require.ErrorContains(t, err, "cluster.name: the cluster has infra, and lab is declared; declare infra, or destroy the "+
		"cluster first, or make another one beside it\nnodePools: none of the control planes that run is declared any more (cp-infra)")
}

func TestPlan_ANodeThatStaysKeepsItsAddressItsVMAndItsDiskEncryption(t *testing.T) {
	before := nodes("cp-1", "cp-2", "worker-1")
	for i := range before {
		before[i].VM, before[i].DiskEncryption = 100+i, cluster.DiskEncryptionNone
		before[i].Address6 = netip.MustParseAddr(fmt.Sprintf("fd25:11::%d", 11+i))
	}
	changed := func(change func(all []turn.Node)) *Spec {
		all := slices.Clone(before)
		change(all)
		return of(all)
	}
	for want, change := range map[string]func(all []turn.Node){
		"nodePools[].nodes[].vmId: worker-1 is the VM 102, and 202 is declared; declare 102 to keep its machine, or raise its generation": func(
			all []turn.Node) {
			all[2].VM = 202
		},
		"nodePools[].nodes[].address: cp-2 has " + before[1].Address.String() + ", and " + before[0].Address.String() + " is declared": func(
			all []turn.Node) {
			all[0].Address, all[1].Address = all[1].Address, all[0].Address
		},
		"nodePools[].nodes[].address6: worker-1 has fd25:11::13, and fd25:11::21 is declared; declare fd25:11::13 to keep its machine": func(
			all []turn.Node) {
			all[2].Address6 = netip.MustParseAddr("fd25:11::21")
		},
		"nodePools[].nodes[].diskEncryption: the disks of cp-1 were made with none, and tpm is declared, with which Talos would not boot from " +
			"them any more; declare none to keep its machine, or raise its generation": func(all []turn.Node) {
			all[0].DiskEncryption = cluster.DiskEncryptionTPM
		},
	} {
		plan, err := NewPlan(NewRecord(before), changed(change), false)
		require.NoError(t, err, "whether the cluster runs, the plan does not know")
		require.ErrorContains(t, plan.Moved, want)
	}
	plan, err := NewPlan(NewRecord(before), changed(func(all []turn.Node) {
		all[2].VM, all[2].Address, all[2].Generation = 202, talosapitest.AddressOf("worker-9"), 2
	}), false)
	require.NoError(t, err)
	assert.Equal(t, before[2:], plan.Leave, "it leaves as what it was")
	require.NoError(t, plan.Moved)

	former := NewRecord(before)
	for name, machine := range former.Nodes { // as those of earlier releases
		machine.VM, machine.DiskEncryption, machine.Address6 = 0, "", netip.Addr{}
		former.Nodes[name] = machine
	}
	plan, err = NewPlan(former, of(before), false)
	require.NoError(t, err)
	require.NoError(t, plan.Moved)
	former.Nodes["worker-1"] = Machine{Node: turn.Node{Role: cluster.Worker, Address: talosapitest.AddressOf("worker-9")}, Lost: true}
	plan, err = NewPlan(former, of(before), false)
	require.NoError(t, err)
	require.NoError(t, plan.Moved, "its machine has gone with the lost cluster")
	gone := Machine{Node: turn.Node{Role: cluster.Worker, Address: talosapitest.AddressOf("worker-9"), VM: before[2].VM}, Lost: true}
	former.Nodes["worker-9"] = gone
	_, err = NewPlan(former, of(before), false)
	require.NoError(t, err, "its VM has gone with the lost cluster")
}

// Each machine gets its network card in its node's turn: until then, another one that has the MAC address already would be a second one.
func TestPlan_AMachineDoesNotGetTheMACAddressOfOneThatStays(t *testing.T) {
	before := nodes("cp-1", "cp-2", "worker-1")
	for i := range before {
		before[i].MAC = cluster.MAC(fmt.Sprintf("BC:24:11:00:00:%02d", i+1))
	}
	moved := func(declared []turn.Node, change func(all []turn.Node)) error {
		declared = slices.Clone(declared)
		change(declared)
		plan, err := NewPlan(NewRecord(before), of(declared), false)
		require.NoError(t, err, "whether the cluster runs, the plan does not know")
		require.NoError(t, plan.Erased, "no disk is lost with it")
		return plan.Moved
	}
	const of2 = "nodePools[].nodes[].mac: cp-1 is declared with BC:24:11:00:00:02, which the machine of cp-2 has until its turn: with one " +
		"MAC address, nobody reaches either; declare another one for cp-1, and this one after a run that has succeeded with the other one of cp-2"
	swap := func(all []turn.Node) { all[0].MAC, all[1].MAC = all[1].MAC, all[0].MAC }
	require.EqualError(t, moved(before, swap), of2+"\n"+strings.NewReplacer("cp-1", "cp-2", "cp-2", "cp-1", "00:02", "00:01").Replace(of2))
	require.EqualError(t, moved(before, func(all []turn.Node) { all[0].MAC, all[1].MAC = all[1].MAC, "BC:24:11:00:00:99" }), of2)
	worker := turn.Node{Name: "worker-9", Role: cluster.Worker, Address: talosapitest.AddressOf("worker-9"), MAC: before[2].MAC}
	require.ErrorContains(t, moved(append(before, worker), func(all []turn.Node) { all[2].MAC = "BC:24:11:00:00:99" }),
		"worker-9 is declared with BC:24:11:00:00:03, which the machine of worker-1 has until its turn")

	require.NoError(t, moved(before, func(all []turn.Node) { all[0].MAC = "BC:24:11:00:00:99" }))
	require.NoError(t, moved(append(before[:2:2], worker), func([]turn.Node) {}), "the machine of worker-1 is off before")
	require.NoError(t, moved(again(before, 2, "worker-1"), func(all []turn.Node) {
		all[0].MAC, all[2].MAC = before[2].MAC, "BC:24:11:00:00:99"
	}), "the former machine of worker-1 is off before")
}

// The records of earlier releases have no generation.
func TestPlan_AnUnknownGenerationIsTheFirst(t *testing.T) {
	before := nodes("cp-1", "worker-1")
	plan, err := NewPlan(NewRecord(again(before, 0, "cp-1", "worker-1")), of(before), false)
	require.NoError(t, err)
	assert.Empty(t, plan.Leave)
}

func TestPlan_IsEmptyWithoutANodeThatLeft(t *testing.T) {
	for name, former := range map[string]Record{
		"nothing is known":   {},
		"all are declared":   NewRecord(nodes("cp-1", "worker-1")),
		"one has been added": NewRecord(nodes("cp-1")),
	} {
		plan, err := NewPlan(former, of(nodes("cp-1", "worker-1")), false)
		require.NoError(t, err, name)
		assert.Empty(t, plan.Leave, name)
		assert.Empty(t, plan.String(), name)
	}
}

func TestPlan_RefusesWhatTheDeclarationAloneForbids(t *testing.T) {
	for want, test := range map[string]struct{ former, declared []turn.Node }{
		"nodePools: cp-4, cp-5 are control planes, and one run removes or replaces one of them at most; declare the others as before, " +
			"and go on with them one after the other, each in a run of its own": {
			nodes("cp-1", "cp-2", "cp-3", "cp-4", "cp-5"), nodes("cp-1", "cp-2", "cp-3")},
		"nodePools: none of the control planes that run is declared any more (cp-1), and the state of the cluster would be lost; keep one " +
			"until others have joined": {nodes("cp-1", "worker-1"), nodes("cp-2", "worker-1")},
		"nodePools: worker-9 has the address 10.19.2.159 of worker-1, which is not declared any more; remove that one first, and " +
			"declare the new one in the next run": {nodes("cp-1", "worker-1"), append(nodes("cp-1"), turn.Node{
			Name: "worker-9", Role: cluster.Worker, Address: talosapitest.AddressOf("worker-1"), Generation: 1})},
		"nodePools: worker-9 has the address fd25:11::21 of worker-1, which is not declared any more; remove that one first, and declare the " +
			"new one in the next run": {append(nodes("cp-1"), turn.Node{
			Name: "worker-1", Role: cluster.Worker, Address6: netip.MustParseAddr("fd25:11::21")}), append(nodes("cp-1"), turn.Node{
			Name: "worker-9", Role: cluster.Worker, Address: talosapitest.AddressOf("worker-9"), Address6: netip.MustParseAddr("fd25:11::21")})},
		"nodePools: worker-9 has the VM id 121 of worker-1, which is not declared any more; remove that one first, and declare the new one in " +
			"the next run": {append(nodes("cp-1"), turn.Node{Name: "worker-1", Role: cluster.Worker, VM: 121}), append(nodes("cp-1"), turn.Node{
			Name: "worker-9", Role: cluster.Worker, Address: talosapitest.AddressOf("worker-9"), VM: 121})},
		"nodePools: cp-2 was a controlplane and is declared as a worker now; Talos does not change the role of a machine: remove the node, " +
			"and then add one with another name": {nodes("cp-1", "cp-2"), append(nodes("cp-1"), turn.Node{
			Name: "cp-2", Role: cluster.Worker, Address: talosapitest.AddressOf("cp-2"), Generation: 1})},
		"nodePools: cp-1, cp-3 are control planes, and one run removes or replaces one of them at most; declare the others as before, and go " +
			"on with them one after the other, each in a run of its own": {nodes("cp-1", "cp-2", "cp-3"), again(nodes("cp-1", "cp-2"), 2, "cp-1")},
		"nodePools[].nodes[].generation: cp-1 would leave no control plane, and the state of the cluster would be lost; add others first, and " +
			"let them join, or see the restore of a lost cluster in docs/recovery.md": {
			nodes("cp-1", "worker-1"), again(nodes("cp-1", "worker-1"), 2, "cp-1")},
		"nodePools[].nodes[].generation: the workers worker-1, worker-2 are to be replaced, and one run replaces 1 at most " +
			"(lifecycle.maxUnavailable); declare the others' generation in the next run": {
			nodes("cp-1", "worker-1", "worker-2"), again(nodes("cp-1", "worker-1", "worker-2"), 2, "worker-1", "worker-2")},
		"nodePools[].nodes[].generation: the machine of worker-1 is of generation 3, and 2 is declared; declare 3 to keep it, or 4 to " +
			"replace it": {again(nodes("cp-1", "worker-1"), 3, "worker-1"), again(nodes("cp-1", "worker-1"), 2, "worker-1")},
		"nodePools[].nodes[].generation: no up has remembered a generation of worker-1 yet; remove the key, run up, and then declare 2": {
			again(nodes("cp-1", "worker-1"), 0, "cp-1", "worker-1"), again(nodes("cp-1", "worker-1"), 2, "worker-1")},
	} {
		_, err := NewPlan(NewRecord(test.former), of(test.declared), false)
		require.EqualError(t, err, want)
	}
}

func TestPlan_ANodeThatIsLeftOutStaysAndIsNotAsked(t *testing.T) {
	before := nodes("cp-1", "worker-1", "worker-2")
	spec := of(nodes("cp-1", "worker-1"))
	spec.Skip = []cluster.SkippedNode{{Name: "worker-1", Reason: "waits for a disk"}}
	plan, err := NewPlan(NewRecord(before), spec, false)
	require.NoError(t, err)
	assert.Equal(t, nodes("worker-2"), plan.Leave)
	assert.Equal(t, nodes("cp-1"), plan.Stay)

	spec.Nodes = again(spec.Nodes, 2, "worker-1")
	_, err = NewPlan(NewRecord(before), spec, false)
	require.EqualError(t, err, "lifecycle.skip: names worker-1, whose generation replaces its machine; remove it from lifecycle.skip to "+
		"replace it, or declare generation 1 to leave it out")
}

func TestRecord_IsReadFromTheOutputOfEveryRun(t *testing.T) {
	record := NewRecord(nodes("cp-1", "worker-1"))
	var report strings.Builder
	require.NoError(t, probe.Write(&report, Report{
		Head: probe.Head{Kind: "retire", Cluster: "infra"}, Removed: []string{"worker-2"}, Record: record,
	}))
	for name, stdout := range map[string]string{"the first run": record.String() + "\n", "a later run": report.String()} {
		read, err := ReadRecord(stdout)
		require.NoError(t, err, name)
		assert.Equal(t, record, read, name)
	}
	read, err := ReadRecord("")
	require.NoError(t, err)
	assert.Empty(t, read.Nodes)
	for _, other := range []string{"x", "{}", `{"kind":"upgrade"}`} {
		_, err := ReadRecord(other)
		require.ErrorContains(t, err, "does not end with the record of the nodes")
	}
}

func TestSpec_ReportsAllProblemsTogether(t *testing.T) {
	err := (&Spec{Declared: turn.Declared{Target: turn.Target{Nodes: []turn.Node{{Name: "a"}}}}}).Validate()
	for _, want := range []string{"cluster: ", "talosconfig: ", "nodes: has no control plane", "nodes[0].address: ", "nodes[0].role: ",
		"maxUnavailable: is \"\"; give a number of workers, or a share such as 10%",
		"drainTimeout: is 0s; give a positive duration", "returnTimeout: is 0s; "} {
		require.ErrorContains(t, err, want)
	}
}
