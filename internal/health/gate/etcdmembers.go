package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/health"
)

// Etcd is what a control plane says of etcd.
type Etcd struct {
	Asked   bool
	Err     *health.Broken // members cannot be listed
	Members []talosapi.Member

	StatusErr *health.Broken // its own member's status cannot be read
	Leader    uint64         // member id of the leader it follows, 0 without one
	Errors    []string
	Alarms    []string // as etcd names them, with the member, e.g. "NOSPACE of member 8e9e05c52164694d"
}

// EtcdMembersName is the name of the check whose results tell, for each declared control plane, whether it is a member of etcd.
const EtcdMembersName = "etcd has exactly the declared members, none a learner"

// Every control plane is asked for its list: after a network split the two sides list different members. The result is about the member: a
// missing member is one result, not one for each control plane that does not list it.
var etcdMembers = check{
	Name:   EtcdMembersName,
	Looks:  "every control plane lists the declared control planes, and no others",
	ByHand: "talosctl -n ADDRESS etcd members",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		lists, results := memberLists(spec, seen)
		if len(lists) == 0 {
			return results
		}
		for _, node := range spec.controlPlanes() {
			results = append(results, memberResult(node, lists, seen))
		}
		for _, member := range undeclaredMembers(spec, lists) {
			results = append(results, health.Fail(member.Title(), "is a member of etcd and no declared control plane").
				WithCommand("talosctl -n "+lists[0].node.Address.String()+" etcd members"))
		}
		return results
	},
}

// memberList is the list of members of one control plane.
type memberList struct {
	node    Machine
	members []talosapi.Member
}

// memberLists returns the lists that could be read, and results about the others.
func memberLists(spec *Spec, seen *Cluster) (lists []memberList, results []health.Result) {
	notAsked := false
	for _, node := range spec.controlPlanes() {
		talos := seen.Talos[node.Name]
		switch {
		case talos.Err != nil:
		case !talos.Asked || !talos.Etcd.Asked:
			notAsked = true
		case talos.Etcd.Err == nil:
			lists = append(lists, memberList{node, talos.Etcd.Members})
		case talos.Services["etcd"].Well():
			results = append(results, health.Unreadable(node.Name, "its list of members", talos.Etcd.Err))
		}
	}
	switch {
	case len(lists) > 0 || len(results) > 0:
	case notAsked:
		results = []health.Result{health.NotSeen("", "etcd members")}
	default:
		results = []health.Result{health.Block("", "no control plane's etcd answers")}
	}
	return lists, results
}

func memberResult(node Machine, lists []memberList, seen *Cluster) health.Result {
	var missing, learner, notStarted []string // the control planes that say so
	for _, list := range lists {
		member, listed := findMember(node, list.members)
		switch {
		case !listed:
			missing = append(missing, list.node.Name)
		case member.Learner:
			learner = append(learner, list.node.Name)
		case member.Name == "":
			notStarted = append(notStarted, list.node.Name)
		}
	}
	var result health.Result
	switch {
	case len(missing) > 0:
		result = health.Fail(node.Name, "is no member of etcd, according to "+strings.Join(missing, ", "))
	case len(learner) > 0:
		result = health.Fail(node.Name, "is a learner of etcd only, according to "+strings.Join(learner, ", "))
	case len(notStarted) > 0:
		result = health.Fail(node.Name, "was added to etcd and has not started, according to "+strings.Join(notStarted, ", "))
	default:
		return health.Pass(node.Name)
	}
	talos := seen.Talos[node.Name]
	service := talos.Services["etcd"]
	switch {
	case talos.Err != nil:
		result = result.WithEvidence("its Talos API does not answer")
	case service.State != "":
		line := "its etcd is " + service.State
		if service.Message != "" {
			line += ": " + service.Message
		}
		result = result.WithEvidence(line).Asks(node.log("etcd"))
	}
	return result.WithEvidence("members that " + lists[0].node.Name + " lists: " + memberNames(lists[0].members)).
		WithCommand(fmt.Sprintf("talosctl -n %s etcd members; talosctl -n ADDRESS logs etcd", lists[0].node.Address))
}

// findMember finds a node among members: by name, or by its address before the member has started.
func findMember(node Machine, members []talosapi.Member) (talosapi.Member, bool) {
	for _, member := range members {
		address := slices.Contains(member.Addresses, node.Address) || slices.Contains(member.Addresses, node.Address6)
		if member.Name == node.Name || member.Name == "" && address {
			return member, true
		}
	}
	return talosapi.Member{}, false
}

func undeclaredMembers(spec *Spec, lists []memberList) []talosapi.Member {
	var undeclared []talosapi.Member
	known := map[string]bool{}
	for _, list := range lists {
		for _, member := range list.members {
			declared := slices.ContainsFunc(spec.controlPlanes(), func(node Machine) bool {
				_, found := findMember(node, []talosapi.Member{member})
				return found
			})
			if !declared && !known[member.Title()] && !spec.Skip.Has(member.Name) {
				known[member.Title()] = true
				undeclared = append(undeclared, member)
			}
		}
	}
	return undeclared
}

func memberNames(members []talosapi.Member) string {
	var names []string
	for _, member := range members {
		name := cmp.Or(member.Name, "(not started)")
		if member.Learner {
			name += " (learner)"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return cmp.Or(strings.Join(names, ", "), "none")
}
