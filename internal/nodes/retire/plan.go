package retire

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// Plan is what becomes of the nodes that the last run knew.
type Plan struct {
	Leave []turn.Node // in the order of their removal: control planes first, because they decide whether anything may be done
	Stay  []turn.Node // in the order of the declaration, without those that are left out

	// Replaced are the names of the nodes among Leave that join again, with another machine, in the order of their removal.
	Replaced []string

	// Join are the control planes that the last run did not know, beside others that stay: they become members of etcd.
	Join []turn.Node

	// New are the names of all declared nodes that the last run did not know; nil if it knew none.
	New []string

	// Moved has what a cluster that runs does not take: another identity, nodes that stay and are declared with another address, VM or disk
	// encryption, and nodes with the MAC address of another one that stays; nil without any. Erased has those whose disks are lost with it:
	// another VM or disk encryption.
	Moved, Erased error
}

// NewPlan compares the nodes of the last run with those that the spec declares. Its error has every reason for which nothing may be
// removed. Whether etcd keeps its quorum shows only in the running cluster. Of a cluster that is lost, any nodes may leave.
func NewPlan(former Record, spec *Spec, lost bool) (Plan, error) {
	var plan Plan
	var problems []error
	stays, replaced := map[string]bool{}, map[string]bool{}
	for _, node := range spec.Nodes {
		before, known := former.Nodes[node.Name]
		if !known {
			if len(former.Nodes) > 0 {
				plan.New = append(plan.New, node.Name)
			}
			if node.Role == cluster.ControlPlane {
				plan.Join = append(plan.Join, node)
			}
			continue
		}
		problems = append(problems, before.roleProblem(node), before.generationProblem(node))
		switch newer := before.Generation > 0 && node.Generation > before.Generation; {
		case newer && spec.Skip.Has(node.Name):
			problems = append(problems, fmt.Errorf("lifecycle.skip: names %s, whose generation replaces its machine; remove it from "+
				"lifecycle.skip to replace it, or declare generation %d to leave it out", node.Name, before.Generation))
		case newer:
			replaced[node.Name] = true
			continue
		}
		if stays[node.Name] = true; !spec.Skip.Has(node.Name) {
			plan.Stay = append(plan.Stay, node)
		}
	}
	for _, node := range former.nodes() {
		if stays[node.Name] {
			continue
		}
		if plan.Leave = append(plan.Leave, node); replaced[node.Name] {
			plan.Replaced = append(plan.Replaced, node.Name)
		}
		for _, other := range spec.Nodes {
			problems = append(problems, former.Nodes[node.Name].takenProblem(node.Name, other))
		}
	}
	if len(turn.ControlPlanes(plan.Stay)) == 0 {
		plan.Join = nil
	}
	plan.Moved = former.Identity.problem(spec.Identity)
	for _, node := range spec.Nodes {
		if before, known := former.Nodes[node.Name]; known && stays[node.Name] && !before.Lost {
			address, disks := before.addressesProblem(node), before.disksProblem(node)
			plan.Moved, plan.Erased = errors.Join(plan.Moved, address, disks), errors.Join(plan.Erased, disks)
		}
		for _, other := range former.nodes() {
			if stays[other.Name] {
				plan.Moved = errors.Join(plan.Moved, former.Nodes[other.Name].macProblem(other.Name, node))
			}
		}
	}
	if !lost {
		problems = append(problems, plan.controlPlanesProblem(former), plan.workersProblem(spec))
	}
	err := errors.Join(problems...)
	if err != nil { // it may follow from another identity: the default names of nodes have the cluster's
		err = errors.Join(former.Identity.problem(spec.Identity), err)
	}
	return plan, err
}

// roleProblem returns why a node cannot have its declared role.
func (m Machine) roleProblem(declared turn.Node) error {
	if m.Role == declared.Role {
		return nil
	}
	return fmt.Errorf("nodePools: %s was a %s and is declared as a %s now; Talos does not change the role of a "+
		"machine: remove the node, and then add one with another name", declared.Name, m.Role, declared.Role)
}

// generationProblem returns why a machine cannot have its declared generation. Whether a machine of an unknown generation has to be
// replaced is not known: its VM would not be.
func (m Machine) generationProblem(declared turn.Node) error {
	switch {
	case declared.Generation < m.Generation:
		return fmt.Errorf("nodePools[].nodes[].generation: the machine of %s is of generation %d, and %d is declared; declare %[2]d to keep it, "+
			"or %[4]d to replace it", declared.Name, m.Generation, declared.Generation, m.Generation+1)
	case m.Generation == 0 && declared.Generation > 1:
		return fmt.Errorf("nodePools[].nodes[].generation: no up has remembered a generation of %s yet; remove the key, run up, and then "+
			"declare 2", declared.Name)
	}
	return nil
}

// keep is how a node that stays keeps its machine, which is the %s, or gets another one.
const keep = "declare %s to keep its machine, or raise its generation, too, which drains and replaces it (a pool with firstAddress: list " +
	"its machines in nodes for that)"

// addressesProblem returns why a node that stays cannot have other addresses. Its certificates, its member of etcd and its kubelet have
// them, and by the first one, Talos is reached: a configuration would reach another machine or none. Whether the cluster may get or lose
// IPv6 at all, its range of Services decides.
func (m Machine) addressesProblem(declared turn.Node) error {
	return errors.Join(
		addressProblem("address", declared.Name, m.Address, declared.Address),
		addressProblem("address6", declared.Name, m.Address6, declared.Address6),
	)
}

