package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

// Members that list each other may still follow different leaders, or none.
var etcdHealth = check{
	Name:   "etcd follows one leader, without errors or alarms",
	Looks:  "all members name the same leader, and report no error and no alarm (NOSPACE, CORRUPT)",
	ByHand: "talosctl -n ADDRESS etcd status; talosctl -n ADDRESS etcd alarm list",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		followers, names := map[uint64]int{}, map[uint64]string{} // by member id
		for _, node := range spec.controlPlanes() {
			etcd := seen.Talos[node.Name].Etcd
			if etcd.Leader != 0 {
				followers[etcd.Leader]++
			}
			for _, member := range etcd.Members {
				names[member.ID] = member.Title()
			}
		}
		return eachTalos(spec.controlPlanes(), seen, func(node Machine, talos TalosNode) health.Result {
			return memberHealth(node, talos, followers, names)
		})
	},
}

func memberHealth(node Machine, talos TalosNode, followers map[uint64]int, names map[uint64]string) health.Result {
	etcd := talos.Etcd
	var problems []string
	switch {
	case !talos.Asked || !etcd.Asked:
		return health.NotSeen(node.Name, "etcd status")
	case !talos.Services["etcd"].Well():
		return health.Block(node.Name, "its etcd does not run")
	case etcd.StatusErr != nil:
		return health.Unreadable(node.Name, "the status of its member", etcd.StatusErr)
	case etcd.Leader == 0:
		problems = append(problems, "has no leader")
	default:
		for leader, count := range followers {
			own := followers[etcd.Leader]
			if leader != etcd.Leader && (count > own || count == own && leader > etcd.Leader) {
				problems = append(problems, fmt.Sprintf("follows %s as the leader, others follow %s",
					cmp.Or(names[etcd.Leader], "an unknown member"), cmp.Or(names[leader], "an unknown member")))
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
		return health.Pass(node.Name)
	}
	slices.Sort(problems)
	return health.Fail(node.Name, strings.Join(problems, "; ")).Asks(node.log("etcd"))
}
