package config

import (
	"net/netip"
	"slices"
	"time"

	"github.com/slipway-platform/slipway/components/core/pins"
	"github.com/slipway-platform/slipway/internal/health"
)

// The versions a stack gets that names none. They are released together: Talos runs this Kubernetes, and the chart
// versions are the ones the project's tests run with. Those of the core services are in the package pins.
const (
	DefaultTalosVersion        = "v1.12.7"
	DefaultKubernetesVersion   = "v1.35.8"
	DefaultCiliumVersion       = "1.18.7"
	DefaultFluxOperatorVersion = "0.59.0"
	DefaultFluxVersion         = "2.9.5"
)

// The longest waits of a stack that states none.
const (
	DefaultReadinessTimeout = health.DefaultTimeout
	DefaultGitOpsTimeout    = health.DefaultTimeout
	DefaultGitOpsInterval   = time.Minute
)

// applyDefaults fills in every optional key that is unset. This is the only place where a default is given.
func (s *Stack) applyDefaults() {
	fill(&s.Proxmox.Cluster, "pve")
	fill(&s.Proxmox.Datastores.ISO, "local")
	fill(&s.Proxmox.Datastores.Disks, "local-lvm")
	fill(&s.Proxmox.Bridge, "vmbr0")

	if s.Network.Nameservers == nil && s.Network.Gateway.IsValid() {
		s.Network.Nameservers = []netip.Addr{s.Network.Gateway}
	}

	for i := range s.NodePools {
		s.fillPool(&s.NodePools[i])
	}
	s.place()
	fill(&s.WorkerPolicy.Join, JoinParallel)

	fill(&s.Talos.Version, DefaultTalosVersion)
	fill(&s.Talos.Factory, "https://factory.talos.dev")
	fill(&s.Talos.InstallDisk, "/dev/sda")
	fill(&s.Talos.DiskEncryption, DiskEncryptionNone)
	fill(&s.Kubernetes.Version, DefaultKubernetesVersion)

	s.fillServices()

	fill(&s.GitOps.Branch, "main")
	fill(&s.GitOps.Path, "kubernetes/clusters/"+s.Name)
	fill(&s.GitOps.Username, "flux")
	fill(&s.GitOps.Interval.Duration, DefaultGitOpsInterval)
	fill(&s.GitOps.Timeout.Duration, DefaultGitOpsTimeout)
	fill(&s.GitOps.Operator.Chart, "oci://ghcr.io/controlplaneio-fluxcd/charts/flux-operator")
	fill(&s.GitOps.Operator.Version, DefaultFluxOperatorVersion)
	fill(&s.GitOps.Flux.Version, DefaultFluxVersion)
	fill(&s.GitOps.Flux.Registry, "ghcr.io/fluxcd")

	fill(&s.Readiness.Timeout.Duration, DefaultReadinessTimeout)
	fill(&s.Storage.Role, StorageNone)
}

func (s *Stack) fillPool(pool *NodePool) {
	if pool.Hosts == nil {
		pool.Hosts = slices.Clone(s.Proxmox.Nodes)
	}
	fill(&pool.Datastore, s.Proxmox.Datastores.Disks)
	fill(&pool.Bridge, s.Proxmox.Bridge)
	if pool.VLAN == nil {
		vlan := s.Proxmox.VLAN
		pool.VLAN = &vlan
	}
	for i := range pool.DataDisks {
		fill(&pool.DataDisks[i].Datastore, pool.Datastore)
		fill(&pool.DataDisks[i].Use, DiskRaw)
	}
}

func (s *Stack) fillServices() {
	fill(&s.Cilium.Version, DefaultCiliumVersion)
	fill(&s.Cilium.Repository, "https://helm.cilium.io/")
	fill(&s.Cilium.Mode, CiliumHelm)
	fill(&s.Cilium.Routing, RoutingTunnel)
	fill(&s.Cilium.Masquerade, MasqueradeIPTables)
	fill(&s.Cilium.GatewayAPI, SwitchOn)
	fill(&s.Cilium.Hubble.Enabled, SwitchOn)
	fill(&s.Cilium.Hubble.Relay, s.Cilium.Hubble.Enabled)
	fill(&s.Cilium.Encryption, EncryptionNone)
	fill(&s.Cilium.BandwidthManager, BandwidthNone)

	fill(&s.CoreDNS.Version, pins.CoreDNSVersion)
	fill(&s.CoreDNS.Repository, pins.CoreDNSRepository)
	fill(&s.CoreDNS.Replicas, 2)

	fill(&s.Spegel.Enabled, SwitchOn)
	fill(&s.Spegel.Version, pins.SpegelVersion)
	fill(&s.Spegel.Chart, pins.SpegelChart)

	fill(&s.CertManager.Enabled, SwitchOn)
	fill(&s.CertManager.Version, pins.CertManagerVersion)
	fill(&s.CertManager.Repository, pins.CertManagerRepository)

	s.CRDs.fill(s)
}

// fill sets a value that is still zero.
func fill[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}
