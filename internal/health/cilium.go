package health

import (
	"fmt"
	"slices"
	"strings"
)

// withoutCNI is what every check of Cilium says where none is expected.
func withoutCNI() []Result {
	return []Result{skipped("", "no CNI is expected yet")}
}

func ciliumAgents(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "a Cilium agent is Ready on every node", Evaluate: func(seen *Cluster) []Result {
		if spec.Cilium == nil {
			return withoutCNI()
		}
		if results := unread(seen, "agent pods", seen.Agents); results != nil {
			return results
		}
		if seen.AgentSets.Synced && len(seen.AgentSets.Items) == 0 {
			return []Result{blocked("", "Cilium is not installed")}
		}
		var results []Result
		for _, node := range spec.Nodes {
			pod, scheduled := seen.agentOn(node.Name)
			absent := seen.absent(node)
			switch {
			case absent != "" && (!scheduled || !pod.Ready):
				results = append(results, blocked(node.Name, absent))
			case !scheduled:
				result := failed(node.Name, "no agent pod is on this node")
				if registered, _ := seen.kubeNode(node.Name); len(registered.Taints) > 0 {
					result.Evidence = []string{"taints: " + strings.Join(registered.Taints, ", ")}
				}
				result.Command = fmt.Sprintf("kubectl -n %s describe daemonset -l %s", spec.Cilium.Namespace, spec.Cilium.AgentSelector)
				for _, set := range seen.AgentSets.Items {
					result = result.asks(Question{Kind: Events, Object: set.Kind, Namespace: set.Namespace, Name: set.Name})
				}
				results = append(results, result)
			default:
				results = append(results, podReady(node.Name, pod, spec.Cilium.Version))
			}
		}
		return results
	}}
}

// agentsReady says why the agents cannot be asked yet: before all of them are Ready, what they say of each other is the consequence of
// what the others lack. It is nil once they can.
func agentsReady(spec *GateSpec, seen *Cluster) []Result {
	if results := unread(seen, "agent pods", seen.Agents); results != nil {
		return results
	}
	for _, node := range spec.Nodes {
		if absent := seen.absent(node); absent != "" {
			return []Result{blocked("", absent)}
		}
		if pod, scheduled := seen.agentOn(node.Name); !scheduled || !pod.Ready || pod.Deleting {
			return []Result{blocked("", "the agents are not all Ready, "+node.Name+"'s is not")}
		}
	}
	return nil
}

// Without it the gate could open on the pods of the old template, right after the chart's values changed.
func ciliumRollout(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "Cilium's newest version is rolled out", Evaluate: func(seen *Cluster) []Result {
		if spec.Cilium == nil {
			return withoutCNI()
		}
		if seen.API.Asked && !seen.API.Ready {
			return []Result{blocked("", "the API server is not ready")}
		}
		return append(rollout("agent DaemonSet", spec, spec.Cilium.AgentSelector, seen.AgentSets),
			rollout("operator Deployment", spec, spec.Cilium.OperatorSelector, seen.Operator)...)
	}}
}

