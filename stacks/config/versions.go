package config

import (
	"regexp"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
)

var (
	releaseForm = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	chartForm   = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	rangeForm   = regexp.MustCompile(`^[0-9]+(\.[0-9]+(\.[0-9]+(-[0-9A-Za-z.-]+)?)?)?$|^[0-9]+(\.[0-9]+)?\.[x*]$`)
)

func (v *validator) validateVersions() {
	talos := v.release("talos.version", v.Talos.Version, DefaultTalosVersion)
	kubernetes := v.release("kubernetes.version", v.Kubernetes.Version, DefaultKubernetesVersion)
	if talos && !strings.HasPrefix(v.Talos.Version, supportedTalos+".") {
		v.found("talos.version", "write "+supportedTalos+".x", "%s has another machine configuration than this Slipway writes", v.Talos.Version)
		talos = false
	}
	if talos && kubernetes {
		v.compatible()
	}
	v.chart("gitops.operator.version", v.GitOps.Operator.Version)
	v.shape("gitops.flux.version", v.GitOps.Flux.Version, rangeForm, "a version of Flux", DefaultFluxVersion)
}

// compatible asks Talos's own table whether the Talos version runs the Kubernetes version.
func (v *validator) compatible() {
	talos, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: v.Talos.Version})
	if err != nil {
		v.found("talos.version", "write one like "+DefaultTalosVersion, "%s is not a version: %v", v.Talos.Version, err)
		return
	}
	kubernetes, err := compatibility.ParseKubernetesVersion(v.Kubernetes.Version)
	if err != nil {
		v.found("kubernetes.version", "write one like "+DefaultKubernetesVersion, "%s is not a version: %v", v.Kubernetes.Version, err)
		return
	}
	if err := kubernetes.SupportedWith(talos); err != nil {
		v.found("kubernetes.version", "change one of the two", "%s does not run on talos.version %s: %v", v.Kubernetes.Version, v.Talos.Version, err)
	}
}

// release checks a version of Talos or Kubernetes, which both write with a v.
func (v *validator) release(path, version, example string) bool {
	if releaseForm.MatchString(version) {
		return true
	}
	remedy := "write it like " + example
	if releaseForm.MatchString("v" + version) {
		remedy = "did you mean v" + version + "?"
	}
	v.found(path, remedy, "%s is not a version", version)
	return false
}

// chart checks the version of a Helm chart, which has no v.
func (v *validator) chart(path, version string) {
	if chartForm.MatchString(version) {
		return
	}
	remedy := "write it like " + DefaultCiliumVersion
	if bare := strings.TrimPrefix(version, "v"); chartForm.MatchString(bare) {
		remedy = "did you mean " + bare + "?"
	}
	v.found(path, remedy, "%s is not a chart version", version)
}
