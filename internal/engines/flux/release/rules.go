package release

import (
	"fmt"
	"reflect"

	"github.com/slipway-platform/slipway/cluster"
)

// rule is what a HelmRelease must say, or must not.
type rule struct {
	at        string // path
	want      any    // nil: nothing may be there
	otherwise any    // what it means if nothing is there; nil: it must be there
	why       string // what another value would do
}

// rules returns what keeps the component running. Each was read in helm-controller's source.
func (r *reader) rules() []rule {
	const (
		retry   = "RetryOnFailure"
		removes = "would uninstall the component"
		stops   = "would make Flux wait for pods that need not run, and count it as a failure"
		keeps   = "would leave what Git removes later in the objects, because Pulumi's installation still claims it"
		differs = "would let Flux's objects differ from those of the first installation"
	)
	return []rule{
		{at: "metadata.annotations[" + annotationPrune + "]", want: disabled, why: removes + " when the file is removed"},
		{at: "spec.releaseName", want: r.release.Name, why: removes + " when it is changed"},
		{at: "spec.targetNamespace", want: r.release.Namespace, why: removes + " when it is changed"},
		{at: "spec.storageNamespace", want: cluster.FluxNamespace, otherwise: cluster.FluxNamespace,
			why: "would make two owners of one record"},
		{at: "spec.install.strategy.name", want: retry, why: removes + " after a failure"},
		{at: "spec.install.remediation", why: removes + " after a failure"},
		{at: "spec.install.disableTakeOwnership", want: false, otherwise: false, why: "would refuse the objects that Pulumi has installed"},
		{at: "spec.install.serverSideApply", want: false, why: keeps},
		{at: "spec.install.disableWait", want: true, why: stops},
		{at: "spec.install.crds", want: "Skip", why: "would install CRDs, which Pulumi owns"},
		{at: "spec.upgrade.strategy.name", want: retry, why: "would roll back, or uninstall the component, after a failure"},
		{at: "spec.upgrade.remediation", why: "would roll back, or uninstall the component, after a failure"},
		{at: "spec.upgrade.serverSideApply", want: disabled, why: keeps},
		{at: "spec.upgrade.disableWait", want: true, why: stops},
		{at: "spec.upgrade.force", want: false, otherwise: false, why: "would create objects again"},
		{at: "spec.upgrade.crds", want: "Skip", otherwise: "Skip", why: "would change CRDs, which Pulumi owns"},
		{at: "spec.chartRef", why: "would add the chart's digest to its version, which is a label of pods, and so restart them"},
		{at: "spec.chart.spec.valuesFiles", why: differs},
		{at: "spec.postRenderers", why: differs},
		{at: "spec.commonMetadata", why: differs},
		{at: "spec.kubeConfig", why: "names another cluster"},
	}
}

func (r *reader) check(release map[string]any, one rule) {
	is := value(release, one.at)
	switch {
	case is == nil && one.want != nil && one.otherwise == nil:
		r.found(one.at, fmt.Sprintf("write %v", one.want), "is missing, which %s", one.why)
	case is == nil, reflect.DeepEqual(is, one.want):
	case one.want == nil:
		r.found(one.at, "remove it", "is given, which %s", one.why)
	default:
		r.found(one.at, fmt.Sprintf("write %v", one.want), "%s %s", shown(is), one.why)
	}
}
