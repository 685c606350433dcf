package cluster

import "slices"

// Owner is who changes a component after its installation.
type Owner string

// The owners of a component.
const (
	OwnerPulumi Owner = "pulumi"
	OwnerFlux   Owner = "flux"
	OwnerArgoCD Owner = "argocd"
)

// Owned is part of the section of every component that Flux or Argo CD can own.
type Owned struct {
	// Who changes the component after its installation: `pulumi`, by the stack file, or the engine of `gitops`, `flux` or `argocd`, by a
	// file in the repository, which then holds the chart, its version and its values. See
	// [components that Flux owns](gitops.md#components-that-flux-owns) and [those of Argo CD](argocd.md#components-that-argo-cd-owns).
	Owner Owner `json:"owner" default:"pulumi" example:"flux"`
}

// Choices lists the owners.
func (Owner) Choices() []string { return texts(OwnerPulumi, OwnerFlux, OwnerArgoCD) }

// IsEngine reports whether an engine changes the component, by what Git declares.
func (o Owner) IsEngine() bool { return o == OwnerFlux || o == OwnerArgoCD }

// Title returns the owner's own name.
func (o Owner) Title() string {
	switch o {
	case OwnerFlux:
		return "Flux"
	case OwnerArgoCD:
		return "Argo CD"
	}
	return "Pulumi"
}

// ValuesSecret returns the name of the Secret in the engine's namespace with the values that Slipway sets in the chart of a release that
// the engine owns. With Argo CD, a ConfigMap of this name is the record of the values with which Argo CD has applied the release.
func ValuesSecret(release string) string { return release + "-values" }

// ValuesKey is the key of that Secret, which a HelmRelease reads by default.
const ValuesKey = "values.yaml"

// Names in a cluster that Slipway, Flux and the tree agree on.
const (
	FluxNamespace   = "flux-system"      // of Flux, the cluster settings, and the HelmReleases of the components that Flux owns
	FluxOperator    = "flux-operator"    // the release of flux-operator, and the manager of the fields that it sets
	FluxInstance    = "flux"             // the FluxInstance
	FluxSync        = "flux-system"      // the source that Flux syncs from, and the root Kustomization
	ClusterSettings = "cluster-settings" // the ConfigMap with the cluster settings
)

// Git is what the repository declares of a component that an engine owns, or owned: a HelmRelease in a file of the cluster's folder.
type Git struct {
	File       string // path in the repository
	Version    string // of the chart
	Repository string // https URL of the chart repository; "" exactly if Chart is an oci:// reference
	Chart      string
	Values     ChartValues // the user's own
	Suspended  bool        // the engine leaves the release alone, so that Pulumi can take it back
}

// InGit returns what the repository declares of the component with a release; nil if it declares nothing.
func (c *Cluster) InGit(release string) *Git {
	if git, declared := c.Git[release]; declared {
		return &git
	}
	return nil
}

// Releases returns every component that is a Helm release, in the order of installation. The engine can own each. Cilium in mode inline
// is the release of nobody until the engine owns it.
func (c *Cluster) Releases() []Service {
	return append([]Service{c.Cilium.Service()}, c.afterNetwork(c.Services())...)
}

// afterNetwork returns the releases that need Cilium: the core services that are given, and those that are no core services.
func (c *Cluster) afterNetwork(core []Service) []Service {
	return slices.Concat(core, c.Providers.Services(), []Service{c.engineService()})
}
