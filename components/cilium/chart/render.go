package chart

import (
	"encoding/base64"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/syntax"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

// Documents returns of(path) for each PEM document that the enabled parts need in the chart's values: the CA's certificate, and
// certificates with their private keys.
func (v Values) Documents(of func(path string) any) map[string]any {
	documents := map[string]any{PathCA: of(PathCA)}
	for _, what := range v.Certificates() {
		for _, path := range []string{what.Path + ".cert", what.Path + ".key"} {
			documents[path] = of(path)
		}
	}
	return documents
}

// NoDocument stands for a PEM document that does not matter.
func NoDocument(string) any { return "" }

// Tree returns the chart's values: Slipway's, the user's, and the certificates and keys at their dotted paths. They may be of any
// type, also values that are known later. Certificates that the chart generates would differ at every render, and every run would replace
// them.
func (v Values) Tree(certificates map[string]any) (map[string]any, error) {
	tree, err := v.Cilium.Values.MergedInto(v.chart())
	if err != nil {
		return nil, err
	}
	return place(v.fillNulls(tree), certificates), nil
}

// Own returns the part of Tree that Slipway sets.
func (v Values) Own(certificates map[string]any) (map[string]any, error) {
	tree, err := cluster.ChartValues(nil).MergedInto(v.chart())
	if err != nil {
		return nil, err
	}
	return place(v.fillNulls(tree), certificates), nil
}

// noValue is what a template writes for null. Helm removes it from manifests, but not from what the chart computes checksums of.
const noValue = "<no value>"

// fillNulls gives the values whose default is null, and whose key the chart looks for, what Helm 3 renders for null. Helm 4, with which
// Flux and newer Argo CDs render, leaves such keys out, and so their lines of Cilium's ConfigMap: agents would restart at the handover.
// The user's values take precedence.
func (v Values) fillNulls(tree map[string]any) map[string]any {
	nulls := map[string]any{}
	if v.Cilium.Owner.IsEngine() {
		nulls = map[string]any{"debug.verbose": noValue, "nodePort.addresses": []any{}, "policyCIDRMatchMode": []any{}}
	}
	if v.isFrom(firstWithNullURLs) {
		// The chart renders null as an argument without a value, and without a line of the ConfigMap. No other value has this effect, so
		// both owners get the empty list that Cilium makes of the argument.
		nulls["k8s.apiServerURLs"] = ""
	}
	for path, empty := range nulls {
		if !has(tree, path) {
			place(tree, map[string]any{path: empty})
		}
	}
	return tree
}

// firstWithNullURLs is the minor release of Cilium 1 whose chart has the value k8s.apiServerURLs, null by default.
const firstWithNullURLs = 20

// has reports whether a tree has a value at a dotted path.
func has(tree map[string]any, path string) bool {
	key, below, more := strings.Cut(path, ".")
	value, given := tree[key]
	if !given || !more {
		return given
	}
	inner, isMap := value.(map[string]any)
	return !isMap || has(inner, below)
}

// CheckUserValues adds a problem for each of the user's values that Slipway sets, that a release of Cilium has removed, that the chart or
// the agent does not accept, or that switches off what Slipway relies on.
func CheckUserValues(c *cluster.Cluster, findings *cluster.Findings) {
	const path = "cilium.values"
	values, own := Values{Cluster: c}, map[string]any{}
	if tree, err := cluster.ChartValues(nil).MergedInto(values.chart()); err == nil {
		own = place(tree, values.Documents(NoDocument))
	}
	for _, key := range c.Cilium.Values.Conflicts(own) {
		findings.Found(cluster.KeyPath(path, key), "remove it; where a key of cilium sets it, use that", cluster.OwnedValue)
	}
	given, err := c.Cilium.Values.Tree()
	if err != nil {
		return
	}
	checkRemoved(findings, path, c.Cilium.Version, given)
	checkOptions(findings, path, c.Cilium.Version, given, own)
	checkImage(findings, path, c.Cilium.Version, given)
	before := findings.Len()
	if cluster.KnowsChart(ReleaseName, c.Cilium.Version) {
		cluster.CheckChartKeys(path, ReleaseName, c.Cilium.Version, given, findings)
		checkAgent(findings, path, values, given)
	}
	if findings.Len() == before { // the schema says more
		cluster.CheckPodValues(path, ReleaseName, c.Cilium.Version, own, given, findings)
	}
	cluster.CheckNeeded(path, given, c.Cilium.Needed(c.Mesh), findings)
}

// checkImage adds a problem if the agent's image is not of the declared version: the gate would wait for ever. As in the chart's template
// cilium.image, nothing else counts beside an override.
func checkImage(findings *cluster.Findings, path, version string, given map[string]any) {
	const problem = "%s is not of cilium.version, for which the gate waits"
	given, _ = given["image"].(map[string]any)
	override, _ := given["override"].(string)
	tag, tagged := given["tag"]
	switch text, _ := tag.(string); {
	case override != "" && !kube.IsOf(version, override):
		findings.Found(path+".image.override", "give it the tag v"+version+", or remove it", problem, syntax.ShownText(override))
	case override == "" && tagged && !kube.IsOf(version, "cilium:"+text):
		findings.Found(path+".image.tag", "write v"+version+", or remove it", problem, syntax.ShownText(text))
	}
}

func base64Of(pem string) string { return base64.StdEncoding.EncodeToString([]byte(pem)) }
