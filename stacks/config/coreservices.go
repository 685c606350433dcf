package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/slipway-platform/slipway/components/core/pins"
)

var sumForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (v *validator) validateCoreServices() {
	v.chart("coreDNS.version", v.CoreDNS.Version)
	v.webURL("coreDNS.repository", v.CoreDNS.Repository, "https")
	if replicas := v.CoreDNS.Replicas; replicas < 1 || replicas > maxReplicas {
		v.found("coreDNS.replicas", fmt.Sprintf("write a number from 1 to %d", maxReplicas), "%d is not a number of pods for the cluster's DNS", replicas)
	}
	v.chart("spegel.version", v.Spegel.Version)
	v.shape("spegel.chart", v.Spegel.Chart, chartRefForm, "an OCI reference of a chart, without a tag", pins.SpegelChart)
	v.release("certManager.version", v.CertManager.Version, pins.CertManagerVersion)
	v.webURL("certManager.repository", v.CertManager.Repository, "https")
	v.validateCRDs()
}

func (v *validator) validateCRDs() {
	for _, one := range v.CRDs.all() {
		if one.source.Skip {
			continue
		}
		path := "crds." + one.set.Key
		if one.set.Key != pins.CertManager.Key || one.source.Version != v.CertManager.Version { // the chart's is reported there
			v.release(path+".version", one.source.Version, one.set.Version)
		}
		if manifest := v.webURL(path+".url", one.source.URL, "https"); manifest != nil && strings.Contains(manifest.Path, "/latest/") {
			v.found(path+".url", "write the URL of a release", "%s is another manifest with every release", one.source.URL)
		}
		v.checksum(path+".sha256", one.source.SHA256)
	}
	v.certManagerCRDs()
}

func (v *validator) certManagerCRDs() {
	source, chart := v.CRDs.CertManager, v.CertManager
	switch {
	case !chart.Enabled.On():
	case source.Skip:
		v.found("crds.certManager.skip", "remove it, or set certManager.enabled: false", "true leaves out what cert-manager needs before it starts")
	case releaseForm.MatchString(source.Version) && releaseForm.MatchString(chart.Version):
		if pins.CertManagerFits(source.Version, chart.Version) != nil {
			v.found("crds.certManager.version", "remove it, for it follows certManager.version",
				"%s is of another release than certManager.version %s", source.Version, chart.Version)
		}
	}
}

func (v *validator) checksum(path, sum string) {
	if sum == "" || sumForm.MatchString(sum) {
		return
	}
	remedy := "write the 64 hexadecimal digits that sha256sum prints"
	if bare := strings.ToLower(strings.TrimPrefix(sum, "sha256:")); sumForm.MatchString(bare) {
		remedy = "did you mean " + bare + "?"
	}
	v.found(path, remedy, "%s is not a SHA-256 checksum", sum)
}
