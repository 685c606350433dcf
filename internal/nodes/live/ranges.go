package live

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	talosconfig "github.com/siderolabs/talos/pkg/machinery/config"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/kubeapi"
)

// stray says which Node has pods outside the ranges that a changed configuration has for them; "" if none has, or nothing is known. A Node
// keeps its range, and with others the controller manager that leads ends at this Node, each time that it starts:
// pkg/controller/nodeipam/ipam/range_allocator.go of Kubernetes 1.36. The way back to the ranges of the Nodes stays open.
func (c *Cluster) stray(ctx context.Context, current, next talosconfig.Provider) string {
	was, is := podRanges(current), podRanges(next)
	if len(is) == 0 || slices.Equal(was, is) {
		return ""
	}
	nodes, err := List[corev1.Node](ctx, c, kubeapi.Nodes, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	for _, node := range nodes {
		for _, own := range node.Spec.PodCIDRs {
			if !within(is, own) {
				key := "network.podCIDR"
				if strings.Contains(own, ":") {
					key = "network.ipv6.podCIDR"
				}
				return fmt.Sprintf("%s: Node %s has the range %s, which it keeps", key, node.Name, own)
			}
		}
	}
	return ""
}

func podRanges(of talosconfig.Provider) []string {
	if of.Cluster() == nil || of.Cluster().Network() == nil {
		return nil
	}
	return of.Cluster().Network().PodCIDRs()
}

// within reports whether a range is in one of others.
func within(others []string, text string) bool {
	own, err := netip.ParsePrefix(text)
	return err != nil || slices.ContainsFunc(others, func(text string) bool {
		other, err := netip.ParsePrefix(text)
		return err == nil && other.Bits() <= own.Bits() && other.Contains(own.Addr())
	})
}
