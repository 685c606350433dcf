package kube

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// serviceAddresses sets the fixed addresses of a Service, one per family.
func serviceAddresses(o *unstructured.Unstructured, ips []netip.Addr) error {
	var addresses, families []any
	for _, ip := range ips {
		addresses = append(addresses, ip.String())
		if ip.Is4() {
			families = append(families, "IPv4")
		} else {
			families = append(families, "IPv6")
		}
	}
	policy := "SingleStack"
	if len(ips) > 1 {
		policy = "RequireDualStack"
	}
	for field, value := range map[string]any{"clusterIP": addresses[0], "clusterIPs": addresses, "ipFamilies": families, "ipFamilyPolicy": policy} {
		if err := unstructured.SetNestedField(o.Object, value, "spec", field); err != nil {
			return err
		}
	}
	return nil
}
