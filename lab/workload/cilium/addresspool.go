package cilium

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/lab/workload"
)

var ciliumPools = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumloadbalancerippools"}

// addressPool is a CiliumLoadBalancerIPPool.
type addressPool struct {
	name      string
	created   time.Time
	disabled  bool
	conflicts bool // nothing is assigned from it
	selector  labels.Selector
	ranges    []addressRange
}

// addressRange is a range of addresses that are assigned.
type addressRange struct{ first, last netip.Addr }

func (r addressRange) contains(a netip.Addr) bool {
	return a.BitLen() == r.first.BitLen() && r.first.Compare(a) <= 0 && a.Compare(r.last) <= 0
}

// readPool reads the parts of a pool that the lab models.
func readPool(object *unstructured.Unstructured) (addressPool, error) {
	var read struct {
		Spec struct {
			Disabled          bool
			AllowFirstLastIPs string
			ServiceSelector   *metav1.LabelSelector
			Blocks            []struct{ CIDR, Start, Stop string }
		}
	}
	pool := addressPool{name: object.GetName(), created: object.GetCreationTimestamp().Time, selector: labels.Everything()}
	if err := workload.Decode(object, &read); err != nil {
		return pool, err
	}
	pool.disabled = read.Spec.Disabled
	if read.Spec.ServiceSelector != nil {
		var err error
		if pool.selector, err = metav1.LabelSelectorAsSelector(read.Spec.ServiceSelector); err != nil {
			return pool, err
		}
	}
	for _, block := range read.Spec.Blocks {
		one := addressRange{}
		if block.CIDR != "" {
			prefix, err := netip.ParsePrefix(block.CIDR)
			if err != nil {
				return pool, err
			}
			one.first, one.last = prefix.Masked().Addr(), lastOf(prefix)
			if read.Spec.AllowFirstLastIPs == "No" && prefix.Bits() < prefix.Addr().BitLen()-1 {
				one.first, one.last = one.first.Next(), one.last.Prev()
			}
		} else {
			var err error
			if one.first, err = netip.ParseAddr(block.Start); err != nil {
				return pool, err
			}
			if one.last, err = netip.ParseAddr(cmp.Or(block.Stop, block.Start)); err != nil {
				return pool, err
			}
		}
		pool.ranges = append(pool.ranges, one)
	}
	return pool, nil
}

// lastOf is the last address of a network.
func lastOf(p netip.Prefix) netip.Addr {
	raw := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(raw) // as long as the first
	return last
}

func (r addressRange) overlaps(other addressRange) bool {
	return r.first.Compare(other.last) <= 0 && other.first.Compare(r.last) <= 0
}

// settleConflicts sorts pools by their age, and closes each one of which a range overlaps another of its own, or one of an older pool that
// is open, as Cilium does (operator/pkg/lbipam). The conditions that Cilium writes about it are not modelled.
func settleConflicts(pools []addressPool) {
	slices.SortFunc(pools, func(x, y addressPool) int { return cmp.Or(x.created.Compare(y.created), cmp.Compare(x.name, y.name)) })
	for i := range pools {
		pools[i].conflicts = slices.ContainsFunc(pools[:i+1], func(older addressPool) bool {
			return !older.conflicts && pools[i].overlaps(older)
		})
	}
}

// overlaps tells whether a range of a pool overlaps one of another pool, or another one of the same pool.
func (p addressPool) overlaps(other addressPool) bool {
	for i, r := range p.ranges {
		for j, s := range other.ranges {
			if r.overlaps(s) && (p.name != other.name || i != j) {
				return true
			}
		}
	}
	return false
}
