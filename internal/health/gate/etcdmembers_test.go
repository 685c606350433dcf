package gate

import (
	"net/netip"
	"slices"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/health"
)

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	etcd := Etcd{Asked: true, Leader: 1}
	for i, member := range spec.controlPlanes() {
		etcd.Members = append(etcd.Members, talosapi.Member{Name: member.Name, ID: uint64(i + 1), Addresses: []netip.Addr{member.Address}})
	}
	onTalos(seen, func(n *TalosNode) {
		n.Etcd = etcd
		n.Etcd.Members = slices.Clone(etcd.Members)
	}, names(spec.controlPlanes())...)
})

var _ = fault("etcd-member-missing", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) { n.Etcd.Members = n.Etcd.Members[:2] }, "infra-cp-1", "infra-cp-2")
	onTalos(c, func(n *TalosNode) {
		n.Services["etcd"] = talosapi.Service{State: "Preparing", Message: "Waiting for etcd to join"}
		n.Etcd = Etcd{Asked: true, Err: &health.Broken{Reason: "Unavailable: connection refused"}}
	}, "infra-cp-3")
})

var _ = fault("etcd-learner", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) { n.Etcd.Members[2].Learner = true }, controlPlaneNames...)
})

var _ = fault("etcd-member-never-started", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) { n.Etcd.Members[2].Name = "" }, "infra-cp-1")
})

var _ = fault("etcd-undeclared-member", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) { n.Etcd.Members = append(n.Etcd.Members, talosapi.Member{Name: "old-cp-9", ID: 9}) }, "infra-cp-3")
})

var _ = fault("etcd-does-not-answer", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) { n.Etcd.Err = &health.Broken{Reason: "Unknown: context deadline exceeded"} }, "infra-cp-3")
})
