package health

import (
	"slices"
	"strings"
)

// Every control plane is asked for its own view: after a split each half would answer for itself.
func etcdMembers(spec *GateSpec) Check[*Cluster] {
	var declared []string
	for _, node := range spec.controlPlanes() {
		declared = append(declared, node.Name)
	}
	return Check[*Cluster]{Name: "etcd has exactly the declared members, none a learner", Evaluate: func(seen *Cluster) []Result {
		var results []Result
		for _, node := range spec.controlPlanes() {
			talos := seen.Talos[node.Name]
			result := passed(node.Name)
			if problem := memberProblem(declared, talos.Members); problem != "" {
				result = failed(node.Name, "sees "+problem)
				result.Evidence = []string{"members it lists: " + listMembers(talos.Members)}
			}
			switch {
			case talos.Err != nil:
				result = unreadable(node.Name, "etcd members", talos.Err)
			case !talos.Asked || !talos.EtcdAsked:
				result = unseen(node.Name, "etcd members")
			case talos.EtcdErr != nil:
				result = unreadable(node.Name, "etcd members", talos.EtcdErr)
			}
			if result.Verdict == Failed && !result.Unseen {
				result.Command = "talosctl -n " + node.Address + " etcd members"
			}
			results = append(results, result)
		}
		return results
	}}
}

func memberProblem(declared []string, members []EtcdMember) string {
	var problems, present []string
	for _, member := range members {
		present = append(present, member.Name)
		switch {
		case member.Learner:
			problems = append(problems, member.Name+" as a learner only")
		case !slices.Contains(declared, member.Name):
			problems = append(problems, "undeclared member "+or(member.Name, "without a name"))
		}
	}
	var missing []string
	for _, name := range declared {
		if !slices.Contains(present, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		problems = append([]string{"no member " + strings.Join(missing, ", ")}, problems...)
	}
	return strings.Join(problems, "; ")
}

func listMembers(members []EtcdMember) string {
	if len(members) == 0 {
		return "none"
	}
	var names []string
	for _, member := range members {
		name := or(member.Name, "(not started)")
		if member.Learner {
			name += " (learner)"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
