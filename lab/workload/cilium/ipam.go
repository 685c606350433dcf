package cilium

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/lab/wait"
	"github.com/slipway-platform/slipway/lab/workload"
)

// requestSatisfied is the condition of a Service that says whether it has its addresses.
const requestSatisfied = "cilium.io/IPAMRequestSatisfied"

// addressClasses are the classes of load balancers for which Cilium assigns addresses; a Service without class is one of them, too.
var addressClasses = []string{"io.cilium/bgp-control-plane", "io.cilium/l2-announcer"}

// assignment is what LB-IPAM decides about a Service.
type assignment struct {
	ips             []netip.Addr
	satisfied       bool
	reason, message string
}

// assign gives Services of type LoadBalancer their addresses: first the present ones, if a pool still has them, then requested ones, then
// free ones, neither of them from a pool that conflicts with another. Sharing keys are not modelled, so that no two Services have the same
// address.
func assign(services []*corev1.Service, pools []addressPool) map[types.UID]assignment {
	services = slices.DeleteFunc(slices.Clone(services), func(s *corev1.Service) bool {
		class := s.Spec.LoadBalancerClass
		return s.Spec.Type != corev1.ServiceTypeLoadBalancer || class != nil && !slices.Contains(addressClasses, *class)
	})
	slices.SortFunc(services, func(x, y *corev1.Service) int {
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Namespace+"/"+x.Name, y.Namespace+"/"+y.Name))
	})
	used, out := map[netip.Addr]types.UID{}, map[types.UID]assignment{}
	for _, s := range services { // first all addresses that are in use
		var kept []netip.Addr
		requested := requestedAddresses(s)
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			ip, err := netip.ParseAddr(ingress.IP)
			if _, taken := used[ip]; err != nil || taken || len(requested) > 0 && !slices.Contains(requested, ip) {
				continue
			}
			if in, _ := poolOf(pools, s, ip); in {
				used[ip] = s.UID
				kept = append(kept, ip)
			}
		}
		out[s.UID] = assignment{ips: kept, satisfied: true, reason: "satisfied"}
	}
	pools = slices.DeleteFunc(slices.Clone(pools), func(p addressPool) bool { return p.conflicts })
	for _, s := range services {
		a := out[s.UID]
		if requested := requestedAddresses(s); len(requested) > 0 {
			for _, ip := range requested {
				a.request(s, ip, pools, used)
			}
		} else {
			for _, fam := range s.Spec.IPFamilies {
				a.free(s, fam, pools, used)
			}
		}
		out[s.UID] = a
	}
	return out
}

func (a *assignment) request(s *corev1.Service, ip netip.Addr, pools []addressPool, used map[netip.Addr]types.UID) {
	if slices.Contains(a.ips, ip) {
		return
	}
	in, other := poolOf(pools, s, ip)
	_, taken := used[ip]
	switch {
	case in && !taken:
		used[ip] = s.UID
		a.ips = append(a.ips, ip)
	case in:
		a.refuse("already_allocated", fmt.Sprintf("The IP '%s' is already allocated to another service", ip))
	case other:
		a.refuse("pool_selector_mismatch", fmt.Sprintf("The pool with the CIDR containing '%s', doesn't select this service", ip))
	default:
		a.refuse("no_pool", fmt.Sprintf("No pool exists with a CIDR containing '%s'", ip))
	}
}

func (a *assignment) free(s *corev1.Service, of corev1.IPFamily, pools []addressPool, used map[netip.Addr]types.UID) {
	if slices.ContainsFunc(a.ips, func(ip netip.Addr) bool { return ip.Is6() == (of == corev1.IPv6Protocol) }) {
		return
	}
	found := false
	for _, pool := range pools {
		for _, r := range pool.ranges {
			if pool.disabled || !pool.selector.Matches(labels.Set(s.Labels)) || r.first.Is6() != (of == corev1.IPv6Protocol) {
				continue
			}
			found = true
			for ip := r.first; r.contains(ip); ip = ip.Next() {
				if _, taken := used[ip]; !taken {
					used[ip] = s.UID
					a.ips = append(a.ips, ip)
					return
				}
			}
		}
	}
	if found {
		a.refuse("out_of_ips", "All enabled CiliumLoadBalancerIPPools that match this service ran out of allocatable IPs")
		return
	}
	a.refuse("no_pool", "There are no enabled CiliumLoadBalancerIPPools that match this service")
}

