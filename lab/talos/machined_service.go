package talos

import (
	"context"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/emptypb"
)

// ServiceList lists the node's services.
func (s *machinedServer) ServiceList(context.Context, *emptypb.Empty) (*machine.ServiceListResponse, error) {
	return &machine.ServiceListResponse{Messages: []*machine.ServiceList{{Services: s.b.services.list()}}}, nil
}

// checkOperation tells whether a service runs, and returns an error if Talos does not allow an operation on it.
func (s *services) checkOperation(id, operation string, may func(serviceSpec) bool) (running bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	svc := s.all[id]
	if svc == nil {
		return false, fmt.Errorf("service %q not defined", id)
	}
	running = svc.cancel != nil
	if !may(svc.spec) {
		return running, fmt.Errorf("service %q doesn't support %s operation via API", id, operation)
	}
	return running, nil
}

// ServiceStart starts a service.
func (s *machinedServer) ServiceStart(_ context.Context, in *machine.ServiceStartRequest) (*machine.ServiceStartResponse, error) {
	running, err := s.b.services.checkOperation(in.Id, "start", func(sp serviceSpec) bool { return sp.canStart })
	if err != nil && !running {
		return nil, err
	}
	if !running {
		if err := s.b.services.setWanted(in.Id, true); err != nil {
			return nil, err
		}
	}
	return &machine.ServiceStartResponse{Messages: []*machine.ServiceStart{{Resp: fmt.Sprintf("Service %q started", in.Id)}}}, nil
}

// ServiceStop stops a service.
func (s *machinedServer) ServiceStop(_ context.Context, in *machine.ServiceStopRequest) (*machine.ServiceStopResponse, error) {
	running, err := s.b.services.checkOperation(in.Id, "stop", func(sp serviceSpec) bool { return sp.canStop })
	if running && err != nil {
		return nil, err
	}
	if err := s.b.services.setWanted(in.Id, false); err != nil {
		return nil, err
	}
	return &machine.ServiceStopResponse{Messages: []*machine.ServiceStop{{Resp: fmt.Sprintf("Service %q stopped", in.Id)}}}, nil
}

// ServiceRestart restarts a service.
func (s *machinedServer) ServiceRestart(_ context.Context, in *machine.ServiceRestartRequest) (*machine.ServiceRestartResponse, error) {
	if _, err := s.b.services.checkOperation(in.Id, "restart", func(sp serviceSpec) bool { return sp.canRestart }); err != nil {
		return nil, err
	}
	s.b.services.restart(in.Id)
	return &machine.ServiceRestartResponse{Messages: []*machine.ServiceRestart{{Resp: fmt.Sprintf("Service %q restarted", in.Id)}}}, nil
}
