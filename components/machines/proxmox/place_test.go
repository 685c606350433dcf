package proxmox

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

// stored returns what the state remembers of a cluster.
func stored(c *cluster.Cluster) resource.PropertyValue {
	hosts := resource.PropertyMap{}
	for _, node := range c.Machines() {
		hosts[resource.PropertyKey(node.Name)] = resource.NewProperty(node.Home())
	}
	return resource.NewProperty(hosts)
}

func TestRefuseMoves_NamesThePinOfEveryMachineThatANewProxmoxNodeWouldMove(t *testing.T) {
	unpin := func(c *cluster.Cluster) {
		for i := range c.NodePools[1].Nodes {
			c.NodePools[1].Nodes[i].Host = ""
		}
	}
	grow := func(c *cluster.Cluster) {
		c.Proxmox.Nodes = append([]string{"pve0"}, c.Proxmox.Nodes...)
		c.NodePools[1].Hosts = nil
	}
	before := clusters.Infra(t, unpin)
	after := clusters.Infra(t, unpin, grow)
	err := refuseMoves(after.Machines(), after.Proxmox.Nodes, stored(before))
	assert.EqualError(t, err,
		"nodePools[1].nodes[0]: infra-worker-1 was placed on pve1, and without a host it would be placed on pve0 now; "+
			"write host: pve1 at nodePools[1].nodes[0] to keep it there, or host: pve0 to move it\n"+
			"nodePools[1].nodes[1]: infra-worker-2 was placed on pve2, and without a host it would be placed on pve1 now; "+
			"write host: pve2 at nodePools[1].nodes[1] to keep it there, or host: pve1 to move it")

	pinned := clusters.Infra(t, grow, func(c *cluster.Cluster) {
		c.NodePools[1].Nodes[0].Host = "pve1" // stays
		c.NodePools[1].Nodes[1].Host = "pve3" // moves
	})
	assert.NoError(t, refuseMoves(pinned.Machines(), pinned.Proxmox.Nodes, stored(before)))
	assert.NoError(t, refuseMoves(before.Machines(), before.Proxmox.Nodes, stored(before)))
	assert.NoError(t, refuseMoves(before.Machines(), before.Proxmox.Nodes, resource.NewNullProperty()))
	assert.NoError(t, refuseMoves(before.Machines(), before.Proxmox.Nodes, resource.NewProperty(resource.PropertyMap{})), "new machines")
}

func TestRefuseMoves_KeepsNothingOnAProxmoxNodeThatIsGone(t *testing.T) {
	before := clusters.Infra(t, func(c *cluster.Cluster) { c.NodePools[1].Nodes[0].Host = "pve3" })
	after := clusters.Infra(t, func(c *cluster.Cluster) {
		c.Proxmox.Nodes, c.Proxmox.AllowControlPlanesOnOneHost = []string{"pve1", "pve2"}, true
		for i := range c.NodePools {
			c.NodePools[i].Hosts = nil
			for j := range c.NodePools[i].Nodes {
				c.NodePools[i].Nodes[j].Host = ""
			}
		}
	})
	err := refuseMoves(after.Machines(), after.Proxmox.Nodes, stored(before))
	assert.ErrorContains(t, err, "nodePools[0].nodes[2]: infra-cp-3 was placed on pve3, and without a host it would be placed on pve1 now; "+
		"pve3 is no longer in proxmox.nodes: write host: pve1 at nodePools[0].nodes[2] to move it")
	assert.NotContains(t, err.Error(), "host: pve3")
}

func TestMaintenance_MovesAMachineWithoutAPinAndBringsItBack(t *testing.T) {
	unpin := func(c *cluster.Cluster) {
		for i := range c.NodePools[1].Nodes {
			c.NodePools[1].Nodes[i].Host = ""
		}
	}
	quiet := clusters.Infra(t, unpin)
	busy := clusters.Infra(t, unpin, func(c *cluster.Cluster) { c.Proxmox.Maintenance = []string{"pve1"} })
	assert.NoError(t, refuseMoves(busy.Machines(), busy.Proxmox.Nodes, stored(quiet)), "a machine stays at home")
	assert.NoError(t, refuseMoves(quiet.Machines(), quiet.Proxmox.Nodes, stored(busy)))

	home, moved := worker1(quiet), worker1(busy)
	inputs := func(c *cluster.Cluster, node cluster.Machine) resource.PropertyMap {
		var list []any
		for _, tag := range tags(c, node) {
			list = append(list, tag)
		}
		return resource.NewPropertyMapFromMap(map[string]any{"tags": list})
	}
	assert.NotEqual(t, home.Host, moved.Host)
	assert.True(t, mayMove(moved, inputs(quiet, home)))
	assert.True(t, mayMove(home, inputs(busy, moved)), "the way back")
	assert.False(t, mayMove(home, inputs(quiet, home)), "somebody else has moved it")
	assert.False(t, mayMove(home, nil))
}

// Proxmox VE moves no such disk, after the provider has shut the VM down for it, and migrates no such VM with local disks.
func TestRefuseSnapshot_NamesTheSnapshotThatIsInTheWayOfAMove(t *testing.T) {
	node := worker1(declared(t))
	seen := seenWith(nil)
	seen.Snapshot = "before-upgrade"
	change := func(to resource.PropertyMap) *pulumi.ResourceHookArgs {
		return &pulumi.ResourceHookArgs{OldOutputs: hardware(8192, 0, 64), NewInputs: to}
	}
	const remedy = "VM 1121 has the snapshot before-upgrade, with which Proxmox VE does not move it: " +
		"run qm delsnapshot 1121 before-upgrade on " +
		"Proxmox node pve1, for each snapshot of the VM, then up again"
	stays, elsewhere := hardware(4096, 0, 64), on("fast", hardware(8192, 0, 64))
	require.NoError(t, refuseSnapshot(node, change(stays), false, seen))
	assert.ErrorContains(t, refuseSnapshot(node, change(stays), true, seen), remedy)
	assert.ErrorContains(t, refuseSnapshot(node, change(elsewhere), false, seen), remedy)
	require.NoError(t, refuseSnapshot(node, change(hardware(8192, 0, 64, 9)), false, seen), "a disk more stays where it is made")
	require.NoError(t, refuseSnapshot(node, change(elsewhere), true, seenWith(nil)), "no snapshot")
	seen.Options["scsi0 on"] = "fast"
	require.NoError(t, refuseSnapshot(node, change(elsewhere), false, seen), "an interrupted update has moved it")
}

// worker1 returns the first worker.
func worker1(c *cluster.Cluster) cluster.Machine { return c.WorkerMachines()[0] }

// A refresh after a migration by hand writes the new Proxmox node into the state.
func TestMovedFrom_IsTheNodeInTheState(t *testing.T) {
	node := declared(t).Machines()[0]
	for from, moves := range map[string]bool{node.Host: false, "pve9": true} {
		got, moved := movedFrom(resource.PropertyMap{"nodeName": resource.NewProperty(from)}, node)
		assert.Equal(t, from, got)
		assert.Equal(t, moves, moved)
	}
	_, moved := movedFrom(nil, node)
	assert.False(t, moved)
}
