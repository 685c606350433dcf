package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
)

// versions checks that the versions are compatible.
func (c *checker) versions() {
	c.talosRunsKubernetes()
	c.gatewayAPIFitsCilium()
	c.certManagerFitsItsCRDs()
}

// supportedTalos is the minor release of Talos whose machine configuration Slipway writes.
const supportedTalos = "v1.12"

// talosRunsKubernetes checks with Talos's own table that the Talos version supports the Kubernetes version.
func (c *checker) talosRunsKubernetes() {
	if c.Talos.Version == "" {
		return
	}
	if minor(c.Talos.Version) != strings.TrimPrefix(supportedTalos, "v") {
		c.Unreadable("talos.version", "write "+supportedTalos+".x",
			"%s has another machine configuration than this Slipway writes", c.Talos.Version)
		return
	}
	if c.Kubernetes.Version == "" {
		return
	}
	talos, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: c.Talos.Version})
	if err != nil {
		c.Found("talos.version", "write one such as "+New("").Talos.Version, "%s is no version of Talos", c.Talos.Version)
		return
	}
	kubernetes, err := compatibility.ParseKubernetesVersion(c.Kubernetes.Version)
	if err != nil {
		c.Found("kubernetes.version", "write one such as "+New("").Kubernetes.Version, "%s is no version of Kubernetes", c.Kubernetes.Version)
		return
	}
	if err := kubernetes.SupportedWith(talos); err != nil {
		c.Found("kubernetes.version", "change one of the two", "%s does not run on talos.version %s: %v",
			c.Kubernetes.Version, c.Talos.Version, err)
	}
}

// gatewayAPIOfCilium maps a minor release of Cilium to the minor release of the Gateway API that its documentation requires: the
// page "Gateway API Support" of each release names the CRDs that must be installed. Older CRDs lack fields that the operator
// writes. Newer CRDs have broken running gateways (1.2 changed the type of status.supportedFeatures), so a release is accepted
// only after Cilium's documentation names it.
var gatewayAPIOfCilium = map[string]string{
	"1.16": "1.1",
	"1.17": "1.2",
	"1.18": "1.3",
	"1.19": "1.4",
	"1.20": "1.5",
}

func (c *checker) gatewayAPIFitsCilium() {
	source, version := c.CRDs.GatewayAPI, c.Cilium.Version
	if !c.Cilium.GatewayAPI || source.Skip || source.Version == "" || version == "" {
		return
	}
	want, known := gatewayAPIOfCilium[minor(version)]
	switch {
	case !known:
		releases := strings.Join(slices.Sorted(maps.Keys(gatewayAPIOfCilium)), ", ")
		c.Found("cilium.version", fmt.Sprintf("use one of %s, or set cilium.gatewayAPI: false", releases),
			"%s is of a release whose Gateway API is not known here", version)
	case minor(source.Version) == want:
	case source.Version == gatewayAPISet.version: // this is the default, so only Cilium's version was declared
		c.Found("cilium.version", "set crds.gatewayAPI.version: v"+want+".x", "%s is made for Gateway API v%s, and crds.gatewayAPI.version is %s",
			version, want, source.Version)
	default:
		c.Found("crds.gatewayAPI.version", "use v"+want+".x", "%s does not go with cilium.version %s, which is made for v%s",
			source.Version, version, want)
	}
}

// certManagerFitsItsCRDs checks that CRDs and chart have the same minor release: older CRDs drop fields that the controller sets,
// newer CRDs may not serve the versions that it reads.
func (c *checker) certManagerFitsItsCRDs() {
	source, chart := c.CRDs.CertManager, c.CertManager
	if !chart.Enabled || source.Skip || source.Version == "" || chart.Version == "" {
		return
	}
	if minor(source.Version) != minor(chart.Version) {
		c.Found("crds.certManager.version", "remove it, because it follows certManager.version",
			"%s is of another release than certManager.version %s", source.Version, chart.Version)
	}
}

// minor returns the first two numbers of a version.
func minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}
