package fakecluster

import (
	"context"
	"errors"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/siderolabs/talos/pkg/machinery/kernel"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	services "github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// resources is the part of Talos's resource API that a probe reads.
type resources struct {
	v1alpha1.UnimplementedStateServer
	talos *Talos
}

// Watch implements the resource API for services. Its events only tell that a service changed.
func (r *resources) Watch(_ *v1alpha1.WatchRequest, stream grpc.ServerStreamingServer[v1alpha1.WatchResponse]) error {
	// The first, empty response says that the watch is established.
	if err := stream.Send(&v1alpha1.WatchResponse{}); err != nil {
		return err
	}
	for {
		var changed chan struct{}
		if err := r.talos.answer(stream.Context(), func(node *TalosNode) { changed = node.changed }); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
		event, err := serviceEvent()
		if err == nil {
			err = stream.Send(&v1alpha1.WatchResponse{Event: []*v1alpha1.Event{{EventType: v1alpha1.EventType_UPDATED, Resource: event,
				Old: event}}})
		}
		if err != nil {
			return err
		}
	}
}

// Get implements the resource API for the controller manager's configuration.
func (r *resources) Get(ctx context.Context, request *v1alpha1.GetRequest) (*v1alpha1.GetResponse, error) {
	config := k8s.NewControllerManagerConfig()
	err := r.talos.answer(ctx, func(node *TalosNode) {
		config.TypedSpec().PodCIDRs, config.TypedSpec().ServiceCIDRs = node.PodCIDRs, node.ServiceCIDRs
	})
	if err == nil && (request.GetType() != k8s.ControllerManagerConfigType || len(config.TypedSpec().PodCIDRs) == 0) {
		err = status.Errorf(codes.PermissionDenied, "resource type %q is not supported", request.GetType())
	}
	if err != nil {
		return nil, err
	}
	answer, err := marshalled(config)
	return &v1alpha1.GetResponse{Resource: answer}, err
}

// List implements the resource API for kernel parameters.
func (r *resources) List(request *v1alpha1.ListRequest, stream grpc.ServerStreamingServer[v1alpha1.ListResponse]) error {
	var all []resource.Resource
	err := r.talos.answer(stream.Context(), func(node *TalosNode) {
		for name, set := range node.Parameters {
			if request.GetType() == runtime.KernelParamSpecType {
				spec := runtime.NewKernelParamSpec(runtime.NamespaceName, kernel.Sysctl+"."+name)
				spec.TypedSpec().Value = "1"
				all = append(all, spec)
			} else if set != "" {
				status := runtime.NewKernelParamStatus(runtime.NamespaceName, kernel.Sysctl+"."+name)
				status.TypedSpec().Current = set
				all = append(all, status)
			}
		}
	})
	for _, one := range all {
		answer, failed := marshalled(one)
		err = errors.Join(err, failed, stream.Send(&v1alpha1.ListResponse{Resource: answer}))
	}
	return err
}

func serviceEvent() (*v1alpha1.Resource, error) { return marshalled(services.NewService("kubelet")) }

func marshalled(from resource.Resource) (*v1alpha1.Resource, error) {
	converted, err := protobuf.FromResource(from)
	if err != nil {
		return nil, err
	}
	return converted.Marshal()
}
