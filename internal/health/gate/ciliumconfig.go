package gate

import (
	"fmt"
	"strconv"

	"github.com/slipway-platform/slipway/internal/health"
)

// Settings are the keys and values of a ConfigMap.
type Settings map[string]string

// The agents read these settings when they start. A difference does not go away by waiting.
var ciliumConfig = check{
	Name:   "Cilium is configured as declared",
	Looks:  "name, id, routing, address families and native-routing ranges in `cilium-config`",
	ByHand: "kubectl -n NAMESPACE get configmap cilium-config -o yaml",
	Judge: withCilium(func(spec *Spec, seen *Cluster) []health.Result {
		if results := unread(seen, "", "cilium-config", seen.Config); results != nil {
			return results
		}
		if len(seen.Config.Items) == 0 {
			return []health.Result{health.Block("", "Cilium is not installed")}
		}
		have := seen.Config.Items[0]
		var results []health.Result
		for _, want := range ciliumSettings(spec, have) {
			if value, set := have[want.key]; value != want.value {
				if !set {
					value = "not set"
				}
				results = append(results, health.Fail(want.key, fmt.Sprintf("is %s instead of %s", value, want.value)).ForGood())
			}
		}
		if len(results) == 0 {
			return []health.Result{health.Pass("")}
		}
		return results
	}),
}

type setting struct{ key, value string }

// ciliumSettings are the settings that cilium-config must have; have are its settings.
func ciliumSettings(spec *Spec, have Settings) []setting {
	var want []setting
	if spec.Cilium.ClusterName != "" {
		want = append(want, setting{"cluster-name", spec.Cilium.ClusterName})
	}
	if spec.Cilium.ClusterID != 0 {
		want = append(want, setting{"cluster-id", strconv.Itoa(spec.Cilium.ClusterID)})
	}
	if spec.Cilium.Routing != "" {
		want = append(want, setting{"routing-mode", string(spec.Cilium.Routing)})
	}
	if spec.Network == nil {
		return want
	}
	want = append(want, setting{"enable-ipv4", "true"}, setting{"enable-ipv6", strconv.FormatBool(len(spec.Network.PodCIDRs) > 1)})
	for i, key := range []string{"ipv4-native-routing-cidr", "ipv6-native-routing-cidr"} {
		// In tunnel mode the range may be missing, but it must not be another one.
		if _, set := have[key]; i < len(spec.Network.PodCIDRs) && (set || spec.Cilium.Routing == "native") {
			want = append(want, setting{key, spec.Network.PodCIDRs[i].String()})
		}
	}
	return want
}
