package health

import (
	"fmt"
	"strconv"
)

// The agents read these settings when they start. What differs from the declaration does not change by itself.
func ciliumConfig(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "Cilium is configured as declared", Evaluate: func(seen *Cluster) []Result {
		if spec.Cilium == nil {
			return withoutCNI()
		}
		if results := unread(seen, "cilium-config", seen.Config); results != nil {
			return results
		}
		if len(seen.Config.Items) == 0 {
			return []Result{blocked("", "Cilium is not installed")}
		}
		have := seen.Config.Items[0].Values
		var results []Result
		for _, want := range ciliumSettings(spec, have) {
			if value, set := have[want.key]; value != want.value {
				if !set {
					value = "not set"
				}
				result := failed(want.key, fmt.Sprintf("is %s instead of %s", value, want.value))
				result.Hopeless = true
				result.Command = fmt.Sprintf("kubectl -n %s get configmap cilium-config -o yaml", spec.Cilium.Namespace)
				results = append(results, result)
			}
		}
		if len(results) == 0 {
			return []Result{passed("")}
		}
		return results
	}}
}

type setting struct{ key, value string }

// ciliumSettings are what cilium-config has to say, in Cilium's own words.
func ciliumSettings(spec *GateSpec, have map[string]string) []setting {
	var want []setting
	if spec.Cilium.ClusterName != "" {
		want = append(want, setting{"cluster-name", spec.Cilium.ClusterName})
	}
	if spec.Cilium.ClusterID != 0 {
		want = append(want, setting{"cluster-id", strconv.Itoa(spec.Cilium.ClusterID)})
	}
	if spec.Cilium.Routing != "" {
		want = append(want, setting{"routing-mode", spec.Cilium.Routing})
	}
	if spec.Network == nil {
		return want
	}
	want = append(want, setting{"enable-ipv4", "true"}, setting{"enable-ipv6", strconv.FormatBool(len(spec.Network.PodCIDRs) > 1)})
	for i, key := range []string{"ipv4-native-routing-cidr", "ipv6-native-routing-cidr"} {
		// With a tunnel Cilium need not know the range, and must not have another.
		if _, set := have[key]; i < len(spec.Network.PodCIDRs) && (set || spec.Cilium.Routing == "native") {
			want = append(want, setting{key, spec.Network.PodCIDRs[i]})
		}
	}
	return want
}
