package talosapi

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
)

// Service is a Talos service of a node.
type Service struct {
	State          string    // such as Running; "" where the node has no such service
	Known, Healthy bool      // whether its health was checked, and whether it is healthy
	HealthError    string    // of its last health check; Talos's words
	Since          time.Time // of its newest event
	Started        time.Time // when it began to run for the last time; zero if its events do not say
	Message        string    // of its newest event; Talos's words
}

// Running is the State of a service that runs.
const Running = "Running"

// Well reports whether the service runs and its health check passes.
func (s Service) Well() bool { return s.State == Running && s.Known && s.Healthy }

// Sick reports whether the service does not run, or its health check fails. One that was not checked yet is not sick.
func (s Service) Sick() bool { return s.State != Running || s.Known && !s.Healthy }

// Services asks a node for its services, by their ids. The context may name the node.
func Services(ctx context.Context, node *client.Client) (map[string]Service, error) {
	reply, err := node.ServiceList(ctx)
	if err != nil {
		return nil, err
	}
	if len(reply.GetMessages()) == 0 {
		return nil, errors.New("the list of services is empty")
	}
	services := map[string]Service{}
	for _, info := range reply.GetMessages()[0].GetServices() {
		services[info.GetId()] = serviceOf(info)
	}
	return services, nil
}

func serviceOf(info *machine.ServiceInfo) Service {
	health := info.GetHealth()
	seen := Service{
		State: info.GetState(), Known: health != nil && !health.GetUnknown(), Healthy: health.GetHealthy(), HealthError: health.GetLastMessage(),
	}
	state := ""
	for _, event := range info.GetEvents().GetEvents() { // the oldest first
		if event.GetState() == Running && state != "" && state != Running {
			seen.Started = event.GetTs().AsTime()
		}
		state = event.GetState()
		if at := event.GetTs().AsTime(); !at.Before(seen.Since) {
			seen.Since, seen.Message = at, event.GetMsg()
		}
	}
	return seen
}

// Log is a log of a node: of a Talos service, or of a container of Kubernetes.
type Log struct {
	ID, Namespace string
	Driver        common.ContainerDriver
}

// maxLog is how much is read of a log, in bytes.
const maxLog = 64 << 10

// Read returns the last lines of the log. The context may name the node. After an error, the text is what was read before.
func (l Log) Read(ctx context.Context, node *client.Client, lines int32) (string, error) {
	stream, err := node.Logs(ctx, l.Namespace, l.Driver, l.ID, false, lines)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for text.Len() < maxLog {
		data, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return text.String(), err
		}
		text.Write(data.GetBytes())
	}
	return text.String(), nil
}
