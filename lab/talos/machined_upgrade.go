package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/talos/versions"
)

// Upgrade checks the installer image and, on a control plane, etcd, and starts the upgrade in the background. The reply says only that the
// request was received. Since 1.13 it is deprecated, and does not look at etcd with Preserve.
func (s *machinedServer) Upgrade(ctx context.Context, in *machine.UpgradeRequest) (*machine.UpgradeResponse, error) {
	b := s.b
	b.Printk("[talos] upgrade request received: staged %v, force %v, reboot mode %v", in.Stage, in.Force, in.RebootMode)
	b.Printk("[talos] validating %q", in.Image)
	if err := sleep(ctx, b.site.cfg.Latency.ImagePull); err != nil {
		return nil, err
	}
	next, err := b.releaseOf(in.Image)
	if err != nil {
		return nil, fmt.Errorf("error validating installer image %q: %w", in.Image, err)
	}
	if !in.Force && !(in.Preserve && versions.Since(b.version, "v1.13")) {
		if err := s.etcdAllowsUpgrade(); err != nil {
			return nil, err
		}
	}
	powerCycle := in.RebootMode == machine.UpgradeRequest_POWERCYCLE
	seq := &sequence{name: "upgrade", actor: uuid.NewString(), then: endReboot, powerCycle: powerCycle, drains: true, afterName: "upgrade",
		afterStop: func(ctx context.Context) error { return b.upgradeTo(ctx, next) }}
	if in.Stage {
		b.site.mu.Lock()
		b.inst.staged = &next
		b.site.mu.Unlock()
		seq = &sequence{name: "stageUpgrade", actor: seq.actor, then: endReboot, powerCycle: powerCycle}
	}
	b.begin(seq)
	return &machine.UpgradeResponse{Messages: []*machine.Upgrade{{Ack: "Upgrade request received", ActorId: seq.actor}}}, nil
}

// etcdAllowsUpgrade makes Talos's checks of etcd before an upgrade of a control plane: all members run and answer, and there are not two.
func (s *machinedServer) etcdAllowsUpgrade() error {
	s.b.site.mu.Lock()
	defer s.b.site.mu.Unlock()
	if !s.b.config.Machine().Type().IsControlPlane() {
		return nil
	}
	e := s.b.cluster.etcd
	switch {
	case len(e.up()) == 0:
		return errors.New("failed to create etcd client: error getting kubernetes endpoints: context deadline exceeded")
	case !e.quorum() || !slices.ContainsFunc(s.b.answering(false), e.follows):
		return errors.New("failed to acquire upgrade mutex: error establishing etcd concurrency session: context deadline exceeded")
	case len(e.members) == 2:
		return errors.New("error validating etcd for upgrade: etcd member count(2) is insufficient to maintain quorum if upgrade commences")
	}
	for _, m := range e.members {
		problem := "context deadline exceeded"
		switch {
		case e.follows(m) && !m.learner && m.process.Refusal(s.b.etcdFiles) == "":
			continue
		case m.runs() && m.learner:
			problem = "etcdserver: rpc not supported for learner"
		}
		return fmt.Errorf("error validating etcd for upgrade: etcd member %016x is not healthy; "+
			"all members must be healthy to perform an upgrade: %s", m.id, problem)
	}
	return nil
}

// Rollback makes the former release boot, and reboots.
func (s *machinedServer) Rollback(context.Context, *machine.RollbackRequest) (*machine.RollbackResponse, error) {
	s.b.site.mu.Lock()
	if s.b.inst.former == nil {
		s.b.site.mu.Unlock()
		return nil, status.Error(codes.Unknown, "cannot rollback to next boot, no next boot label found")
	}
	s.b.inst.revert()
	s.b.site.mu.Unlock()
	s.b.begin(&sequence{name: "reboot", then: endReboot, takeover: true})
	return &machine.RollbackResponse{Messages: []*machine.Rollback{{}}}, nil
}

// lifecycleServer is the service by which Talos is upgraded since 1.13. Install is not modelled: a machine without an installation is in
// maintenance mode, where no certificate gives the role that it needs.
type lifecycleServer struct {
	machine.UnimplementedLifecycleServiceServer
	b    *boot
	lock sync.Mutex
}

// Upgrade runs an installer that was pulled before, and sends what it writes, and its exit code. It neither looks at etcd nor drains nor
// reboots. The installation goes on when the client goes away.
func (s *lifecycleServer) Upgrade(
	in *machine.LifecycleServiceUpgradeRequest, out grpc.ServerStreamingServer[machine.LifecycleServiceUpgradeResponse],
) error {
	if !s.lock.TryLock() {
		return status.Error(codes.FailedPrecondition, "another installation/upgrade is already in progress")
	}
	defer s.lock.Unlock()
	name := in.GetSource().GetImageName()
	if name == "" {
		return status.Error(codes.InvalidArgument, "installer image name is required")
	}
	images, err := s.b.store(in.GetContainerd())
	if err != nil {
		return status.Errorf(codes.Internal, "upgrade failed: %v", err)
	}
	image := images.Tagged(name)
	if !images.HasIn(in.GetContainerd().GetNamespace(), image) {
		return status.Errorf(codes.Internal, "upgrade failed: installer image %q not found in containerd store: image %q: not found", name, name)
	}
	next, err := s.b.releaseOf(image)
	if err != nil {
		return status.Errorf(codes.Internal, "upgrade failed: failed to create container: %v", err)
	}
	s.b.Printk("[talos] starting upgrade: installer_image=%s", name)
	send := func(text string) {
		message := &machine.LifecycleServiceInstallProgress_Message{Message: text}
		_ = out.Send(&machine.LifecycleServiceUpgradeResponse{Progress: &machine.LifecycleServiceInstallProgress{Response: message}})
	}
	code, err := s.b.runInstaller(s.b.ctx, next, func(line string) { sendOutput(s.b.version, line+"\n", send) })
	if err != nil {
		return status.Errorf(codes.Internal, "upgrade failed: task exited with error: %v", err)
	}
	return out.Send(&machine.LifecycleServiceUpgradeResponse{Progress: &machine.LifecycleServiceInstallProgress{
		Response: &machine.LifecycleServiceInstallProgress_ExitCode{ExitCode: int32(code)},
	}})
}

// sendOutput sends what an installer writes: Talos 1.13 what it reads at once, which is at most 512 bytes, and 1.14 line by line.
func sendOutput(version, text string, send func(string)) {
	if versions.Since(version, "v1.14") {
		for line := range strings.Lines(text) {
			send(line)
		}
		return
	}
	for len(text) > 0 {
		n := min(len(text), 512)
		send(text[:n])
		text = text[n:]
	}
}
