package talos

import (
	"context"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/slipway-platform/slipway/lab/talos/service"
)

// ServiceList lists the node's services.
func (s *machinedServer) ServiceList(context.Context, *emptypb.Empty) (*machine.ServiceListResponse, error) {
	return &machine.ServiceListResponse{Messages: []*machine.ServiceList{{Services: s.b.services.List()}}}, nil
}

// ServiceStart starts a service.
func (s *machinedServer) ServiceStart(_ context.Context, in *machine.ServiceStartRequest) (*machine.ServiceStartResponse, error) {
	if err := s.b.services.Operate(in.Id, service.OpStart); err != nil {
		return nil, err
	}
	return &machine.ServiceStartResponse{Messages: []*machine.ServiceStart{{Resp: fmt.Sprintf("Service %q started", in.Id)}}}, nil
}

// ServiceStop stops a service.
func (s *machinedServer) ServiceStop(_ context.Context, in *machine.ServiceStopRequest) (*machine.ServiceStopResponse, error) {
	if err := s.b.services.Operate(in.Id, service.OpStop); err != nil {
		return nil, err
	}
	return &machine.ServiceStopResponse{Messages: []*machine.ServiceStop{{Resp: fmt.Sprintf("Service %q stopped", in.Id)}}}, nil
}

// ServiceRestart restarts a service.
func (s *machinedServer) ServiceRestart(_ context.Context, in *machine.ServiceRestartRequest) (*machine.ServiceRestartResponse, error) {
	if err := s.b.services.Operate(in.Id, service.OpRestart); err != nil {
		return nil, err
	}
	return &machine.ServiceRestartResponse{Messages: []*machine.ServiceRestart{{Resp: fmt.Sprintf("Service %q restarted", in.Id)}}}, nil
}
