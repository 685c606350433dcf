package cluster

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/cluster/releases"
)

// versions refuses versions that do not work together.
func (c clusterCheck) versions() {
	if c.talosIsKnown(c.Talos.Version) {
		c.pair(releases.Talos, c.Talos.Version, releases.Kubernetes, "kubernetes.version", c.Kubernetes.Version)
	}
	if flux := c.GitOps.Flux.Version; c.GitOps.ByFlux() && exact.MatchString(flux) {
		c.pair(releases.FluxOperator, c.GitOps.Operator.Version, releases.Flux, "gitops.flux.version", flux)
	}
	c.gatewayAPIFitsCilium()
	c.certManagerFitsItsCRDs()
}

// talosIsKnown refuses releases of Talos that are older than those whose ways Slipway knows. It tells whether it has not.
func (c clusterCheck) talosIsKnown(version string) bool {
	if version == "" {
		return true
	}
	_, standing := releases.Talos.Find(version, time.Time{})
	if standing == releases.Older {
		c.Unreadable("talos.version", "write v"+releases.Talos.Oldest()+".x or a later one",
			"%s is older than the releases that Slipway knows", version)
	}
	return standing != releases.Older
}

// pair refuses two versions of which one project says that they do not work together.
func (c clusterCheck) pair(project releases.Project, version string, other releases.Project, path, otherVersion string) {
	if version == "" || otherVersion == "" {
		return
	}
	if fit, fits := project.Fits(version, other, otherVersion); !fits && fit.Refused {
		c.Found(path, "change one of the two", "%s does not go with %s %s, which takes %s %s", otherVersion, project.Name, version,
			other.Name, fit)
	}
}

// versionAdvice names releases that are out of support on a day, or newer than the known ones, and pairs that their projects have not
// tested.
func (c *Cluster) versionAdvice(day time.Time) Problems {
	var advice Findings
	for _, one := range c.pinned() {
		one.advise(&advice, day)
		if fit, fits := one.project.Fits(one.version, releases.Kubernetes, c.Kubernetes.Version); !fits && !fit.Refused {
			advice.Add(one.path, "use a release that is, or change kubernetes.version",
				fmt.Sprintf("%s is not tested with Kubernetes %s, only with %s", one.version, c.Kubernetes.Version, fit))
		}
	}
	return advice.All()
}

// pin is the version of a project that a stack installs.
type pin struct {
	project       releases.Project
	path, version string
}

// pinned are the versions of the projects in the table of releases that a stack installs.
func (c *Cluster) pinned() []pin {
	all := []pin{
		{releases.Talos, "talos.version", c.Talos.Version}, {releases.Kubernetes, "kubernetes.version", c.Kubernetes.Version},
		{releases.Cilium, "cilium.version", c.Cilium.Version},
	}
	if c.GitOps.ByFlux() {
		all = append(all, pin{releases.Flux, "gitops.flux.version", c.GitOps.Flux.Version})
	}
	if c.CertManager.Enabled {
		all = append(all, pin{releases.CertManager, "certManager.version", c.CertManager.Version})
	}
	if !c.CRDs.Rook.Skip && c.Storage.Role != StorageNone {
		all = append(all, pin{releases.Rook, "crds.rook.version", c.CRDs.Rook.Version})
	}
	if c.Providers.OnePassword != nil {
		all = append(all, pin{releases.ExternalSecrets, "secrets.onepassword.operator.version", c.Providers.OnePassword.Operator.Version})
	}
	return slices.DeleteFunc(all, func(one pin) bool { return !exact.MatchString(one.version) })
}

// exact is a version with its minor release, which a range such as 2.x does not have.
var exact = regexp.MustCompile(`^v?\d+\.\d+`)

// advise says how the version stands to the releases of its project.
func (one pin) advise(advice *Findings, day time.Time) {
	known, standing := one.project.Find(one.version, day)
	newest := one.project.Newest()
	switch {
	case standing == releases.Ended:
		advice.Add(one.path, "plan the way to "+newest,
			fmt.Sprintf("%s of %s has been out of support since %s", one.version, one.project.Name, known.Ended))
	case standing == releases.Older:
		advice.Add(one.path, "plan the way to "+newest, fmt.Sprintf("%s of %s is out of support", one.version, one.project.Name))
	case standing == releases.Newer && !one.project.Rolling:
		advice.Add(one.path, "read its release notes, and update Slipway",
			fmt.Sprintf("%s of %s is newer than %s, the newest that is known here, and is treated like that", one.version, one.project.Name, newest))
	}
}

// gatewayAPIFitsCilium checks the CRDs of the Gateway API. Older CRDs lack fields that Cilium's operator writes. Newer CRDs have broken
// running gateways (1.2 changed the type of status.supportedFeatures), so a release is accepted only after Cilium's documentation names it.
func (c clusterCheck) gatewayAPIFitsCilium() {
	crds, cilium := c.CRDs.gatewayAPI(), c.Cilium
	source := crds.Source
	if !cilium.GatewayAPI || source.Skip || source.Version == "" || cilium.Version == "" {
		return
	}
	fit, fits := releases.Cilium.Fits(cilium.Version, releases.GatewayAPI, source.Version)
	switch {
	case fits:
	case source.Version == crds.version: // this is the default, so only Cilium's version was declared
		c.Found("cilium.version", "set crds.gatewayAPI.version to a release of "+fit.String(),
			"%s is made for Gateway API %s, and crds.gatewayAPI.version is %s", cilium.Version, fit, source.Version)
	default:
		c.Found("crds.gatewayAPI.version", "use a release of "+fit.String(), "%s does not go with cilium.version %s, which is made for %s",
			source.Version, cilium.Version, fit)
	}
}

// certManagerFitsItsCRDs checks that CRDs and chart have the same minor release: older CRDs drop fields that the controller sets,
// newer CRDs may not serve the versions that the controller reads.
func (c clusterCheck) certManagerFitsItsCRDs() {
	source, chart := c.CRDs.CertManager, c.CertManager
	if !chart.Enabled || source.Skip || source.Version == "" || chart.Version == "" {
		return
	}
	if releases.MinorOf(source.Version) != releases.MinorOf(chart.Version) {
		c.Found("crds.certManager.version", "remove it, because it follows certManager.version",
			"%s is of another release than certManager.version %s", source.Version, chart.Version)
	}
}

// olderThan reports whether a version, or the newest one of a range such as 2.x, is older than a minor release. It is false for a text
// that is neither.
func olderThan(version string, major, minor int) bool {
	var isMajor, isMinor int
	read, _ := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &isMajor, &isMinor)
	return read > 0 && isMajor < major || read == 2 && isMajor == major && isMinor < minor
}
