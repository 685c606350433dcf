package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func talosAnswers(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "the Talos API answers on every node", Evaluate: func(seen *Cluster) []Result {
		var results []Result
		reasons := map[string]bool{}
		for _, node := range spec.Nodes {
			talos := seen.Talos[node.Name]
			result := passed(node.Name)
			switch {
			case talos.Err != nil:
				result = failed(node.Name, "does not answer at "+node.Address+": "+talos.Err.Reason)
				result.Hopeless = talos.Err.Hopeless
				result.Command = "talosctl -n " + node.Address + " version"
				reasons[talos.Err.Reason] = true
			case !talos.Asked:
				result = unseen(node.Name, "Talos API")
				reasons[""] = true
			default:
				reasons[""] = true
			}
			results = append(results, result)
		}
		// One cause that all of them share, such as refused credentials, is said once.
		if len(reasons) == 1 && !reasons[""] && len(results) > 1 {
			talos := seen.Talos[spec.Nodes[0].Name]
			result := failed("", "no node answers: "+talos.Err.Reason)
			result.Hopeless, result.Command = talos.Err.Hopeless, results[0].Command
			return []Result{result}
		}
		return results
	}}
}

// Talos's own health check looks at the control planes' kubelets only; this one looks at every node.
func talosServices(spec *GateSpec) Check[*Cluster] {
	name := "apid, machined, kubelet and extensions run on every node, etcd and trustd on control planes"
	return Check[*Cluster]{Name: name, Evaluate: func(seen *Cluster) []Result {
		var results []Result
		for _, node := range spec.Nodes {
			want := []string{"apid", "machined", "kubelet"}
			if node.Role == ControlPlane {
				want = append(want, "etcd", "trustd")
			}
			results = append(results, nodeServices(node, append(want, spec.Services...), seen.Talos[node.Name]))
		}
		return results
	}}
}

func nodeServices(node Node, want []string, talos TalosNode) Result {
	switch {
	case talos.Err != nil:
		return blocked(node.Name, "its Talos API does not answer")
	case !talos.Asked:
		return unseen(node.Name, "Talos services")
	}
	for _, id := range slices.Sorted(maps.Keys(talos.Services)) {
		if strings.HasPrefix(id, "ext-") && !slices.Contains(want, id) {
			want = append(want, id)
		}
	}
	var problems []string
	result := failed(node.Name, "")
	for _, id := range want {
		problem := serviceProblem(talos.Services, id)
		if problem == "" {
			continue
		}
		problems = append(problems, id+" "+problem)
		service, present := talos.Services[id]
		if service.LastEvent != "" {
			result.Evidence = append(result.Evidence, "last event of "+id+": "+service.LastEvent)
		}
		if present {
			result = result.asks(Question{Kind: ServiceLog, Name: id, Address: node.Address, Node: node.Name})
		}
		if result.Command == "" {
			result.Command = fmt.Sprintf("talosctl -n %s service %s; talosctl -n %[1]s logs %[2]s", node.Address, id)
		}
	}
	if len(problems) == 0 {
		return passed(node.Name)
	}
	result.Reason = strings.Join(problems, "; ")
	return result
}

func serviceProblem(services map[string]Service, id string) string {
	service, present := services[id]
	extension := strings.HasPrefix(id, "ext-")
	switch {
	case !present:
		return "is not a service of this node yet"
	case extension && service.State == "Finished":
		return "" // some run once, such as the one that imports storage pools
	case service.State != "Running":
		return "is " + or(service.State, "in no state")
	case extension && !service.Known:
		return "" // an extension's service has no health check
	case !service.Known:
		return "is Running, its health is not known yet"
	case !service.Healthy:
		return "is Running and not healthy: " + or(service.HealthError, "no message")
	}
	return ""
}