func addressProblem(key, name string, former, declared netip.Addr) error {
	if !former.IsValid() || !declared.IsValid() || former == declared {
		return nil
	}
	return fmt.Errorf("nodePools[].nodes[].%s: %s has %s, and %s is declared; "+keep, key, name, former, declared, former)
}

// disksProblem returns why a node that stays cannot have another VM or another disk encryption. The VM with its disks would be deleted
// without a drain, together with those of other nodes; and disks that do not match the declared encryption are found only by the next boot,
// which is the last.
func (m Machine) disksProblem(declared turn.Node) error {
	switch {
	case m.VM != 0 && declared.VM != 0 && m.VM != declared.VM:
		return fmt.Errorf("nodePools[].nodes[].vmId: %s is the VM %d, and %d is declared; "+keep,
			declared.Name, m.VM, declared.VM, strconv.Itoa(m.VM))
	case m.DiskEncryption != "" && declared.DiskEncryption != "" && m.DiskEncryption != declared.DiskEncryption:
		return fmt.Errorf("nodePools[].nodes[].diskEncryption: the disks of %s were made with %s, and %s is declared, with which Talos would "+
			"not boot from them any more; "+keep, declared.Name, m.DiskEncryption, declared.DiskEncryption, m.DiskEncryption)
	}
	return nil
}

// macProblem returns why another node cannot have the MAC address of a machine that stays and gets another one: the machine keeps the
// address until its own turn, which may come later.
func (m Machine) macProblem(name string, other turn.Node) error {
	if other.Name == name || m.MAC == "" || m.MAC != other.MAC || m.Lost {
		return nil
	}
	return fmt.Errorf("nodePools[].nodes[].mac: %[1]s is declared with %s, which the machine of %s has until its turn: with one MAC address, "+
		"nobody reaches either; declare another one for %[1]s, and this one after a run that has succeeded with the other one of %[3]s",
		other.Name, m.MAC, name)
}

// takenProblem returns why another node cannot have the address or the VM of a machine that leaves: its VM is deleted only at the end of
// the run, or has gone with a lost cluster.
func (m Machine) takenProblem(name string, other turn.Node) error {
	taken := "address " + m.Address.String()
	switch {
	case other.Name == name:
		return nil
	case other.Address == m.Address:
	case other.Address6.IsValid() && other.Address6 == m.Address6:
		taken = "address " + m.Address6.String()
	case m.VM != 0 && m.VM == other.VM && !m.Lost:
		taken = "VM id " + strconv.Itoa(m.VM)
	default:
		return nil
	}
	return fmt.Errorf("nodePools: %s has the %s of %s, which is not declared any more; remove that one first, and declare the new one in the "+
		"next run", other.Name, taken, name)
}

// workersProblem returns why so many workers are not replaced in one run: all of them are removed before the first new one joins.
func (p Plan) workersProblem(spec *Spec) error {
	most := spec.MaxUnavailable.Of(len(spec.Nodes) - len(spec.ControlPlanes()))
	replaced := xslices.Filter(p.Leave, func(node turn.Node) bool {
		return node.Role == cluster.Worker && slices.Contains(p.Replaced, node.Name)
	})
	if len(replaced) <= most {
		return nil
	}
	return fmt.Errorf("nodePools[].nodes[].generation: the workers %s are to be replaced, and one run replaces %d at most "+
		"(lifecycle.maxUnavailable); declare the others' generation in the next run", turn.Names(replaced), most)
}

// controlPlanesProblem returns why the control planes that leave must not leave. Those that left a lost cluster are gone already.
func (p Plan) controlPlanesProblem(former Record) error {
	leave := slices.DeleteFunc(turn.ControlPlanes(p.Leave), func(node turn.Node) bool { return former.Nodes[node.Name].Lost })
	switch {
	case len(leave) == 0:
		return nil
	case len(turn.ControlPlanes(p.Stay)) == 0 && len(p.Replaced) > 0:
		return fmt.Errorf("nodePools[].nodes[].generation: %s would leave no control plane, and the state of the cluster would be lost; "+
			"add others first, and let them join, or see the restore of a lost cluster in docs/recovery.md", turn.Names(leave))
	case len(turn.ControlPlanes(p.Stay)) == 0:
		return fmt.Errorf("nodePools: none of the control planes that run is declared any more (%s), and the state of the cluster would be "+
			"lost; keep one until others have joined", turn.Names(leave))
	case len(leave) > 1:
		return fmt.Errorf("nodePools: %s are control planes, and one run removes or replaces one of them at most; declare the others as "+
			"before, and go on with them one after the other, each in a run of its own", turn.Names(leave))
	}
	return nil
}

// String says in a sentence which nodes leave; "" for none.
func (p Plan) String() string {
	text := ""
	switch len(p.Leave) {
	case 0:
		return ""
	case 1:
		text = turn.Names(p.Leave) + " leaves the cluster before anything else is changed, and then its machine is deleted"
	default:
		text = turn.Names(p.Leave) +
			" leave the cluster, control planes first, before anything else is changed, and then their machines are deleted"
	}
	if len(p.Replaced) > 0 {
		text += "; made anew: " + strings.Join(p.Replaced, ", ")
	}
	return text
}
