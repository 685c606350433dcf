package talos

import (
	"context"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ImagePull pulls an image, unless it was pulled in this way before. No registry is asked: only the fault image-pull makes an
// image missing. The kubelet does not know the images that were pulled so.
func (s *machinedServer) ImagePull(ctx context.Context, in *machine.ImagePullRequest) (*machine.ImagePullResponse, error) {
	b := s.b
	switch in.GetNamespace() {
	case common.ContainerdNamespace_NS_CRI, common.ContainerdNamespace_NS_SYSTEM:
	default:
		return nil, status.Errorf(codes.InvalidArgument, "invalid namespace %s", in.GetNamespace())
	}
	if !b.services.isUp("cri") {
		return nil, status.Error(codes.Unavailable,
			"error connecting to containerd: failed to dial \"/run/containerd/containerd.sock\": context deadline exceeded")
	}
	key := in.GetNamespace().String() + " " + in.GetReference()
	b.site.mu.Lock()
	here := b.images[key]
	b.site.mu.Unlock()
	if !here {
		if err := sleep(ctx, b.site.cfg.Latency.ImagePull); err != nil {
			return nil, err
		}
		if err := b.imagePullError(in.GetReference()); err != nil {
			return nil, err
		}
		b.site.mu.Lock()
		if b.images == nil {
			b.images = map[string]bool{}
		}
		b.images[key] = true
		b.site.mu.Unlock()
	}
	return &machine.ImagePullResponse{Messages: []*machine.ImagePull{{}}}, nil
}
