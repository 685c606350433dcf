package talos

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/emptypb"
)

// systemNamespace is the containerd namespace of Talos's own services.
const systemNamespace = "system"

// Logs streams the log of a service. The log of machined is the part of the kernel log that Talos writes.
func (s *machinedServer) Logs(in *machine.LogsRequest, out machine.MachineService_LogsServer) error {
	switch {
	case in.Namespace != systemNamespace && in.Namespace != "" && in.Id != "kubelet":
		return s.containerLog(in, out)
	case in.Id == "machined":
		return s.b.Kernel.Stream(out.Context(), in.Follow, int(in.TailLines), func(d *common.Data) error {
			_, line, found := strings.Cut(string(d.Bytes), "[talos] ")
			if !found {
				return nil
			}
			return out.Send(&common.Data{Bytes: []byte("[talos] " + line)})
		})
	}
	log := s.b.Service(in.Id)
	if log == nil {
		return fmt.Errorf("log %q was not registered", in.Id)
	}
	return log.Stream(out.Context(), in.Follow, int(in.TailLines), out.Send)
}

// LogsContainers lists the logs.
func (s *machinedServer) LogsContainers(context.Context, *emptypb.Empty) (*machine.LogsContainersResponse, error) {
	ids := append(s.b.Services(), "machined")
	slices.Sort(ids)
	return &machine.LogsContainersResponse{Messages: []*machine.LogsContainer{{Ids: ids}}}, nil
}

// Events streams the node's events. An empty event comes first, which tells the client that it is connected.
func (s *machinedServer) Events(in *machine.EventsRequest, out machine.MachineService_EventsServer) error {
	if err := out.Send(&machine.Event{ActorId: in.WithActorId}); err != nil {
		return err
	}
	return s.b.Events.Watch(out.Context(), in, out.Send)
}

// Dmesg streams the simulator's log, in the form of the kernel's log.
func (s *machinedServer) Dmesg(in *machine.DmesgRequest, out machine.MachineService_DmesgServer) error {
	tail := -1
	if in.Follow && in.Tail {
		tail = 0
	}
	return s.b.Kernel.Stream(out.Context(), in.Follow, tail, out.Send)
}
