package config

import (
	"net/netip"
	"time"
)

// The versions a stack gets that names none. They are released together: Talos runs this Kubernetes, and the chart
// versions are the ones the project's tests run with.
const (
	DefaultTalosVersion        = "v1.12.7"
	DefaultKubernetesVersion   = "v1.35.8"
	DefaultCiliumVersion       = "1.18.7"
	DefaultFluxOperatorVersion = "0.59.0"
	DefaultFluxVersion         = "2.9.5"
)

// The longest waits of a stack that states none.
const (
	DefaultReadinessTimeout = 10 * time.Minute
	DefaultGitOpsTimeout    = 10 * time.Minute
	DefaultGitOpsInterval   = time.Minute
)

// applyDefaults fills in every optional key that is unset. This is the only place where a default is given.
func (s *Stack) applyDefaults() {
	fill(&s.Proxmox.Datastores.ISO, "local")
	fill(&s.Proxmox.Datastores.Disks, "local-lvm")
	fill(&s.Proxmox.Bridge, "vmbr0")

	if len(s.Network.Nameservers) == 0 && s.Network.Gateway.IsValid() {
		s.Network.Nameservers = []netip.Addr{s.Network.Gateway}
	}

	fill(&s.Talos.Version, DefaultTalosVersion)
	fill(&s.Talos.Factory, "https://factory.talos.dev")
	fill(&s.Talos.InstallDisk, "/dev/sda")
	fill(&s.Kubernetes.Version, DefaultKubernetesVersion)

	fill(&s.Cilium.Version, DefaultCiliumVersion)
	fill(&s.Cilium.Repository, "https://helm.cilium.io/")

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

// fill sets a value that is still zero.
func fill[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}
