package health

// Where something has failed, what depends on it is skipped: the culprit is named once, its consequences are counted. What follows
// tells a check whether its subject can be looked at, and if not, because of what.

// unread is the result of a check whose objects cannot be looked at in Kubernetes; nil if they can.
func unread[T any](seen *Cluster, what string, objects Seen[T]) []Result {
	switch {
	case seen.API.Asked && !seen.API.Ready:
		return []Result{blocked("", "the API server is not ready")}
	case objects.Err != nil && objects.Err.Gone:
		return []Result{blocked("", "the API server does not answer")}
	case objects.Err != nil:
		return []Result{unreadable("", what, objects.Err)}
	case !objects.Synced:
		return []Result{unseen("", what)}
	}
	return nil
}

// kubeletDown says that Talos reports the node's kubelet as not running; "" if it runs, or if nobody knows.
func (seen *Cluster) kubeletDown(node Node) string {
	talos := seen.Talos[node.Name]
	if talos.Asked && talos.Err == nil && !talos.Services["kubelet"].well() {
		return "the kubelet of " + node.Name + " does not run"
	}
	return ""
}

// kubeNode finds a registered node by its declared name.
func (seen *Cluster) kubeNode(name string) (KubeNode, bool) {
	for _, node := range seen.Nodes.Items {
		if node.Name == name {
			return node, true
		}
	}
	return KubeNode{}, false
}

// absent says why nothing that runs on a node can be expected to be well; "" if it can.
func (seen *Cluster) absent(node Node) string {
	if down := seen.kubeletDown(node); down != "" {
		return down
	}
	if other := seen.misnamed(node); other != "" {
		return node.Name + " is registered as " + other
	}
	switch registered, ok := seen.kubeNode(node.Name); {
	case seen.Nodes.Synced && !ok:
		return node.Name + " is not registered"
	case registered.Ready == "Unknown":
		return "nothing is heard of " + node.Name
	}
	return ""
}

// misnamed is the other name under which a node has registered; "" if it has not. A Node object may be left behind from before: the one
// that its kubelet reports to counts.
func (seen *Cluster) misnamed(want Node) string {
	right, _ := seen.kubeNode(want.Name)
	for _, node := range seen.Nodes.Items {
		if node.Name != want.Name && node.answersAt(want) && (right.Name == "" || node.Heard.After(right.Heard)) {
			return node.Name
		}
	}
	return ""
}

// gone is why a collection of objects cannot be read although the API server said that it is ready; nil if all can.
func (seen *Cluster) gone() *Broken {
	for _, err := range []*Broken{
		seen.Nodes.Err, seen.Services.Err, seen.Agents.Err, seen.Operators.Err, seen.AgentSets.Err, seen.Operator.Err, seen.Config.Err, seen.Ranges.Err,
	} {
		if err != nil && err.Gone {
			return err
		}
	}
	return nil
}

// agentOn is the agent pod that speaks for a node. A pod that is being replaced does only as long as there is no other.
func (seen *Cluster) agentOn(node string) (Pod, bool) {
	var agent Pod
	found := false
	for _, pod := range seen.Agents.Items {
		if pod.Node == node && (!found || agent.Deleting) {
			agent, found = pod, true
		}
	}
	return agent, found
}
