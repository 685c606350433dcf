package cilium

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/lab/fault"
)

// PodCIDRs are the ranges of a node's pod addresses: those of the Node object, in its order. Under the fault pod-cidr,
// the range of the fault's address family is another one, as if Cilium's own address management assigned it without
// regard to the Node.
func PodCIDRs(n *corev1.Node, faults *fault.Set) []string {
	declared := n.Spec.PodCIDRs
	if len(declared) == 0 && n.Spec.PodCIDR != "" {
		declared = []string{n.Spec.PodCIDR}
	}
	wrong, on := wrongPodCIDR(n.Name, internalIP(n), faults)
	if !on {
		return declared
	}
	if len(declared) == 0 {
		return []string{wrong.String()}
	}
	out := make([]string, 0, len(declared))
	for _, have := range declared {
		if p, err := netip.ParsePrefix(have); err == nil && p.Addr().Is4() == wrong.Addr().Is4() {
			have = wrong.String()
		}
		out = append(out, have)
	}
	return out
}

// internalIP is a node's first address; empty before its kubelet has set it.
func internalIP(n *corev1.Node) string {
	if all := internalIPs(n); len(all) > 0 {
		return all[0]
	}
	return ""
}

func internalIPs(n *corev1.Node) (out []string) {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			out = append(out, a.Address)
		}
	}
	return out
}

// healthIPs are the addresses of a node's health endpoint: the second ones of its pod ranges. The router has the first
// ones.
func healthIPs(ranges []string) (out []string) {
	for _, r := range ranges {
		if p, err := netip.ParsePrefix(r); err == nil {
			out = append(out, p.Masked().Addr().Next().Next().String())
		}
	}
	return out
}

// routerIP is the router's address: the first one of a pod range.
func routerIP(r string) string {
	p, err := netip.ParsePrefix(r)
	if err != nil {
		return ""
	}
	return p.Masked().Addr().Next().String()
}

// family is "ipv4" or "ipv6", as in Cilium's models.
func family(ip string) string {
	if a, err := netip.ParseAddr(ip); err == nil && a.Is6() {
		return "ipv6"
	}
	return "ipv4"
}