func rollout(what string, spec *GateSpec, selector string, workloads Seen[Workload]) []Result {
	switch {
	case workloads.Err != nil && workloads.Err.Gone:
		return []Result{blocked(what, "the API server does not answer")}
	case workloads.Err != nil:
		return []Result{unreadable(what, "it", workloads.Err)}
	case !workloads.Synced:
		return []Result{unseen(what, "it")}
	case len(workloads.Items) == 0:
		result := failed(what, "none with labels "+selector+" exists")
		switch spec.Cilium.Mode {
		case CiliumHelm:
			result.Command = fmt.Sprintf("helm -n %s list -a", spec.Cilium.Namespace)
		case CiliumInline:
			result.Command = "talosctl -n " + spec.controlPlanes()[0].Address + " get manifests"
		}
		return []Result{result}
	}
	var results []Result
	for _, w := range workloads.Items {
		result := passed(what)
		switch {
		case spec.Cilium.Mode == CiliumHelm && w.Release == "":
			result = failed(what, w.Name+" belongs to no Helm release; it was made by an inline manifest or by hand")
			result.Hopeless = true
		// Inline manifests bear Helm's mark, too, so that a release can take the objects over: in that mode it says nothing.
		case !w.Observed:
			result = failed(what, "its controller has not seen the newest spec yet")
		case w.Updated < w.Desired:
			result = failed(what, fmt.Sprintf("%d of %d pods are of the newest spec", w.Updated, w.Desired))
			result = result.asks(Question{Kind: Events, Object: w.Kind, Namespace: w.Namespace, Name: w.Name})
		}
		if result.Verdict == Failed {
			result.Command = fmt.Sprintf("kubectl -n %s rollout status %s/%s", w.Namespace, strings.ToLower(w.Kind), w.Name)
			if result.Hopeless {
				result.Command = fmt.Sprintf("kubectl -n %s get %s %s -o yaml", w.Namespace, strings.ToLower(w.Kind), w.Name)
			}
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
		if results := unread(seen, "operator pods", seen.Operators); results != nil {
			return results
		}
		if seen.Operator.Synced && len(seen.Operator.Items) == 0 {
			return []Result{blocked("", "Cilium is not installed")}
		}
		replicas := 2
		if len(seen.Operator.Items) > 0 {
			replicas = seen.Operator.Items[0].Desired
		}
		usable := 0
		for _, node := range seen.Nodes.Items {
			if !node.Cordoned {
				usable++
			}
		}
		want := max(1, min(replicas, usable))
		ready, lost, waiting := 0, 0, []Result{}
		for _, pod := range seen.Operators.Items {
			lost += pod.Lost
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
			result.Lost = lost
			if len(waiting) > 0 && want < replicas {
				result.Reason = fmt.Sprintf("%d of %d pods, as many as %d node can hold", ready, replicas, usable)
			}
			return []Result{result}
		}
		if len(waiting) == 0 {
			result := failed("", "no operator pod exists")
			if ready > 0 {
				result.Reason = fmt.Sprintf("%d of %d pods are Ready and no other exists", ready, want)
			}
			result.Command = fmt.Sprintf("kubectl -n %s describe deployments,replicasets -l %s", spec.Cilium.Namespace, spec.Cilium.OperatorSelector)
			for _, w := range seen.Operator.Items {
				result = result.asks(Question{Kind: Events, Object: w.Kind, Namespace: w.Namespace, Name: w.Name})
			}
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
	result.Lost = pod.Lost
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
		if c.Restarts > 0 || c.Last != "" {
			result = result.asks(Question{Kind: PodLog, Namespace: pod.Namespace, Name: pod.Name, Container: c.Name, Previous: true})
		} else if strings.HasPrefix(c.State, "running") {
			result = result.asks(Question{Kind: PodLog, Namespace: pod.Namespace, Name: pod.Name, Container: c.Name})
		}
	}
	if why := stuckContainer(pod); why != "" {
		result.Reason += ": " + why
	}
	return result.asks(Question{Kind: Events, Object: "Pod", Namespace: pod.Namespace, Name: pod.Name})
}

// stuckContainer is the first container that waits for more than its turn, with the kubelet's word for it.
func stuckContainer(pod Pod) string {
	for _, c := range pod.Containers {
		why, waits := strings.CutPrefix(c.State, "waiting: ")
		why, _, _ = strings.Cut(why, ":")
		if !pod.Ready && waits && why != "PodInitializing" && why != "ContainerCreating" {
			return c.Name + " is in " + why
		}
	}
	return ""
}

// runsVersion looks for the version among the image tags: registries and digests differ between installations, tags do not.
func runsVersion(pod Pod, version string) bool {
	return slices.ContainsFunc(pod.Containers, func(c Container) bool {
		image, _, _ := strings.Cut(c.Image, "@")
		_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
		return !c.Init && tagged && strings.TrimPrefix(tag, "v") == strings.TrimPrefix(version, "v")
	})
}
