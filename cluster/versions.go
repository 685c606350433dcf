package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
)

// checkVersions checks that the versions are compatible.
func (c *Cluster) checkVersions(findings *Findings) {
	talosRunsKubernetes(c.Talos.Version, c.Kubernetes.Version, findings)
	gatewayAPIFitsCilium(c.CRDs.GatewayAPI, c.Cilium, findings)
	certManagerFitsItsCRDs(c.CRDs.CertManager, c.CertManager, findings)
}

// supportedTalos is the minor release of Talos whose machine configuration Slipway writes.
const supportedTalos = "v1.12"

// talosRunsKubernetes checks with Talos's own table that the Talos version supports the Kubernetes version.
func talosRunsKubernetes(talosVersion, kubernetesVersion string, findings *Findings) {
	if talosVersion == "" {
		return
	}
	if minor(talosVersion) != strings.TrimPrefix(supportedTalos, "v") {
		findings.Unreadable("talos.version", "write "+supportedTalos+".x",
			"%s has another machine configuration than this Slipway writes", talosVersion)
		return
	}
	if kubernetesVersion == "" {
		return
	}
	talos, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: talosVersion})
	if err != nil {
		findings.Found("talos.version", "write one such as "+New("").Talos.Version, "%s is no version of Talos", talosVersion)
		return
	}
	kubernetes, err := compatibility.ParseKubernetesVersion(kubernetesVersion)
	if err != nil {
		findings.Found("kubernetes.version", "write one such as "+New("").Kubernetes.Version, "%s is no version of Kubernetes", kubernetesVersion)
		return
	}
	if err := kubernetes.SupportedWith(talos); err != nil {
		findings.Found("kubernetes.version", "change one of the two", "%s does not run on talos.version %s: %v",
			kubernetesVersion, talosVersion, err)
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

func gatewayAPIFitsCilium(source CRDSource, cilium Cilium, findings *Findings) {
	version := cilium.Version
	if !cilium.GatewayAPI || source.Skip || source.Version == "" || version == "" {
		return
	}
	want, known := gatewayAPIOfCilium[minor(version)]
	switch {
	case !known:
		releases := strings.Join(slices.Sorted(maps.Keys(gatewayAPIOfCilium)), ", ")
		findings.Found("cilium.version", fmt.Sprintf("use one of %s, or set cilium.gatewayAPI: false", releases),
			"%s is of a release whose Gateway API is not known here", version)
	case minor(source.Version) == want:
	case source.Version == gatewayAPISet.version: // this is the default, so only Cilium's version was declared
		findings.Found("cilium.version", "set crds.gatewayAPI.version: v"+want+".x", "%s is made for Gateway API v%s, and crds.gatewayAPI.version is %s",
			version, want, source.Version)
	default:
		findings.Found("crds.gatewayAPI.version", "use v"+want+".x", "%s does not go with cilium.version %s, which is made for v%s",
			source.Version, version, want)
	}
}

// certManagerFitsItsCRDs checks that CRDs and chart have the same minor release: older CRDs drop fields that the controller sets,
// newer CRDs may not serve the versions that it reads.
func certManagerFitsItsCRDs(source CRDSource, chart CertManager, findings *Findings) {
	if !chart.Enabled || source.Skip || source.Version == "" || chart.Version == "" {
		return
	}
	if minor(source.Version) != minor(chart.Version) {
		findings.Found("crds.certManager.version", "remove it, because it follows certManager.version",
			"%s is of another release than certManager.version %s", source.Version, chart.Version)
	}
}

// minor returns the first two numbers of a version.
func minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}

// olderThan reports whether a version, or the newest one of a range such as 2.x, is older than a minor release. It is false for a text
// that is neither.
func olderThan(version string, major, minor int) bool {
	var isMajor, isMinor int
	read, _ := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &isMajor, &isMinor)
	return read > 0 && isMajor < major || read == 2 && isMajor == major && isMinor < minor
}
