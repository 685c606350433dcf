package live

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	talosconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
)

// stray says which range the cluster keeps, and a changed configuration does not have; "" if there is none, or nothing is known. The way
// back to the former ranges stays open.
func (c *Cluster) stray(ctx context.Context, current, next talosconfig.Provider) string {
	was, is := networkOf(current), networkOf(next)
	if is == nil {
		return ""
	}
	if was == nil || !slices.Equal(was.PodCIDRs(), is.PodCIDRs()) {
		if part := c.strayNode(ctx, is.PodCIDRs()); part != "" {
			return part
		}
	}
	if was == nil || !slices.Equal(was.ServiceCIDRs(), is.ServiceCIDRs()) {
		return c.strayServices(ctx, is.ServiceCIDRs())
	}
	return ""
}

// strayNode says which Node has pods outside the ranges. A Node keeps its range, and with others the controller manager that leads ends at
// this Node, each time that it starts: pkg/controller/nodeipam/ipam/range_allocator.go of Kubernetes 1.36.
func (c *Cluster) strayNode(ctx context.Context, ranges []string) string {
	nodes, err := List[corev1.Node](ctx, c, kubeapi.Nodes, metav1.ListOptions{})
	if err != nil || len(ranges) == 0 {
		return ""
	}
	for _, node := range nodes {
		for _, own := range node.Spec.PodCIDRs {
			if !within(ranges, own) {
				return keyOf("podCIDR", own) + ": Node " + node.Name + " has the range " + own + ", which it keeps"
			}
		}
	}
	return ""
}

// strayServices says which of the cluster's first ranges of Services is none of the ranges. The ServiceCIDR that the first API server has
// made keeps it, and later API servers take their addresses from it, whatever their flag is:
// pkg/controlplane/controller/defaultservicecidr/default_servicecidr_controller.go of Kubernetes 1.36.
func (c *Cluster) strayServices(ctx context.Context, ranges []string) string {
	first := metav1.ListOptions{FieldSelector: "metadata.name=kubernetes"}
	found, err := List[networkingv1.ServiceCIDR](ctx, c, kubeapi.ServiceCIDRs, first)
	if err != nil || len(ranges) == 0 {
		return ""
	}
	for _, services := range found {
		for _, own := range services.Spec.CIDRs {
			if !slices.Contains(ranges, own) {
				return keyOf("serviceCIDR", own) + ": ServiceCIDR " + services.Name + " has the range " + own + ", which it keeps"
			}
		}
	}
	return ""
}

func networkOf(full talosconfig.Provider) config.ClusterNetwork {
	if full.Cluster() == nil {
		return nil
	}
	return full.Cluster().Network()
}

// keyOf returns the path of a key of `network`, or of `network.ipv6` for a range of IPv6.
func keyOf(key, of string) string {
	if strings.Contains(of, ":") {
		return "network.ipv6." + key
	}
	return "network." + key
}

// within reports whether a range is in one of others.
func within(others []string, text string) bool {
	own, err := netip.ParsePrefix(text)
	return err != nil || slices.ContainsFunc(others, func(text string) bool {
		other, err := netip.ParsePrefix(text)
		return err == nil && other.Bits() <= own.Bits() && other.Contains(own.Addr())
	})
}
