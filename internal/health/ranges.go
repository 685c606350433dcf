package health

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// undeclaredNetwork is what every check of ranges says where none are declared.
func undeclaredNetwork() []Result {
	return []Result{skipped("", "no ranges are declared to compare with")}
}

func talosRanges(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "Talos gives Kubernetes the declared pod and service ranges", Evaluate: func(seen *Cluster) []Result {
		if spec.Network == nil {
			return undeclaredNetwork()
		}
		var results []Result
		for _, node := range spec.controlPlanes() {
			talos := seen.Talos[node.Name]
			result := passed(node.Name)
			switch given := talos.Given; {
			case talos.Err != nil:
				result = blocked(node.Name, "its Talos API does not answer")
			case given == nil:
				result = unseen(node.Name, "the controller manager's configuration")
			case given.Err != nil && given.Err.Unknown:
				result = skipped(node.Name, "its Talos does not say: "+given.Err.Reason)
			case given.Err != nil:
				result = unreadable(node.Name, "the controller manager's configuration", given.Err)
			default:
				problems := append(rangesDiffer("pods", given.PodCIDRs, spec.Network.PodCIDRs), rangesDiffer("services", given.ServiceCIDRs, spec.Network.ServiceCIDRs)...)
				if len(problems) > 0 {
					result = failed(node.Name, "gives "+strings.Join(problems, "; "))
					result.Hopeless = true
				}
			}
			if result.Verdict == Failed && !result.Unseen {
				result.Command = "talosctl -n " + node.Address + " get controllermanagerconfigs -o yaml"
			}
			results = append(results, result)
		}
		return results
	}}
}

func rangesDiffer(what string, used, declared []string) []string {
	if slices.EqualFunc(used, declared, sameRange) {
		return nil
	}
	return []string{fmt.Sprintf("%s %s instead of the declared %s", what, or(strings.Join(used, ", "), "no range"), strings.Join(declared, ", "))}
}

func sameRange(a, b string) bool {
	x, errX := netip.ParsePrefix(a)
	y, errY := netip.ParsePrefix(b)
	return errX == nil && errY == nil && x.Masked() == y.Masked()
}

// within reports whether a range is part of another.
func within(part, whole string) bool {
	p, errP := netip.ParsePrefix(part)
	w, errW := netip.ParsePrefix(whole)
	return errP == nil && errW == nil && p.Bits() >= w.Bits() && w.Contains(p.Addr())
}

func serviceRanges(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "Kubernetes gives services addresses of the declared ranges", Evaluate: func(seen *Cluster) []Result {
		if spec.Network == nil {
			return undeclaredNetwork()
		}
		if err := seen.Services.Err; err != nil && err.Unknown {
			return []Result{skipped("", "this Kubernetes does not say: "+err.Reason)}
		}
		if results := unread(seen, "the ServiceCIDRs", seen.Services); results != nil {
			return results
		}
		result := failed("", "there is no ServiceCIDR kubernetes yet")
		for _, service := range seen.Services.Items {
			if service.Name != "kubernetes" {
				continue // somebody has added to the cluster's own
			}
			result = passed("")
			if problems := rangesDiffer("services", service.CIDRs, spec.Network.ServiceCIDRs); len(problems) > 0 {
				result = failed("", "gives "+problems[0])
				result.Hopeless = true
			}
		}
		if result.Verdict == Failed {
			result.Command = "kubectl get servicecidrs"
		}
		return []Result{result}
	}}
}

func podRanges(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "every node gives its pods addresses of the declared ranges", Evaluate: func(seen *Cluster) []Result {
		if spec.Network == nil {
			return undeclaredNetwork()
		}
		return eachRegistered(spec, seen, func(want Node, node KubeNode) Result {
			result := passed(want.Name)
			if problem := podRangeProblem(node.PodCIDRs, spec.Network.PodCIDRs); problem != "" {
				result = failed(want.Name, problem)
				result.Hopeless = len(node.PodCIDRs) > 0 // what a node has been given is never changed
			}
			if result.Verdict == Failed {
				result.Command = fmt.Sprintf("kubectl get node %s -o jsonpath='{.spec.podCIDRs}'", want.Name)
			}
			return result
		})
	}}
}

func podRangeProblem(given, declared []string) string {
	switch {
	case len(given) == 0:
		return "has been given no pod range yet"
	case len(given) != len(declared):
		return fmt.Sprintf("pods get %s, of %d families instead of %d", strings.Join(given, ", "), len(given), len(declared))
	}
	for i, cidr := range given {
		if !within(cidr, declared[i]) {
			return fmt.Sprintf("pods get %s, outside the declared %s", cidr, declared[i])
		}
	}
	return ""
}

// Kubernetes shares the ranges out; an agent that has others of its own gives pods addresses that nobody routes to.
func ciliumRanges(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "Cilium uses on every node what the node was given", Evaluate: func(seen *Cluster) []Result {
		switch {
		case spec.Cilium == nil:
			return withoutCNI()
		case spec.Network == nil:
			return undeclaredNetwork()
		}
		if err := seen.Ranges.Err; err != nil && err.Unknown {
			return []Result{blocked("", "the kind CiliumNode is not there yet")}
		}
		if results := unread(seen, "CiliumNodes", seen.Ranges); results != nil {
			return results
		}
		byName := map[string]Ranges{}
		for _, ranges := range seen.Ranges.Items {
			byName[ranges.Name] = ranges
		}
		return eachRegistered(spec, seen, func(want Node, node KubeNode) Result {
			own, exists := byName[want.Name]
			pools := seen.CiliumStatus[want.Name].Pools
			result := passed(want.Name)
			switch agent, runs := seen.agentOn(want.Name); {
			case len(node.PodCIDRs) == 0:
				return blocked(want.Name, want.Name+" has been given no pod range")
			case !runs || !agent.Ready:
				return blocked(want.Name, "no Cilium agent is Ready on "+want.Name)
			case !exists:
				result = failed(want.Name, "has no CiliumNode yet")
			case !slices.EqualFunc(own.CIDRs, node.PodCIDRs, sameRange):
				result = failed(want.Name, differs("Cilium uses", own.CIDRs, node.PodCIDRs))
				result.Hopeless = len(own.CIDRs) > 0
			case len(pools) > 0 && !slices.EqualFunc(pools, node.PodCIDRs, sameRange):
				result = failed(want.Name, differs("its agent gives addresses from", pools, node.PodCIDRs))
				result.Hopeless = true
			}
			if result.Verdict == Failed {
				result.Command = fmt.Sprintf("kubectl get ciliumnode %s -o yaml; kubectl get node %[1]s -o jsonpath='{.spec.podCIDRs}'", want.Name)
			}
			return result
		})
	}}
}

func differs(what string, used, given []string) string {
	return fmt.Sprintf("%s %s, the node was given %s", what, or(strings.Join(used, ", "), "no range"), strings.Join(given, ", "))
}
