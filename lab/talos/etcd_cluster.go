package talos

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// etcdCluster is the etcd cluster that one Bootstrap call has created. Guarded by site.mu.
type etcdCluster struct {
	id           string // usable as a directory name
	members      []*member
	leader       *member
	term         uint64
	index        uint64
	controlPlane ControlPlane // nil unless it runs
	stopped      chan struct{}
	ready        bool
}

// member is a member of etcd. Its data is part of an installation.
type member struct {
	id      uint64
	name    string
	address netip.Addr
	learner bool
	removed bool
	boot    *boot        // the boot that runs it; nil while it does not run
	process *etcdProcess // that runs, or has run last; nil before the first
}

// runs tells whether the member's etcd runs, and its data has not been wiped.
func (m *member) runs() bool { return m.boot != nil && m.boot.inst.etcd == m }

func newMember(b *boot) *member {
	return &member{id: binary.BigEndian.Uint64(randomBytes(8)), name: b.hostname, address: b.etcdAddress()}
}

// up returns the boots whose etcd runs, in order of address.
func (e *etcdCluster) up() []*boot {
	var out []*boot
	if e != nil {
		for _, m := range e.members {
			if m.runs() {
				out = append(out, m.boot)
			}
		}
	}
	return byAddress(out)
}

// quorum tells whether a majority of the voting members runs and has a leader.
func (e *etcdCluster) quorum() bool { return e.leads() != nil }

// leads returns the member that leads, or that is elected next: a voting one to which a majority of the voting members is connected. nil:
// there is none.
func (e *etcdCluster) leads() *member {
	if e == nil {
		return nil
	}
	voters := slices.DeleteFunc(slices.Clone(e.members), func(m *member) bool { return m.learner })
	canLead := func(m *member) bool {
		n := 0
		for _, o := range voters {
			if o.runs() && m.reaches(o) {
				n++
			}
		}
		return m.runs() && n > len(voters)/2
	}
	if e.leader != nil && !e.leader.removed && canLead(e.leader) {
		return e.leader
	}
	if i := slices.IndexFunc(voters, canLead); i >= 0 {
		return voters[i]
	}
	return nil
}

// elect elects a running member as leader if there is a quorum.
func (e *etcdCluster) elect() {
	former := e.leader
	e.leader = e.leads()
	if e.leader != nil && e.leader != former {
		e.term++
	}
}

// canLose tells whether etcd can lose a member: it is not the only one, and the others have a quorum.
func (e *etcdCluster) canLose(m *member) bool {
	rest := slices.DeleteFunc(slices.Clone(e.members), func(o *member) bool { return o == m })
	return slices.Contains(e.members, m) && (&etcdCluster{members: rest}).quorum()
}

// removeError is etcd's error for the removal of a member, nil if it removes it.
func (e *etcdCluster) removeError(m *member) error {
	switch {
	case e.canLose(m):
		return nil
	case len(e.members) == 1:
		return status.Error(codes.FailedPrecondition, "etcdserver: re-configuration failed due to not enough started members")
	}
	return status.Error(codes.Unavailable, "etcdserver: unhealthy cluster")
}

// named returns the members with a name.
func (e *etcdCluster) named(name string) []*member {
	return slices.DeleteFunc(slices.Clone(e.members), func(m *member) bool { return m.name != name })
}

// canLoseAll tells whether etcd can lose each of some members.
func (e *etcdCluster) canLoseAll(members []*member) bool {
	return !slices.ContainsFunc(members, func(m *member) bool { return !e.canLose(m) })
}

// takesMember tells whether a member that runs is connected to all members with a vote, but for those of a name, which a new one replaces.
// etcd takes no new member otherwise, whatever its quorum.
func (e *etcdCluster) takesMember(name string) bool {
	voters := slices.DeleteFunc(slices.Clone(e.members), func(m *member) bool { return m.learner || m.name == name })
	connected := func(m *member) bool {
		return m.runs() && !slices.ContainsFunc(voters, func(o *member) bool { return !o.runs() || !m.reaches(o) })
	}
	return len(voters) == 0 || slices.ContainsFunc(voters, connected)
}

// hasLearnerBut tells whether a member other than those of a name is a learner.
func (e *etcdCluster) hasLearnerBut(name string) bool {
	return slices.ContainsFunc(e.members, func(m *member) bool { return m.learner && m.name != name })
}

// remove removes a member from the cluster.
func (e *etcdCluster) remove(m *member) {
	m.removed = true
	e.members = slices.DeleteFunc(e.members, func(o *member) bool { return o == m })
}
