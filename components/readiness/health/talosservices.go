package health

import "strings"

// Talos's own health check looks at the control planes' kubelets only; this one looks at every node.
func talosServices(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "apid, kubelet and on control planes etcd run on every node", Evaluate: func(seen *Cluster) []Result {
		var results []Result
		for _, node := range spec.Nodes {
			want := []string{"apid", "kubelet"}
			if node.Role == ControlPlane {
				want = []string{"apid", "etcd", "kubelet"}
			}
			results = append(results, nodeServices(node, want, seen.Talos[node.Name]))
		}
		return results
	}}
}

func nodeServices(node Node, want []string, talos TalosNode) Result {
	switch {
	case talos.Err != nil:
		result := unreadable(node.Name, "Talos services", talos.Err)
		result.Command = "talosctl -n " + node.Address + " services"
		return result
	case !talos.Asked:
		return unseen(node.Name, "Talos services")
	}
	var problems, evidence []string
	command := ""
	for _, id := range want {
		problem := serviceProblem(talos.Services, id)
		if problem == "" {
			continue
		}
		problems = append(problems, id+" "+problem)
		if event := talos.Services[id].LastEvent; event != "" {
			evidence = append(evidence, "last event of "+id+": "+event)
		}
		if command == "" {
			command = "talosctl -n " + node.Address + " service " + id
		}
	}
	if len(problems) == 0 {
		return passed(node.Name)
	}
	result := failed(node.Name, strings.Join(problems, "; "))
	result.Evidence, result.Command = evidence, command
	return result
}

func serviceProblem(services map[string]Service, id string) string {
	service, present := services[id]
	switch {
	case !present:
		return "is not a service of this node yet"
	case service.State != "Running":
		return "is " + or(service.State, "in no state")
	case !service.Known:
		return "is Running, its health is not known yet"
	case !service.Healthy:
		return "is Running and not healthy: " + or(service.HealthError, "no message")
	}
	return ""
}
