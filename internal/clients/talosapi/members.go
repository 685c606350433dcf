package talosapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"path"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// Member is a member of etcd, as a control plane lists it.
type Member struct {
	ID        uint64
	Name      string       // "" before it has started for the first time
	Addresses []netip.Addr // at which the other members reach it
	Learner   bool         // without a vote
}

// Title is the member's name, or its id before it has a name.
func (m Member) Title() string { return cmp.Or(m.Name, fmt.Sprintf("member %x", m.ID)) }

// Members asks a control plane for the members of etcd. The context may name the control plane.
func Members(ctx context.Context, asked *client.Client) (members []Member, err error) {
	reply, err := asked.EtcdMemberList(ctx, &machine.EtcdMemberListRequest{})
	if err != nil {
		return nil, err
	}
	for _, message := range reply.GetMessages() {
		for _, listed := range message.GetMembers() {
			member := Member{ID: listed.GetId(), Name: listed.GetHostname(), Learner: listed.GetIsLearner()}
			for _, peer := range listed.GetPeerUrls() {
				if at, err := url.Parse(peer); err == nil {
					if address, err := netip.ParseAddr(at.Hostname()); err == nil {
						member.Addresses = append(member.Addresses, address)
					}
				}
			}
			members = append(members, member)
		}
	}
	return members, nil
}

// Follows returns an error unless the member of etcd of a control plane has a vote and knows a leader. A snapshot is what the asked member
// has itself, and etcd asks neither of it (v3rpc/interceptor.go, maintenance.go): that of a learner may be empty, and that of a member
// which is cut off may be old.
func Follows(ctx context.Context, asked *client.Client) error {
	reply, err := asked.EtcdStatus(ctx)
	if err != nil {
		return err
	}
	for _, message := range reply.GetMessages() {
		switch member := message.GetMemberStatus(); {
		case member.GetIsLearner():
			return errors.New("its etcd is a learner, which may not have all data yet")
		case member.GetLeader() == 0:
			return errors.New("its etcd knows no leader, so that its data may be old")
		}
	}
	return nil
}

// HasEtcdData reports whether a node has data of etcd: a folder that etcd makes when it starts for the first time. The folder above may be
// missing, or be empty. Talos sends what it cannot read as an entry with an error, and ends the list well: that is an error here, because
// there may be data, unless it is about something else.
func HasEtcdData(ctx context.Context, node *client.Client) (bool, error) {
	const below = "/member"
	parent, name := path.Split(constants.EtcdDataPath)
	files, err := node.LS(ctx, &machine.ListRequest{Root: parent, Recurse: true, RecursionDepth: 2})
	if err != nil {
		return false, err
	}
	found := false
	for {
		switch file, err := files.Recv(); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return false, err
		case file.GetError() != "" && mayHide(file.GetName(), constants.EtcdDataPath):
			return false, fmt.Errorf("%s: %s", file.GetName(), file.GetError())
		case file.GetRelativeName() == name+below:
			found = true
		}
	}
}

// mayHide reports whether an unread path is the folder, holds it, or is in it. "" stands for the rest of the list.
func mayHide(unread, folder string) bool {
	return unread == "" || strings.HasPrefix(folder+"/", unread+"/") || strings.HasPrefix(unread, folder+"/")
}
