package gate

import "github.com/slipway-platform/slipway/internal/health"

var serviceRanges = check{
	Name:   "Kubernetes gives services addresses in the declared ranges",
	Looks:  "the ServiceCIDR `kubernetes`",
	ByHand: "kubectl get servicecidrs",
	Judge: withNetwork(func(spec *Spec, seen *Cluster) []health.Result {
		if err := seen.Services.Err; err != nil && err.Unknown {
			return []health.Result{health.Skip("", "this Kubernetes version does not show it: "+err.Reason)}
		}
		if results := unread(seen, "", "the ServiceCIDRs", seen.Services); results != nil {
			return results
		}
		// Others are ranges that somebody added to the cluster's own.
		service, exists := seen.Services.Find(func(r Ranges) bool { return r.Name == "kubernetes" })
		if !exists {
			return []health.Result{health.Fail("", "there is no ServiceCIDR kubernetes yet")}
		}
		if problems := rangesDiffer("services", service.CIDRs, spec.Network.ServiceCIDRs); len(problems) > 0 {
			return []health.Result{health.Fail("", "gives "+problems[0]).ForGood()}
		}
		return []health.Result{health.Pass("")}
	}),
}
