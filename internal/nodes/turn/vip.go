package turn

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/slipway-platform/slipway/internal/probe"
)

// AsideTimeout is how long another control plane may take to get the virtual IP. An election in etcd decides, so it takes a moment.
const AsideTimeout = 30 * time.Second

// VIPs is the virtual IP of a cluster as its nodes have it.
type VIPs interface {
	// StepAside makes a control plane leave the virtual IP to others until its next configuration, and returns the address; an invalid one
	// if the node does not have it.
	StepAside(ctx context.Context, node Node) (netip.Addr, error)
	// Holds reports whether a node has an address.
	Holds(ctx context.Context, node Node, address netip.Addr) (bool, error)
}

// StepAside makes a control plane give the virtual IP to another one, so that clients notice nothing of the restart of its API server, or
// of its removal: Talos elects the holder by etcd, and the lease of one whose member is gone lasts for up to a minute. If that is not
// possible, the caller goes on all the same: on a sick cluster its change may be the cure.
func StepAside(ctx context.Context, vips VIPs, node Node, nodes []Node, say func(format string, args ...any)) {
	others := slices.DeleteFunc(ControlPlanes(nodes), func(other Node) bool { return other.Name == node.Name })
	if len(others) == 0 {
		return
	}
	vip, err := vips.StepAside(ctx, node)
	if err == nil && !vip.IsValid() {
		return
	}
	if err == nil {
		say("%s: leaves the virtual IP %s to another control plane", node.Name, vip)
		wait := probe.Wait{Limit: AsideTimeout, Say: say}
		err = wait.Until(ctx, "another control plane with the virtual IP", func(ctx context.Context) (string, error) {
			for _, other := range others {
				if holds, err := vips.Holds(ctx, other, vip); err == nil && holds {
					return "", nil
				}
			}
			return "none has it", nil
		})
	}
	if err != nil {
		say("%s: the virtual IP may not answer for a minute: %s", node.Name, err)
	}
}
