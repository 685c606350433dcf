package health

import (
	"fmt"
	"slices"
	"strings"
)

// withoutCNI is what every check of Cilium says where none is expected.
func withoutCNI() []Result {
	return []Result{{Verdict: Skipped, Reason: "no CNI is expected yet"}}
}

func ciliumAgents(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "a Cilium agent is Ready on every node", Evaluate: func(seen *Cluster) []Result {
		if spec.Cilium == nil {
			return withoutCNI()
		}
		byNode := map[string]Pod{}
		for _, pod := range seen.Agents.Items {
			// A pod that is being replaced does not speak for its node.
			if current, taken := byNode[pod.Node]; !taken || current.Deleting {
				byNode[pod.Node] = pod
			}
		}
		var results []Result
		for _, node := range spec.Nodes {
			pod, scheduled := byNode[node.Name]
			switch {
			case seen.Agents.Err != nil:
				results = append(results, unreadable(node.Name, "agent pods", seen.Agents.Err))
			case !seen.Agents.Synced:
				results = append(results, unseen(node.Name, "agent pod"))
			case !scheduled:
				result := failed(node.Name, "no agent pod on this node")
				result.Command = fmt.Sprintf("kubectl -n %s get pods -o wide -l %s", spec.Cilium.Namespace, spec.Cilium.AgentSelector)
				results = append(results, result)
			default:
				results = append(results, podReady(node.Name, pod, spec.Cilium.Version))
			}
		}
		return results
	}}
}

// Without it the gate could open on the pods of the old template, right after the chart's values changed.
func ciliumRollout(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "Cilium's newest version is rolled out", Evaluate: func(seen *Cluster) []Result {
		if spec.Cilium == nil {
			return withoutCNI()
		}
		return append(rollout("agent DaemonSet", spec.Cilium.AgentSelector, seen.AgentSets),
			rollout("operator Deployment", spec.Cilium.OperatorSelector, seen.Operator)...)
	}}
}

func rollout(what, selector string, workloads Seen[Workload]) []Result {
	switch {
	case workloads.Err != nil:
		return []Result{unreadable(what, "it", workloads.Err)}
	case !workloads.Synced:
		return []Result{unseen(what, "it")}
	case len(workloads.Items) == 0:
		return []Result{failed(what, "none with labels "+selector+" exists")}
	}
	var results []Result
	for _, w := range workloads.Items {
		result := passed(what)
		switch {
		case !w.Observed:
			result = failed(what, "its controller has not seen the newest spec yet")
		case w.Updated < w.Desired:
			result = failed(what, fmt.Sprintf("%d of %d pods are of the newest spec", w.Updated, w.Desired))
		}
		if result.Verdict == Failed {
			result.Command = fmt.Sprintf("kubectl -n %s rollout status %s/%s", w.Namespace, strings.ToLower(w.Kind), w.Name)
		}
		results = append(results, result)
	}
	return results
}

// Two operators are declared from the start, on different nodes: with one node one of them stays Pending, and that is normal.
func ciliumOperator(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "the Cilium operator is Ready", Evaluate: func(seen *Cluster) []Result {
		if spec.Cilium == nil {
			return withoutCNI()
		}
		switch {
		case seen.Operators.Err != nil:
			return []Result{unreadable("", "operator pods", seen.Operators.Err)}
		case !seen.Operators.Synced:
			return []Result{unseen("", "operator pods")}
		}
		replicas := 2
		if len(seen.Operator.Items) > 0 {
			replicas = seen.Operator.Items[0].Desired
		}
		want := max(1, min(replicas, len(spec.Nodes)))
		ready, waiting := 0, []Result{}
		for _, pod := range seen.Operators.Items {
			if pod.Deleting {
				continue
			}
			if result := podReady(pod.Name, pod, ""); result.Verdict == Passed {
				ready++
			} else {
				waiting = append(waiting, result)
			}
		}
		if ready >= want {
			result := passed("")
			if len(waiting) > 0 && want < replicas {
				result.Reason = fmt.Sprintf("%d of %d pods, as many as %d node can hold", ready, replicas, len(spec.Nodes))
			}
			return []Result{result}
		}
		if len(waiting) == 0 {
			result := failed("", fmt.Sprintf("%d of %d pods are Ready and no other exists", ready, want))
			result.Command = fmt.Sprintf("kubectl -n %s get pods,deployments -l %s", spec.Cilium.Namespace, spec.Cilium.OperatorSelector)
			return []Result{result}
		}
		return waiting
	}}
}

// podReady says what keeps a pod from being Ready, and which of its containers does.
func podReady(subject string, pod Pod, version string) Result {
	name := pod.Namespace + "/" + pod.Name
	result := passed(subject)
	switch {
	case pod.Deleting:
		result = failed(subject, "pod "+name+" is being deleted")
	case pod.Node == "":
		result = failed(subject, "pod "+name+" is not scheduled")
		if pod.Unscheduled != "" {
			result.Reason += ": " + pod.Unscheduled
		}
	case !pod.Ready:
		result = failed(subject, "pod "+name+" is "+or(pod.Phase, "in no phase")+", not Ready")
	case version != "" && !runsVersion(pod, version):
		result = failed(subject, "pod "+name+" does not run version "+version)
		for _, c := range pod.Containers {
			if !c.Init {
				result.Evidence = append(result.Evidence, "container "+c.Name+" runs "+c.Image)
			}
		}
	}
	if result.Verdict == Passed {
		return result
	}
	result.Command = fmt.Sprintf("kubectl -n %s describe pod %s", pod.Namespace, pod.Name)
	for _, c := range pod.Containers {
		if pod.Ready || c.Ready || c.State == "" {
			continue
		}
		line := "container " + c.Name + ": " + c.State
		if c.Restarts > 0 {
			line += fmt.Sprintf(", %d restarts", c.Restarts)
			result.Command = fmt.Sprintf("kubectl -n %s logs %s -c %s --previous", pod.Namespace, pod.Name, c.Name)
		}
		if c.Last != "" {
			line += ", last: " + c.Last
		}
		result.Evidence = append(result.Evidence, line)
	}
	return result
}

// runsVersion looks for the version among the image tags: registries and digests differ between installations, tags do not.
func runsVersion(pod Pod, version string) bool {
	return slices.ContainsFunc(pod.Containers, func(c Container) bool {
		image, _, _ := strings.Cut(c.Image, "@")
		_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
		return !c.Init && tagged && strings.TrimPrefix(tag, "v") == strings.TrimPrefix(version, "v")
	})
}
