package gate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/health"
)

// Node is a Kubernetes Node.
type Node struct {
	Name      string
	Ready     string    // status of the Ready condition: True, False, Unknown, "" without one
	Reason    string    // of the Ready condition
	Message   string    // of the Ready condition
	Lost      int       // number of transitions to not Ready that the watch saw, and one in the minute before the first look
	Reported  time.Time // when its kubelet last reported
	Labels    map[string]string
	Taints    []string // KEY=VALUE:EFFECT or KEY:EFFECT
	Cordoned  bool
	Addresses []netip.Addr   // InternalIPs, in their order
	PodCIDRs  []netip.Prefix // the ranges that Kubernetes gave it for its pods
	Kubelet   string         // version of its kubelet, e.g. v1.35.8
}

// An undeclared node is a remark and not judged: a node that is about to be added or removed makes the declared nodes no less healthy. So
// is a cordoned one: a person may have done that, or a killed run, of which no later run knows once its change is taken back.
var nodeRegistered = check{
	Name: "every declared node is registered under its name",
	Looks: "there is a Node object of that name, and the kubelet reports to it; nodes that are not declared and nodes that are cordoned are " +
		"listed, and the gate opens all the same; of those that are not declared and have stopped reporting, no pods are awaited",
	ByHand: "talosctl -n ADDRESS get hostnamestatus,nodename",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		if results := unread(seen, "", "nodes", seen.Nodes); results != nil {
			return results
		}
		renamed := map[string]bool{}
		var results []health.Result
		for _, want := range spec.Nodes {
			node, registered := seen.node(want.Name)
			other := seen.misnamed(want)
			switch {
			case other != "":
				renamed[other] = true
				results = append(results, registeredAs(want, other))
			case node.Cordoned:
				remark := health.Skip(want.Name, "is cordoned, by a person or by a run of up that was ended, and takes no new pods")
				results = append(results, remark.WithCommand("kubectl uncordon "+want.Name))
			case registered:
				results = append(results, health.Pass(want.Name))
			default:
				results = append(results, notRegistered(want, seen))
			}
		}
		for _, node := range seen.Nodes.Items {
			if !spec.knows(node.Name) && !renamed[node.Name] {
				results = append(results, undeclared(node))
			}
		}
		return results
	},
}

func undeclared(node Node) health.Result {
	if node.silent() {
		return health.Skip(node.Name, "is registered and not declared, and has stopped reporting, so neither it nor its pods are judged; "+
			"if its machine is gone, remove it: kubectl delete node "+node.Name).WithCommand("kubectl describe node " + node.Name)
	}
	return health.Skip(node.Name, "is registered and not declared, so it is not judged; declare it, or remove it from the cluster").
		WithCommand("kubectl get node -o wide " + node.Name)
}

// silent reports whether the kubelet has stopped reporting: nothing changes the node's pods then.
func (n Node) silent() bool { return n.Ready == "Unknown" }

// leftOut returns the nodes whose pods are not awaited: those of lifecycle.skip, and those that nothing declares and that are silent, such
// as the Node object of a machine that was removed by hand. An undeclared node whose kubelet works takes part in rollouts like any other.
func (seen *Cluster) leftOut(spec *Spec) func(node string) bool {
	return func(name string) bool {
		node, registered := seen.node(name)
		return spec.Skip.Has(name) || registered && node.silent() && !spec.knows(name)
	}
}

func registeredAs(want Machine, other string) health.Result {
	return health.Fail(want.Name,
		fmt.Sprintf("node %s is registered as %s instead of %s; set its name, then remove the other: kubectl delete node %s",
			want.Address, other, want.Name, other)).
		ForGood().WithCommand("talosctl -n ADDRESS get hostnamestatus,nodename; kubectl get node -o wide " + other)
}

func notRegistered(want Machine, seen *Cluster) health.Result {
	if down := seen.kubeletDown(want); down != "" {
		return health.Block(want.Name, down)
	}
	if seen.Talos[want.Name].Err != nil {
		return health.Block(want.Name, "the Talos API of "+want.Name+" does not answer")
	}
	return health.Fail(want.Name, fmt.Sprintf("is not registered; its kubelet at %s has not joined", want.Address)).
		WithCommand("talosctl -n ADDRESS logs kubelet").Asks(want.log("kubelet"))
}

// node finds a Node object by name.
func (seen *Cluster) node(name string) (Node, bool) {
	return seen.Nodes.Find(func(n Node) bool { return n.Name == name })
}

// misnamed returns the other name under which a machine is registered; "" if there is none. Of two Node objects with its address, the one
// that its kubelet reports to counts: the other was left behind. Nor does one count that no kubelet reports to: the address may have been
// another machine's.
func (seen *Cluster) misnamed(want Machine) string {
	right, _ := seen.node(want.Name)
	other, _ := seen.Nodes.Find(func(n Node) bool {
		return n.Name != want.Name && n.hasAddress(want) && !n.silent() &&
			(right.Name == "" || n.Reported.After(right.Reported))
	})
	return other.Name
}

// taints returns the node's taints as a line of evidence; none without taints.
func (n Node) taints() []string {
	if len(n.Taints) == 0 {
		return nil
	}
	return []string{"taints: " + strings.Join(n.Taints, ", ")}
}

func (n Node) hasAddress(want Machine) bool {
	return slices.Contains(n.Addresses, want.Address) || slices.Contains(n.Addresses, want.Address6)
}
