package cluster

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// placed returns the hosts of the pools' machines.
func placed(pools ...NodePool) []string {
	c := &Cluster{NodePools: pools}
	c.place()
	var hosts []string
	for _, pool := range c.NodePools {
		for _, node := range pool.Nodes {
			hosts = append(hosts, node.Host)
		}
	}
	return hosts
}

// machines returns one machine for each host, pinned to it unless it is empty.
func machines(hosts ...string) []Node {
	nodes := make([]Node, len(hosts))
	for i, host := range hosts {
		nodes[i] = Node{Name: fmt.Sprint(i), Host: host}
	}
	return nodes
}

func TestPlace_TakesTheHostsInTurn(t *testing.T) {
	three := []string{"a", "b", "c"}
	assert.Equal(t, []string{"a", "b", "c"}, placed(NodePool{Role: ControlPlane, Hosts: three, Nodes: machines("", "", "")}))
	assert.Equal(t, []string{"a", "b", "c", "a", "b"}, placed(NodePool{Role: Worker, Hosts: three, Nodes: machines("", "", "", "", "")}))
	assert.Equal(t, []string{"c", "b"}, placed(NodePool{Role: Worker, Hosts: []string{"c", "b", "a"}, Nodes: machines("", "")}))
}

func TestPlace_MovesNoOtherMachineWhenOneIsPinnedOrAdded(t *testing.T) {
	three := []string{"a", "b", "c"}
	for _, role := range []Role{ControlPlane, Worker} {
		want := placed(NodePool{Role: role, Hosts: three, Nodes: machines("", "", "")})
		assert.Equal(t, want, placed(NodePool{Role: role, Hosts: three, Nodes: machines("", "b", "")}))
		assert.Equal(t, want, placed(NodePool{Role: role, Hosts: three, Nodes: machines("", "", "", "")})[:3])
	}
	assert.Equal(t, []string{"c", "b", "c"}, placed(NodePool{Role: Worker, Hosts: three, Nodes: machines("c", "", "")}))
}

func TestPlace_GivesControlPlanesDifferentHostsIfPossible(t *testing.T) {
	for _, c := range []struct {
		name  string
		pools []NodePool
		want  []string
	}{
		{"a pinned one has the preferred host", []NodePool{
			{Hosts: []string{"a", "b", "c"}, Nodes: machines("", "", "a")},
		}, []string{"c", "b", "a"}},
		{"a later pool has only one host", []NodePool{
			{Hosts: []string{"a", "b"}, Nodes: machines("")}, {Hosts: []string{"a"}, Nodes: machines("")},
		}, []string{"b", "a"}},
		{"two control planes have to move", []NodePool{
			{Hosts: []string{"a", "b"}, Nodes: machines("")}, {Hosts: []string{"b", "c"}, Nodes: machines("")},
			{Hosts: []string{"a"}, Nodes: machines("")},
		}, []string{"b", "c", "a"}},
		{"two pools begin with the same host", []NodePool{
			{Hosts: []string{"a", "b", "c"}, Nodes: machines("")}, {Hosts: []string{"a", "b", "c"}, Nodes: machines("", "")},
		}, []string{"a", "c", "b"}},
	} {
		for i := range c.pools {
			c.pools[i].Role = ControlPlane
		}
		for range 20 { // the order of a map must not change the result
			assert.Equal(t, c.want, placed(c.pools...), c.name)
		}
	}
}

func TestPlace_SharesHostsIfThereAreTooFew(t *testing.T) {
	got := placed(NodePool{Role: ControlPlane, Hosts: []string{"a", "b"}, Nodes: machines("", "", "")})
	assert.Equal(t, []string{"a", "b", "a"}, got)
	assert.Equal(t, []string{""}, placed(NodePool{Role: Worker, Nodes: machines("")}), "no host is declared")
}

func TestPlace_NeedsMemoryInProportionToTheMachinesAndHosts(t *testing.T) {
	const many = 3000
	hosts := make([]string, many)
	for i := range hosts {
		hosts[i] = fmt.Sprint(i)
	}
	for _, role := range []Role{ControlPlane, Worker} {
		pool := NodePool{Role: role, Hosts: hosts, Nodes: machines(make([]string, many)...)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := placed(pool)
		runtime.ReadMemStats(&after)
		assert.Equal(t, hosts, got, role)
		assert.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(8), "megabytes for %s", role)
	}
}

// emptied returns the hosts of the pools' machines while some hosts are under maintenance, and the cluster.
func emptied(maintenance []string, pools ...NodePool) ([]string, *Cluster) {
	c := &Cluster{NodePools: pools}
	c.Proxmox.Maintenance = maintenance
	c.place()
	var hosts []string
	for _, machine := range c.Machines() {
		hosts = append(hosts, machine.Host)
	}
	return hosts, c
}

func TestMaintenance_MovesTheMachinesOfItsHostsAndNoOther(t *testing.T) {
	three := []string{"a", "b", "c"}
	pools := func(pins ...string) []NodePool {
		return []NodePool{
			{Role: ControlPlane, Hosts: three, Nodes: machines("", "", "")},
			{Role: Worker, Hosts: three, Nodes: machines(append([]string{"", "", "", ""}, pins...)...)},
		}
	}
	home, _ := emptied(nil, pools("b")...)
	assert.Equal(t, []string{"a", "b", "c", "a", "b", "c", "a", "b"}, home)
	away, c := emptied([]string{"b"}, pools("b")...)
	assert.Equal(t, []string{"a", "c", "c", "a", "c", "c", "a", "a"}, away, "a pinned machine leaves, too")
	for i, machine := range c.Machines() {
		assert.Equal(t, home[i], machine.Home())
	}
	grown, _ := emptied([]string{"b"}, pools("b", "", "")...)
	assert.Equal(t, away, grown[:len(away)], "a machine that is added at the end moves no other")
}

func TestMaintenance_KeepsControlPlanesApartIfPossible(t *testing.T) {
	four := []string{"a", "b", "c", "d"}
	pool := NodePool{Role: ControlPlane, Hosts: four, Nodes: machines("", "", "")}
	for range 20 { // the order of a map must not change the result
		hosts, _ := emptied([]string{"b"}, pool)
		assert.Equal(t, []string{"a", "d", "c"}, hosts)
	}
}

func TestMaintenance_IsRefusedWhereItLeavesNoHostAndWarnsOfASharedOne(t *testing.T) {
	worker := NodePool{Name: "storage", Role: Worker, Hosts: []string{"b"}, Nodes: machines("", "")}
	_, c := emptied([]string{"b"}, worker)
	var findings Findings
	clusterCheck{Findings: &findings, Cluster: c}.maintenance()
	assert.EqualError(t, findings.All(), "proxmox.maintenance: leaves no Proxmox node for 0: the pool storage may run on b only; "+
		"leave a Proxmox node of the pool in service, or add one to its hosts")

	_, c = emptied([]string{"b"}, NodePool{Role: ControlPlane, Hosts: []string{"a", "b", "c"}, Nodes: machines("", "", "")})
	findings = Findings{}
	whole := clusterCheck{Findings: &findings, Cluster: c}
	whole.placement()
	assert.NoError(t, findings.Err())
	whole.adviseMaintenance()
	assert.EqualError(t, findings.All(), "proxmox.maintenance: puts 1 and 2 on c, whose failure would take them all; "+
		"remove it as soon as the maintenance is over")
	c.Proxmox.AllowControlPlanesOnOneHost = true
	findings = Findings{}
	whole.adviseMaintenance()
	assert.Zero(t, findings.Len())
}
