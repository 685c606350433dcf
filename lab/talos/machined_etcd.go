package talos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/slipway-platform/slipway/lab/talos/versions"
)

// reachableEtcd returns the etcd cluster if a member, or this node's own, answers this node. If their certificates are not accepted, etcd's
// client tries until the call ends, and so does this. The caller holds the site's mutex.
func (s *machinedServer) reachableEtcd(ctx context.Context, api string, local bool) (*etcdCluster, error) {
	b := s.b
	if !b.config.Machine().Type().IsControlPlane() {
		return nil, status.Errorf(codes.Unimplemented, "%s is only available on control plane nodes", api)
	}
	e := b.cluster.etcd
	switch {
	case len(e.up()) == 0 || local && !b.etcdUp:
		return nil, status.Errorf(codes.Unavailable,
			"connection error: desc = \"transport: Error while dialing: dial tcp %s: connect: connection refused\"",
			net.JoinHostPort(b.primaryLocked().String(), "2379"))
	case len(b.answering(local)) == 0:
		b.site.mu.Unlock()
		<-ctx.Done()
		b.site.mu.Lock()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	e.elect()
	return e, nil
}

// workingEtcd is reachableEtcd for calls that need a leader.
func (s *machinedServer) workingEtcd(ctx context.Context, api string, local bool) (*etcdCluster, error) {
	e, err := s.reachableEtcd(ctx, api, local)
	if err == nil && (!e.quorum() || !slices.ContainsFunc(s.b.answering(local), e.follows)) {
		return nil, status.Error(codes.Unavailable, "etcdserver: no leader")
	}
	return e, err
}

// EtcdMemberList lists the members, learners included.
func (s *machinedServer) EtcdMemberList(ctx context.Context, in *machine.EtcdMemberListRequest) (*machine.EtcdMemberListResponse, error) {
	s.b.site.mu.Lock()
	defer s.b.site.mu.Unlock()
	e, err := s.workingEtcd(ctx, "member list", in.QueryLocal)
	if err != nil {
		return nil, err
	}
	out := &machine.EtcdMembers{}
	for _, m := range e.members {
		host := m.address.String()
		out.LegacyMembers = append(out.LegacyMembers, m.name)
		out.Members = append(out.Members, &machine.EtcdMember{
			Id: m.id, Hostname: m.name, IsLearner: m.learner,
			PeerUrls: []string{"https://" + net.JoinHostPort(host, "2380")}, ClientUrls: []string{"https://" + net.JoinHostPort(host, "2379")},
		})
	}
	return &machine.EtcdMemberListResponse{Messages: []*machine.EtcdMembers{out}}, nil
}

// EtcdStatus returns the state of this node's member, which may have no leader.
func (s *machinedServer) EtcdStatus(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdStatusResponse, error) {
	s.b.site.mu.Lock()
	defer s.b.site.mu.Unlock()
	e, err := s.reachableEtcd(ctx, "etcd status", true)
	if err != nil {
		return nil, err
	}
	own := s.b.inst.etcd
	out := &machine.EtcdMemberStatus{
		MemberId: own.id, ProtocolVersion: versions.Etcd(s.b.version), StorageVersion: "3.6.0", DbSize: 20 << 20, DbSizeInUse: 8 << 20,
		RaftIndex: e.index, RaftTerm: e.term, RaftAppliedIndex: e.index, IsLearner: own.learner,
	}
	if e.follows(own) {
		out.Leader = e.leader.id
	} else {
		out.Errors = []string{"etcdserver: no leader"}
	}
	return &machine.EtcdStatusResponse{Messages: []*machine.EtcdStatus{{MemberStatus: out}}}, nil
}

// EtcdRemoveMemberByID removes a member.
func (s *machinedServer) EtcdRemoveMemberByID(
	ctx context.Context, in *machine.EtcdRemoveMemberByIDRequest,
) (*machine.EtcdRemoveMemberByIDResponse, error) {
	removed, err := s.removeMember(ctx, in.MemberId)
	if err != nil {
		return nil, err
	}
	if removed != nil {
		removed.services.Restart("etcd") // its etcd then fails, because it is no longer a member
	}
	s.b.site.change.Notify()
	return &machine.EtcdRemoveMemberByIDResponse{Messages: []*machine.EtcdRemoveMemberByID{{}}}, nil
}

// removeMember returns the boot that runs the member, nil if none does.
func (s *machinedServer) removeMember(ctx context.Context, id uint64) (*boot, error) {
	s.b.site.mu.Lock()
	defer s.b.site.mu.Unlock()
	e, err := s.workingEtcd(ctx, "etcd remove member", false)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(e.members, func(m *member) bool { return m.id == id })
	if i < 0 {
		return nil, status.Errorf(codes.NotFound, "failed to remove member %d: etcdserver: member not found", id)
	}
	gone := e.members[i]
	if err := e.removeError(gone); err != nil {
		return nil, fmt.Errorf("failed to remove member: failed to remove member %d: %s", id, status.Convert(err).Message())
	}
	e.remove(gone)
	e.index++
	e.elect()
	return gone.boot, nil
}

// EtcdLeaveCluster removes this node's member.
func (s *machinedServer) EtcdLeaveCluster(context.Context, *machine.EtcdLeaveClusterRequest) (*machine.EtcdLeaveClusterResponse, error) {
	if err := s.requireControlPlane("etcd leave"); err != nil {
		return nil, err
	}
	if err := s.b.leaveEtcd(); err != nil {
		return nil, fmt.Errorf("failed to leave cluster: %w", err)
	}
	return &machine.EtcdLeaveClusterResponse{Messages: []*machine.EtcdLeaveCluster{{}}}, nil
}

// EtcdForfeitLeadership makes the first of the other members the leader, if this node's member is the leader. As in Talos, it asks for no
// other member if this one is a learner or does not run. etcd takes seconds to notice that a member does not run, which is not modelled.
func (s *machinedServer) EtcdForfeitLeadership(
	ctx context.Context, _ *machine.EtcdForfeitLeadershipRequest,
) (*machine.EtcdForfeitLeadershipResponse, error) {
	s.b.site.mu.Lock()
	defer s.b.site.mu.Unlock()
	e, err := s.workingEtcd(ctx, "etcd forfeit leadership", false)
	if err != nil {
		return nil, err
	}
	if len(e.members) == 1 {
		return nil, errors.New("failed to forfeit leadership: cannot forfeit leadership, only one member")
	}
	own, reply := s.b.inst.etcd, &machine.EtcdForfeitLeadership{}
	switch {
	case own == nil || !slices.Contains(e.members, own):
		return nil, errors.New("failed to forfeit leadership: failed to find the member in list of etcd members")
	case e.leader == own:
		next := e.members[slices.IndexFunc(e.members, func(m *member) bool { return m != own })]
		switch {
		case next.learner:
			return nil, errors.New("failed to forfeit leadership: etcdserver: bad leader transferee")
		case !next.runs() || !own.reaches(next):
			return nil, errors.New("failed to forfeit leadership: etcdserver: request timed out, leader transfer took too long")
		}
		e.leader, reply.Member = next, next.name
		e.term++
	}
	return &machine.EtcdForfeitLeadershipResponse{Messages: []*machine.EtcdForfeitLeadership{reply}}, nil
}

// EtcdAlarmList returns an empty list: alarms are not modelled.
func (s *machinedServer) EtcdAlarmList(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdAlarmListResponse, error) {
	s.b.site.mu.Lock()
	defer s.b.site.mu.Unlock()
	if _, err := s.workingEtcd(ctx, "etcd alarm list", true); err != nil {
		return nil, err
	}
	return &machine.EtcdAlarmListResponse{Messages: []*machine.EtcdAlarm{{}}}, nil
}
