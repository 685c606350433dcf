package pins

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// gatewayAPIOfCilium are the releases of Gateway API, by minor, that a minor of Cilium is documented to work with: each
// line's page "Gateway API Support" names the release whose definitions must be installed. Definitions older than that
// lack fields the operator writes. Newer minors have broken running gateways (1.2 changed the type of
// status.supportedFeatures), so none is taken for good before Cilium says so.
var gatewayAPIOfCilium = map[string]string{
	"1.16": "1.1",
	"1.17": "1.2",
	"1.18": "1.3",
	"1.19": "1.4",
	"1.20": "1.5",
}

// GatewayAPIFitsCilium says whether a release of Gateway API is one that a release of Cilium is made for. A leading v
// makes no difference.
func GatewayAPIFitsCilium(gatewayAPI, cilium string) error {
	line := minor(cilium)
	want, known := gatewayAPIOfCilium[line]
	if !known {
		return fmt.Errorf("cilium %s: which Gateway API it works with is not known here; use one of %s, or switch cilium.gatewayAPI off",
			cilium, strings.Join(slices.Sorted(maps.Keys(gatewayAPIOfCilium)), ", "))
	}
	if got := minor(gatewayAPI); got != want {
		return fmt.Errorf("gateway API %s does not go with Cilium %s, which is made for v%s; use v%s.x", gatewayAPI, cilium, want, want)
	}
	return nil
}

// CertManagerFits says whether definitions and chart of cert-manager are of the same minor: an older definition drops
// fields that the controller sets, a newer one may not serve what it reads.
func CertManagerFits(definitions, chart string) error {
	if minor(definitions) != minor(chart) {
		return fmt.Errorf("cert-manager's definitions %s do not go with its chart %s; use those of the chart's release", definitions, chart)
	}
	return nil
}

// minor is the first two numbers of a version.
func minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}
