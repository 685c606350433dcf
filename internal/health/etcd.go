package health

import (
	"fmt"
	"slices"
	"strings"
)

// Every control plane is asked for its own view: after a split each half would answer for itself. What the views say is put together
// by member, so that one missing member is one result, not one for each that misses it.
func etcdMembers(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "etcd has exactly the declared members, none a learner", Evaluate: func(seen *Cluster) []Result {
		views, results := etcdViews(spec, seen)
		if len(views) == 0 {
			return results
		}
		for _, node := range spec.controlPlanes() {
			results = append(results, memberResult(node, views, seen))
		}
		for _, stranger := range strangeMembers(spec, views) {
			result := failed(stranger.title(), "is a member of etcd and no declared control plane")
			result.Command = "talosctl -n " + views[0].node.Address + " etcd members"
			results = append(results, result)
		}
		return results
	}}
}

// etcdView is the list of members as one control plane sees it.
type etcdView struct {
	node    Node
	members []EtcdMember
}

// etcdViews are the views that can be had, and the results about those that cannot.
func etcdViews(spec *GateSpec, seen *Cluster) (views []etcdView, results []Result) {
	blame, unasked := "no control plane's etcd answers", false
	for _, node := range spec.controlPlanes() {
		talos := seen.Talos[node.Name]
		switch {
		case talos.Err != nil:
		case !talos.Asked || !talos.Etcd.Asked:
			unasked = true
		case talos.Etcd.Err == nil:
			views = append(views, etcdView{node, talos.Etcd.Members})
		case talos.Services["etcd"].well():
			result := unreadable(node.Name, "its list of members", talos.Etcd.Err)
			result.Command = "talosctl -n " + node.Address + " etcd members"
			results = append(results, result)
		}
	}
	switch {
	case len(views) > 0 || len(results) > 0:
	case unasked:
		results = []Result{unseen("", "etcd members")}
	default:
		results = []Result{blocked("", blame)}
	}
	return views, results
}

func memberResult(node Node, views []etcdView, seen *Cluster) Result {
	var missing, learner, unstarted []string
	for _, view := range views {
		member, listed := memberOf(node, view.members)
		switch {
		case !listed:
			missing = append(missing, view.node.Name)
		case member.Learner:
			learner = append(learner, view.node.Name)
		case member.Name == "":
			unstarted = append(unstarted, view.node.Name)
		}
	}
	result := passed(node.Name)
	switch {
	case len(missing) > 0:
		result = failed(node.Name, "is no member of etcd, as "+strings.Join(missing, ", ")+" see it")
	case len(learner) > 0:
		result = failed(node.Name, "is a learner of etcd only, as "+strings.Join(learner, ", ")+" see it")
	case len(unstarted) > 0:
		result = failed(node.Name, "has been added to etcd and has not started, as "+strings.Join(unstarted, ", ")+" see it")
	default:
		return result
	}
	talos := seen.Talos[node.Name]
	service := talos.Services["etcd"]
	switch {
	case talos.Err != nil:
		result.Evidence = append(result.Evidence, "its Talos API does not answer")
	case service.State != "":
		line := "its etcd is " + service.State
		if service.LastEvent != "" {
			line += ": " + service.LastEvent
		}
		result.Evidence = append(result.Evidence, line)
		result = result.asks(Question{Kind: ServiceLog, Name: "etcd", Address: node.Address, Node: node.Name})
	}
	result.Evidence = append(result.Evidence, "members that "+views[0].node.Name+" lists: "+listMembers(views[0].members))
	result.Command = fmt.Sprintf("talosctl -n %s etcd members; talosctl -n %s logs etcd", views[0].node.Address, node.Address)
	return result
}

// memberOf finds a node among members: by name, or by its address as long as the member has not started.
func memberOf(node Node, members []EtcdMember) (EtcdMember, bool) {
	for _, member := range members {
		if member.Name == node.Name || member.Name == "" && (slices.Contains(member.Hosts, node.Address) || slices.Contains(member.Hosts, node.Address6)) {
			return member, true
		}
	}
	return EtcdMember{}, false
}

func strangeMembers(spec *GateSpec, views []etcdView) []EtcdMember {
	var strangers []EtcdMember
	known := map[string]bool{}
	for _, view := range views {
		for _, member := range view.members {
			declared := slices.ContainsFunc(spec.controlPlanes(), func(node Node) bool {
				_, found := memberOf(node, []EtcdMember{member})
				return found
			})
			if !declared && !known[member.title()] {
				known[member.title()] = true
				strangers = append(strangers, member)
			}
		}
	}
	return strangers
}

func (m EtcdMember) title() string {
	if m.Name == "" {
		return fmt.Sprintf("member %x", m.ID)
	}
	return m.Name
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

// Members that follow different leaders, or none, are no cluster, whatever their lists say.
func etcdHealthy(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "etcd follows one leader, without errors or alarms", Evaluate: func(seen *Cluster) []Result {
		followers := map[uint64]int{}
		names := map[uint64]string{}
		for _, node := range spec.controlPlanes() {
			etcd := seen.Talos[node.Name].Etcd
			if etcd.Leader != 0 {
				followers[etcd.Leader]++
			}
			for _, member := range etcd.Members {
				names[member.ID] = member.title()
			}
		}
		var results []Result
		for _, node := range spec.controlPlanes() {
			results = append(results, etcdMemberHealth(node, seen.Talos[node.Name], followers, names))
		}
		return results
	}}
}

func etcdMemberHealth(node Node, talos TalosNode, followers map[uint64]int, names map[uint64]string) Result {
	etcd := talos.Etcd
	var problems []string
	switch {
	case talos.Err != nil:
		return blocked(node.Name, "its Talos API does not answer")
	case !talos.Asked || !etcd.Asked:
		return unseen(node.Name, "etcd status")
	case !talos.Services["etcd"].well():
		return blocked(node.Name, "its etcd does not run")
	case etcd.StatusErr != nil:
		result := unreadable(node.Name, "the status of its member", etcd.StatusErr)
		result.Command = "talosctl -n " + node.Address + " etcd status"
		return result
	case etcd.Leader == 0:
		problems = append(problems, "knows no leader")
	default:
		for leader, count := range followers {
			if leader != etcd.Leader && (count > followers[etcd.Leader] || count == followers[etcd.Leader] && leader > etcd.Leader) {
				problems = append(problems, fmt.Sprintf("follows %s as the leader, others follow %s", or(names[etcd.Leader], "a stranger"), or(names[leader], "a stranger")))
			}
		}
	}
	for _, text := range etcd.Errors {
		problems = append(problems, "reports: "+text)
	}
	for _, alarm := range etcd.Alarms {
		problems = append(problems, "raises the alarm "+alarm)
	}
	if len(problems) == 0 {
		return passed(node.Name)
	}
	slices.Sort(problems)
	result := failed(node.Name, strings.Join(problems, "; "))
	result.Command = fmt.Sprintf("talosctl -n %s etcd status; talosctl -n %[1]s etcd alarm list", node.Address)
	return result.asks(Question{Kind: ServiceLog, Name: "etcd", Address: node.Address, Node: node.Name})
}
