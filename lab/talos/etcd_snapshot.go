package talos

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// recovery asks for etcd's data to be made from the snapshot that a client has uploaded.
type recovery struct{ skipHashCheck bool }

// snapshotChunk is the size of a message of a snapshot, in bytes.
const snapshotChunk = 32 << 10

// EtcdSnapshot streams a snapshot of etcd from this node's member, with the checksum that etcd adds.
func (s *machinedServer) EtcdSnapshot(_ *machine.EtcdSnapshotRequest, stream grpc.ServerStreamingServer[common.Data]) error {
	s.b.site.mu.Lock()
	_, err := s.workingEtcd(stream.Context(), "etcd snapshot", true)
	plane := s.b.planeLocked()
	s.b.site.mu.Unlock()
	if err != nil {
		return err
	}
	if plane == nil {
		return errors.New("failed reading etcd snapshot: context deadline exceeded")
	}
	out := bufio.NewWriterSize(sender{stream}, snapshotChunk)
	if err := plane.Snapshot(stream.Context(), out); err != nil {
		return fmt.Errorf("failed reading etcd snapshot: %w", err)
	}
	return out.Flush()
}

// etcdDatabase is the file with etcd's data. It can be read without a quorum, when no snapshot can be had.
const etcdDatabase = constants.EtcdDataPath + "/member/snap/db"

// readEtcdDatabase sends the file of this node's member.
func (s *machinedServer) readEtcdDatabase(stream grpc.ServerStreamingServer[common.Data]) error {
	s.b.site.mu.Lock()
	var plane ControlPlane
	if e := s.b.cluster.etcd; e != nil && s.b.inst.etcd != nil {
		plane = e.controlPlane
	}
	s.b.site.mu.Unlock()
	if plane == nil {
		return status.Errorf(codes.NotFound, "stat %s: no such file or directory", etcdDatabase)
	}
	out := bufio.NewWriterSize(sender{stream}, snapshotChunk)
	if err := plane.Database(out); err != nil {
		return err
	}
	return out.Flush()
}

// sender writes to the messages of a stream.
type sender struct {
	to grpc.ServerStreamingServer[common.Data]
}

func (s sender) Write(p []byte) (int, error) {
	if err := s.to.Send(&common.Data{Bytes: bytes.Clone(p)}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// EtcdRecover stores the snapshot that a client uploads. Bootstrap reads it.
func (s *machinedServer) EtcdRecover(stream grpc.ClientStreamingServer[common.Data, machine.EtcdRecoverResponse]) error {
	if err := s.requireControlPlane("etcd recover"); err != nil {
		return err
	}
	var snapshot bytes.Buffer
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		snapshot.Write(message.Bytes)
	}
	s.b.site.mu.Lock()
	s.b.inst.recovery = snapshot.Bytes()
	s.b.site.mu.Unlock()
	return stream.SendAndClose(&machine.EtcdRecoverResponse{Messages: []*machine.EtcdRecover{{}}})
}

// recoverEtcd makes etcd's data from the uploaded snapshot, if Bootstrap has asked for that.
func (b *boot) recoverEtcd(ctx context.Context) error {
	b.site.mu.Lock()
	from, snapshot, id, cfg := b.recovering, b.inst.recovery, b.cluster.newEtcdID(), b.config
	b.recovering = nil
	b.site.mu.Unlock()
	if from == nil {
		return nil
	}
	err := errors.New("error verifying snapshot: stat /var/lib/etcd.snapshot: no such file or directory")
	if snapshot != nil {
		err = b.site.cfg.Kubernetes.RecoverEtcd(ctx, id, cfg, snapshot, from.skipHashCheck)
	}
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	if err != nil {
		b.recoveryFailed = true
		return err
	}
	b.Printk("[talos] recovering etcd from snapshot: total size %d", len(snapshot))
	b.inst.recovery = nil
	b.createEtcd(id)
	return nil
}
