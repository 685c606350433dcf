package cluster

import (
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// Flux is the distribution that flux-operator installs, and how its controllers run.
type Flux struct {
	// Version of Flux, exact or a range, 2.6 or newer. With a range, a new version of flux-operator brings a new version of Flux.
	//
	// renovate: datasource=github-releases depName=fluxcd/flux2 extractVersion=^v(?<version>.*)$
	Version string `json:"version" form:"flux-version" default:"2.9.5" example:"2.9.x"`
	// Registry and path of the images of Flux's controllers. If they need a login, it is the secret `fluxRegistryConfig`.
	Registry string `json:"registry" form:"image-registry" default:"ghcr.io/fluxcd" example:"registry.example.com/fluxcd"`
	// Which build of the images a registry has that is a mirror. With it, flux-operator pins the images by their digests.
	Variant FluxVariant `json:"variant" example:"upstream-alpine"`
	// Controllers of Flux. The first three are required. Add `notification-controller` for webhooks and alerts.
	Components []FluxComponent `json:"components" items:"3-" follows:"[source-controller, kustomize-controller, helm-controller]" example:"[source-controller, kustomize-controller, helm-controller, notification-controller]"`
	// Concurrency and limits of the controllers: `small` for tens of applications, `medium` for hundreds, `large` for a thousand.
	// Without it, they have Flux's own.
	Size FluxSize `json:"size" example:"medium"`
	// Let only Flux's own namespace and what it needs connect to the controllers.
	NetworkPolicy bool `json:"networkPolicy" default:"true" example:"false"`
	// Lock tenants in: objects of Flux refer to no sources of other namespaces, and are applied with a service account of their own.
	Multitenant bool `json:"multitenant" example:"true"`
	// Service account for the objects of tenants that name none; without it, `default`. Only with `gitops.flux.multitenant`.
	TenantServiceAccount string `json:"tenantServiceAccount" form:"label" example:"flux"`
	// Further instances of the controllers, which share the work.
	Sharding *FluxSharding `json:"sharding"`
	// A volume for what source-controller has fetched, which then survives the controller's pod. Its storage class must exist before
	// Flux does.
	Storage *FluxStorage `json:"storage"`
}

// FluxSharding are further instances of Flux's controllers. An object of Flux is worked on by the instance that its label names.
type FluxSharding struct {
	// Label that names the instance.
	Key string `json:"key" form:"node-label-key" default:"sharding.fluxcd.io/key" example:"sharding.example.com/key"`
	// Names of the instances.
	Shards []string `json:"shards" config:"required" form:"label" items:"1-" example:"[shard1, shard2]"`
	// Give each instance of source-controller a volume of its own, too. It needs `gitops.flux.storage`.
	Persistent bool `json:"persistent" example:"true"`
}

// FluxStorage is the volume of source-controller.
type FluxStorage struct {
	// Storage class of the volume. A class that Flux itself makes exists too late.
	Class string `json:"class" config:"required" form:"label" example:"local-path"`
	// Size of the volume.
	Size Quantity `json:"size" config:"required" form:"quantity" range:"1GiB-" example:"10GiB"`
}

// FluxVariant is a build of the images of Flux's controllers.
type FluxVariant string

// Choices lists the builds.
func (FluxVariant) Choices() []string {
	return []string{"upstream-alpine", "enterprise-alpine", "enterprise-distroless", "enterprise-distroless-fips"}
}

// FluxSize is a profile of Flux's controllers.
type FluxSize string

// Choices lists the profiles.
func (FluxSize) Choices() []string { return []string{"small", "medium", "large"} }

// FluxComponent is a controller of Flux.
type FluxComponent string

// The controllers that the sync needs: one fetches the source, the others apply manifests and charts.
const (
	SourceController    FluxComponent = "source-controller"
	KustomizeController FluxComponent = "kustomize-controller"
	HelmController      FluxComponent = "helm-controller"
)

// NotificationController sends alerts, and takes webhooks.
const NotificationController FluxComponent = "notification-controller"

// The controllers that write new images into Git. The second follows what the first has found.
const (
	imageReflector  FluxComponent = "image-reflector-controller"
	imageAutomation FluxComponent = "image-automation-controller"
)

// sourceWatcher is not in Flux before 2.7.
const sourceWatcher FluxComponent = "source-watcher"

var requiredComponents = []FluxComponent{SourceController, KustomizeController, HelmController}

// Choices lists the controllers.
func (FluxComponent) Choices() []string {
	return append(texts(requiredComponents...), string(NotificationController), string(imageReflector), string(imageAutomation),
		string(sourceWatcher))
}

// DefaultFlux returns the Flux of a stack that sets no key of it.
func DefaultFlux() Flux {
	var flux Flux
	SetDefaults(&flux)
	flux.derive()
	return flux
}

func (f *Flux) derive() {
	if f.Components == nil {
		f.Components = slices.Clone(requiredComponents)
	}
}

// flux checks the keys of Flux that involve each other.
func (c clusterCheck) flux() {
	const path = "gitops.flux"
	f := c.GitOps.Flux
	unknown := slices.Contains(f.Components, "") // reported already
	for _, required := range requiredComponents {
		if !unknown && !slices.Contains(f.Components, required) {
			c.Found(path+".components", "add it", "lacks %s, without which Flux does not apply the repository", required)
		}
	}
	if olderThan(f.Version, 2, 6) {
		c.Found(path+".version", "write 2.6.0 or newer", "%s is too old", f.Version)
	} else if slices.Contains(f.Components, sourceWatcher) && olderThan(f.Version, 2, 7) {
		c.Found(path+".components", "remove it, or write gitops.flux.version 2.7.0 or newer", "has %s, which Flux %s does not have",
			sourceWatcher, f.Version)
	}
	if slices.Contains(f.Components, imageAutomation) && !slices.Contains(f.Components, imageReflector) {
		c.Found(path+".components", "add it, or remove "+string(imageAutomation), "lacks %s, whose objects %s reads", imageReflector,
			imageAutomation)
	}
	if f.TenantServiceAccount != "" && !f.Multitenant {
		c.Found(path+".tenantServiceAccount", "remove it, or write gitops.flux.multitenant: true",
			"%s is for tenants, and gitops.flux.multitenant is false", f.TenantServiceAccount)
	}
	if f.Sharding != nil && f.Sharding.Persistent && f.Storage == nil {
		c.Found(path+".sharding.persistent", "add gitops.flux.storage, or remove it", "needs gitops.flux.storage, which is missing")
	}
	if login := c.FluxRegistryConfig.Reveal(); login != "" {
		host, _, _ := strings.Cut(f.Registry, "/")
		c.fault("fluxRegistryConfig", syntax.RegistryLogin(login, host))
	}
}
