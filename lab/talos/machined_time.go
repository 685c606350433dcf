package talos

import (
	"context"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	timeapi "github.com/siderolabs/talos/pkg/machinery/api/time"
	timeres "github.com/siderolabs/talos/pkg/machinery/resources/time"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/slipway-platform/slipway/lab/talos/service"
)

// awaitTime waits until the node has the time. Talos starts etcd and the kubelet after that, and not again without it.
func (b *boot) awaitTime(ctx context.Context, report service.Report) error {
	if b.hasTime() {
		return nil
	}
	report(machine.ServiceStateEvent_WAITING, "Waiting for time sync")
	err := b.site.waitUntil(ctx, b.hasTimeLocked)
	report(machine.ServiceStateEvent_PREPARING, "Running pre state")
	return err
}

func (b *boot) hasTime() bool {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	return b.hasTimeLocked()
}

// hasTimeLocked tells whether a time server has answered since the boot began. It publishes that.
func (b *boot) hasTimeLocked() bool {
	if b.synced {
		return true
	}
	b.synced = b.timeServerAnswers()
	clock := timeres.NewStatus()
	clock.TypedSpec().Synced = b.synced
	b.res.Put(clock)
	return b.synced
}

// timeServer compares the node's clock with a time server. Both are this machine's clock: no request is sent.
type timeServer struct {
	timeapi.UnimplementedTimeServiceServer

	b *boot
}

// defaultTimeServer is Talos's own, for a configuration without time servers.
const defaultTimeServer = "time.cloudflare.com"

// Time compares with the first time server of the configuration.
func (s *timeServer) Time(ctx context.Context, _ *emptypb.Empty) (*timeapi.TimeResponse, error) {
	s.b.site.mu.Lock()
	server := defaultTimeServer
	if sync := s.b.config.NetworkTimeSyncConfig(); sync != nil && len(sync.Servers()) > 0 {
		server = sync.Servers()[0]
	}
	s.b.site.mu.Unlock()
	return s.TimeCheck(ctx, &timeapi.TimeRequest{Server: server})
}

// TimeCheck compares with the server of the request.
func (s *timeServer) TimeCheck(_ context.Context, in *timeapi.TimeRequest) (*timeapi.TimeResponse, error) {
	now := timestamppb.New(time.Now())
	return &timeapi.TimeResponse{Messages: []*timeapi.Time{{Server: in.GetServer(), Localtime: now, Remotetime: now}}}, nil
}