func (a *assignment) refuse(reason, message string) {
	a.satisfied, a.reason, a.message = false, reason, message
}

// poolOf tells whether an enabled pool that selects the Service has the address, and whether another pool has it.
func poolOf(pools []addressPool, s *corev1.Service, ip netip.Addr) (in, other bool) {
	for _, pool := range pools {
		if !pool.disabled && slices.ContainsFunc(pool.ranges, func(r addressRange) bool { return r.contains(ip) }) {
			if pool.selector.Matches(labels.Set(s.Labels)) {
				return true, false
			}
			other = true
		}
	}
	return false, other
}

// requestedAddresses are the addresses that a Service asks for.
func requestedAddresses(s *corev1.Service) (ips []netip.Addr) {
	text := []string{s.Spec.LoadBalancerIP}
	for _, key := range []string{"lbipam.cilium.io/ips", "io.cilium/lb-ipam-ips"} {
		if value, is := s.Annotations[key]; is {
			text = append(text, strings.Split(value, ",")...)
			break
		}
	}
	for _, one := range text {
		if ip, err := netip.ParseAddr(strings.TrimSpace(one)); err == nil && !slices.Contains(ips, ip) {
			ips = append(ips, ip)
		}
	}
	return ips
}

// loadBalancerIPAM writes the addresses of Services into their status, while the operator is the leader.
func (o *operator) loadBalancerIPAM(ctx context.Context) {
	pools := workload.NewCustomCache(ctx, o.Cluster, ciliumPools)
	services := newServiceCache(ctx, o.Cluster)
	for {
		if o.shared.isLeader(o) && pools.Synced() && services.Synced() {
			o.assignAddresses(ctx, services.List(), pools.List())
		}
		if !wait.Pause(ctx, 100*time.Millisecond) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-pools.Changed:
		case <-services.Changed:
		case <-time.After(10 * time.Second):
		}
	}
}

func (o *operator) assignAddresses(ctx context.Context, services []*corev1.Service, objects []*unstructured.Unstructured) {
	var pools []addressPool
	for _, object := range objects {
		pool, err := readPool(object)
		if err != nil {
			fmt.Fprintf(o.Log, "level=error msg=\"unable to read pool\" poolName=%s error=%q subsys=lb-ipam\n", object.GetName(), err)
			continue
		}
		pools = append(pools, pool)
	}
	settleConflicts(pools)
	assigned := assign(services, pools)
	for uid, a := range assigned {
		s := services[slices.IndexFunc(services, func(s *corev1.Service) bool { return s.UID == uid })]
		if err := o.writeAddresses(ctx, s, a); err != nil && ctx.Err() == nil {
			fmt.Fprintf(o.Log, "level=error msg=\"unable to update the status of a service\" serviceName=%s/%s error=%q subsys=lb-ipam\n",
				s.Namespace, s.Name, err)
		}
	}
}

func (o *operator) writeAddresses(ctx context.Context, s *corev1.Service, a assignment) error {
	want := s.Status.DeepCopy()
	want.LoadBalancer.Ingress = nil
	vip := corev1.LoadBalancerIPModeVIP
	for _, ip := range a.ips {
		want.LoadBalancer.Ingress = append(want.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip.String(), IPMode: &vip})
	}
	status := metav1.ConditionFalse
	if a.satisfied {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&want.Conditions, metav1.Condition{
		Type: requestSatisfied, Status: status, Reason: a.reason, Message: a.message, ObservedGeneration: s.Generation})
	if equality.Semantic.DeepEqual(want, &s.Status) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": s.ResourceVersion}, "status": want})
	if err != nil {
		return err
	}
	_, err = o.Cluster.Client.CoreV1().Services(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: "cilium-operator-lb-ipam"}, "status")
	return err
}
