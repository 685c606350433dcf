package talos

import (
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/talos/versions"
)

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
