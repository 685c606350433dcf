package cluster

import (
	"fmt"
	"regexp"
	"strings"
)

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

func (s Spegel) service(mirrors map[string][]string) Service {
	return Service{
		Key: "spegel", Name: "spegel", Namespace: "spegel", Chart: s.Chart, Version: s.Version, UserValues: s.Values,
		Values: spegelValues(mirrors),
		// It listens on a port of the node and mounts containerd's folders and socket.
		Privileged: true, MakeNamespace: true, off: !s.Enabled, Owner: s.Owner,
		Needed: []Needed{
			{"namespaceOverride", "", elsewhere},
			{"spegel.logLevel", spegelLevel, "is not DEBUG, INFO, WARN or ERROR, so that Spegel ends"},
			{"spegel.mirroredRegistries", spegelRegistry, "is no registry as https://docker.io, so that Spegel ends"}, // ParseRegistries in pkg/oci
		},
	}
}

// spegelValues returns the values of the chart. A pod of Spegel moves what Talos has written about registries aside when it starts, and
// gives it back only with prependExisting, and only for listed registries: AddMirrorConfiguration in pkg/oci. The entry _default, which
// is Talos's name of `*`, is all other registries. Talos writes changed mirrors over what Spegel has written, so the pods start again.
func spegelValues(mirrors map[string][]string) mapping {
	// Talos's containerd reads mirrors of registries from this folder.
	settings := mapping{"containerdRegistryConfigPath": "/etc/cri/conf.d/hosts"}
	values := mapping{"spegel": settings}
	if len(mirrors) == 0 {
		return values
	}
	listed := []string{"_default"}
	for _, registry := range sorted(mirrors) {
		if registry != "*" && !hidesMirrors(registry) {
			listed = append(listed, "https://"+registry)
		}
	}
	settings["prependExisting"], settings["mirroredRegistries"] = true, listed
	values["podAnnotations"] = mapping{AnnotationReads: Checksum(fmt.Sprint(mirrors))}
	return values
}

// hidesMirrors reports whether Spegel does not find Talos's folder of a registry: Talos calls that of a.io:5000 a.io_5000_.
func hidesMirrors(registry string) bool { return strings.Contains(registry, ":") }

func (c clusterCheck) adviseMirrors() {
	for _, registry := range sorted(c.Talos.RegistryMirrors) {
		if c.Spegel.Enabled && hidesMirrors(registry) {
			c.Found(EntryPath("talos.registryMirrors", registry), "set spegel.enabled: false, or accept this",
				"has a port or an IPv6 address, so that its mirrors serve Talos's own images, and not those of pods, while Spegel is on")
		}
	}
}
