package cluster

// GitOps declares the repository that Flux syncs from, and the version of Flux.
type GitOps struct {
	// Git repository that Flux syncs from.
	URL string `json:"url" config:"required" form:"git-https-url" example:"https://git.home.arpa/platform/slipway.git"`
	// Branch that Flux follows.
	Branch string `json:"branch" form:"git-branch" default:"main" example:"release/2026.1"`
	// Folder of the repository that Flux applies. `STACK` is the name of the stack.
	Path string `json:"path" form:"repository-path" follows:"kubernetes/clusters/STACK" example:"kubernetes/clusters/infra"`
	// User of the Git host that `gitPassword` belongs to.
	Username string `json:"username" form:"git-username" default:"flux"`
	// Interval at which Flux checks for changes.
	Interval Duration `json:"interval" range:"10s-" default:"1m" example:"5m"`
	// Longest wait until Flux has applied the folder.
	Timeout Duration `json:"timeout" range:"1s-" default:"10m" example:"20m"`
	// The chart of flux-operator.
	Operator Operator `json:"operator"`
	// The Flux that flux-operator installs.
	Flux Flux `json:"flux"`
}

// Operator is the chart of flux-operator.
type Operator struct {
	// Chart of flux-operator.
	Chart string `json:"chart" form:"oci-chart" default:"oci://ghcr.io/controlplaneio-fluxcd/charts/flux-operator" example:"oci://registry.example.com/charts/flux-operator"`
	// Version of that chart.
	//
	// renovate: datasource=docker depName=ghcr.io/controlplaneio-fluxcd/charts/flux-operator
	Version string `json:"version" form:"chart-version" default:"0.59.0"`
	// Values of one's own for the chart, under its own keys. They must contain no secrets. The chart refuses keys that it does not
	// know when it is installed.
	Values ChartValues `json:"values" example:"{logLevel: debug}"`
}

// Flux is the distribution that flux-operator installs.
type Flux struct {
	// Version of Flux, exact or a range.
	//
	// renovate: datasource=github-releases depName=fluxcd/flux2 extractVersion=^v(?<version>.*)$
	Version string `json:"version" form:"flux-version" default:"2.9.5" example:"2.9.x"`
	// Registry and path of the images of Flux's controllers.
	Registry string `json:"registry" form:"image-registry" default:"ghcr.io/fluxcd" example:"registry.example.com/fluxcd"`
}

func (g *GitOps) derive(stack string) {
	if g.Path == "" {
		g.Path = "kubernetes/clusters/" + stack
	}
}
