package talos

import (
	"context"
	"time"

	timeapi "github.com/siderolabs/talos/pkg/machinery/api/time"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

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
