package talos

import (
	"context"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ImagePull pulls an image into the node's store, where the kubelet and Talos find it, unless it is there. No registry is asked: only the
// fault image-pull makes an image missing.
func (s *machinedServer) ImagePull(ctx context.Context, in *machine.ImagePullRequest) (*machine.ImagePullResponse, error) {
	switch in.GetNamespace() {
	case common.ContainerdNamespace_NS_CRI, common.ContainerdNamespace_NS_SYSTEM:
	default:
		return nil, status.Errorf(codes.InvalidArgument, "invalid namespace %s", in.GetNamespace())
	}
	if !s.b.services.isUp("cri") {
		return nil, status.Error(codes.Unavailable,
			"error connecting to containerd: failed to dial \"/run/containerd/containerd.sock\": context deadline exceeded")
	}
	if err := s.b.pullOnce(ctx, in.GetNamespace(), in.GetReference()); err != nil {
		return nil, err
	}
	return &machine.ImagePullResponse{Messages: []*machine.ImagePull{{}}}, nil
}
