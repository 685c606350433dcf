package cluster

import "regexp"

// Spegel lets nodes fetch images from each other. For that, the machine configuration makes containerd keep unpacked image layers.
type Spegel struct {
	Owned

	// Install Spegel, with which nodes fetch images from each other. A change restarts containerd on one node after the other; before Talos
	// 1.14, it reboots the nodes.
	Enabled bool `json:"enabled" default:"true" example:"false"`
	// Version of Spegel's chart.
	//
	// renovate: datasource=docker depName=ghcr.io/spegel-org/helm-charts/spegel
	Version string `json:"version" form:"chart-version" default:"0.7.4"`
	// Spegel's chart.
	Chart string `json:"chart" form:"oci-chart" default:"oci://ghcr.io/spegel-org/helm-charts/spegel" example:"oci://registry.example.com/charts/spegel"`
	// Values of one's own for the chart, under its own keys. They are merged last, and must not set what Slipway sets. They must
	// contain no secrets. For the minor release of the default, keys that the chart does not know, and values of another kind, are refused.
	Values ChartValues `json:"values" example:"{priorityClassName: system-node-critical}"`
}

var (
	spegelLevel    = regexp.MustCompile(`(?i)^(debug|info|warn|error)([+-][0-9]+)?$`) // slog.Level
	spegelRegistry = regexp.MustCompile(`^(https?://[^/@?\s]+|_default|\*)$`)
)

func (s Spegel) service() Service {
	return Service{
		Key: "spegel", Name: "spegel", Namespace: "spegel", Chart: s.Chart, Version: s.Version, UserValues: s.Values,
		// Talos's containerd reads mirrors of registries from this folder.
		Values: mapping{"spegel": mapping{"containerdRegistryConfigPath": "/etc/cri/conf.d/hosts"}},
		// It listens on a port of the node and mounts containerd's folders and socket.
		Privileged: true, MakeNamespace: true, off: !s.Enabled, Owner: s.Owner,
		Needed: []Needed{
			{"namespaceOverride", "", elsewhere},
			{"spegel.logLevel", spegelLevel, "is not DEBUG, INFO, WARN or ERROR, so that Spegel ends"},
			{"spegel.mirroredRegistries", spegelRegistry, "is no registry as https://docker.io, so that Spegel ends"}, // ParseRegistries in pkg/oci
		},
	}
}
