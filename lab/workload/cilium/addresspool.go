package cilium

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/lab/workload"
)

var ciliumPools = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumloadbalancerippools"}

// addressPool is a CiliumLoadBalancerIPPool.
type addressPool struct {
	name       string
	created    time.Time
	version    string // of the object
	generation int64
	has        []metav1.Condition
	disabled   bool
	conflict   string // why nothing is assigned from it; "" if it may be
	selector   labels.Selector
	ranges     []addressRange
	reserved   int64 // addresses of networks that are not in their ranges
}

// addressRange is a range of addresses that are assigned.
type addressRange struct{ first, last netip.Addr }

func (r addressRange) contains(a netip.Addr) bool {
	return a.BitLen() == r.first.BitLen() && r.first.Compare(a) <= 0 && a.Compare(r.last) <= 0
}

// readPool reads the parts of a pool that the lab models.
func readPool(object *unstructured.Unstructured) (addressPool, error) {
	var read struct {
		Metadata metav1.ObjectMeta
		Status   struct{ Conditions []metav1.Condition }
		Spec     struct {
			Disabled          bool
			AllowFirstLastIPs string
			ServiceSelector   *metav1.LabelSelector
			Blocks            []struct{ CIDR, Start, Stop string }
		}
	}
	pool := addressPool{name: object.GetName(), selector: labels.Everything()}
	if err := workload.Decode(object, &read); err != nil {
		return pool, err
	}
	pool.disabled, pool.has = read.Spec.Disabled, read.Status.Conditions
	pool.created, pool.version, pool.generation = read.Metadata.CreationTimestamp.Time, read.Metadata.ResourceVersion, read.Metadata.Generation
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
				pool.reserved += 2
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

// size is the number of addresses in a range.
func (r addressRange) size() *big.Int {
	first, last := new(big.Int).SetBytes(r.first.AsSlice()), new(big.Int).SetBytes(r.last.AsSlice())
	return last.Sub(last, first).Add(last, big.NewInt(1))
}

func (r addressRange) overlaps(other addressRange) bool {
	return r.first.Compare(other.last) <= 0 && other.first.Compare(r.last) <= 0
}

func (r addressRange) String() string { return fmt.Sprintf("%s - %s", r.first, r.last) }

// settleConflicts sorts pools by their age, and closes each one of which a range overlaps another of its own, or one of an older pool that
// is open, as Cilium does (operator/pkg/lbipam).
func settleConflicts(pools []addressPool) {
	slices.SortFunc(pools, func(x, y addressPool) int { return cmp.Or(x.created.Compare(y.created), cmp.Compare(x.name, y.name)) })
	for i := range pools {
		for _, older := range pools[:i+1] {
			if older.conflict == "" && pools[i].conflict == "" {
				pools[i].conflict = pools[i].overlap(older)
			}
		}
	}
}

// overlap says which ranges of two pools overlap, or of one pool if both are the same; "" if none.
func (p addressPool) overlap(other addressPool) string {
	for i, r := range p.ranges {
		for j, s := range other.ranges {
			if r.overlaps(s) && (p.name != other.name || i != j) {
				return fmt.Sprintf("Pool conflicts since range '%s' overlaps range '%s' from IP Pool '%s'", r, s, other.name)
			}
		}
	}
	return ""
}

// conditions are those that Cilium writes, with the number of addresses that Services have.
func (p addressPool) conditions(used int64) []metav1.Condition {
	total := big.NewInt(p.reserved)
	for _, r := range p.ranges {
		total.Add(total, r.size())
	}
	used += p.reserved
	conflicts := metav1.Condition{Type: "cilium.io/PoolConflict", Status: metav1.ConditionFalse, Reason: "resolved"}
	if p.conflict != "" {
		conflicts.Status, conflicts.Reason, conflicts.Message = metav1.ConditionTrue, "cidr_overlap", p.conflict
	}
	all := []metav1.Condition{conflicts}
	for _, count := range [][2]string{
		{"Total", total.String()}, {"Available", new(big.Int).Sub(total, big.NewInt(used)).String()}, {"Used", strconv.FormatInt(used, 10)},
	} {
		all = append(all, metav1.Condition{
			Type: "cilium.io/IPs" + count[0], Status: metav1.ConditionUnknown, Reason: "noreason", Message: count[1],
		})
	}
	return all
}

// writePool writes the conditions of a pool, if they have changed.
func (o *operator) writePool(ctx context.Context, p addressPool, assigned map[types.UID]assignment) error {
	used := int64(0)
	for _, a := range assigned {
		for _, ip := range a.ips {
			if p.conflict == "" && slices.ContainsFunc(p.ranges, func(r addressRange) bool { return r.contains(ip) }) {
				used++
			}
		}
	}
	want := slices.Clone(p.has)
	for _, condition := range p.conditions(used) {
		condition.ObservedGeneration = p.generation
		meta.SetStatusCondition(&want, condition)
	}
	if equality.Semantic.DeepEqual(want, p.has) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": p.version}, "status": map[string]any{"conditions": want},
	})
	if err != nil {
		return err
	}
	_, err = o.Cluster.Dynamic.Resource(ciliumPools).Patch(ctx, p.name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: "cilium-operator-lb-ipam"}, "status")
	return err
}
