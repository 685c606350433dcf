package talos

import (
	"context"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/talos/image"
)

// ImagePull pulls an image into the node's store, where the kubelet and Talos find it, unless it is there. Only for an installer, the
// registry is asked: of the others, only the fault image-pull makes one missing.
func (s *machinedServer) ImagePull(ctx context.Context, in *machine.ImagePullRequest) (*machine.ImagePullResponse, error) {
	switch in.GetNamespace() {
	case common.ContainerdNamespace_NS_CRI, common.ContainerdNamespace_NS_SYSTEM:
	default:
		return nil, status.Errorf(codes.InvalidArgument, "invalid namespace %s", in.GetNamespace())
	}
	if !s.b.services.IsUp("cri") {
		return nil, status.Error(codes.Unavailable,
			"error connecting to containerd: failed to dial \"/run/containerd/containerd.sock\": context deadline exceeded")
	}
	if err := s.b.pullOnce(ctx, in.GetNamespace(), in.GetReference()); err != nil {
		return nil, err
	}
	return &machine.ImagePullResponse{Messages: []*machine.ImagePull{{}}}, nil
}

// imageServer is the service that Talos has for images since 1.13. List, Import, Remove and Verify are not modelled.
type imageServer struct {
	machine.UnimplementedImageServiceServer
	b *boot
}

// Pull pulls an image as ImagePull does. It sends the progress of the one layer that each image has, and then the image's name with its
// digest.
func (s *imageServer) Pull(in *machine.ImageServicePullRequest, out grpc.ServerStreamingServer[machine.ImageServicePullResponse]) error {
	images, err := s.b.store(in.GetContainerd())
	if err != nil {
		return err
	}
	layer := func(to machine.ImageServicePullLayerProgress_Status) {
		_ = out.Send(&machine.ImageServicePullResponse{Response: &machine.ImageServicePullResponse_PullProgress{ // Talos does not look, either
			PullProgress: &machine.ImageServicePullProgress{LayerId: "sha256:0000", Progress: &machine.ImageServicePullLayerProgress{Status: to}},
		}})
	}
	layer(machine.ImageServicePullLayerProgress_DOWNLOADING)
	if err := s.b.pullOnce(out.Context(), in.GetContainerd().GetNamespace(), in.GetImageRef()); err != nil {
		return err
	}
	layer(machine.ImageServicePullLayerProgress_EXTRACT_COMPLETE)
	return out.Send(&machine.ImageServicePullResponse{Response: &machine.ImageServicePullResponse_Name{Name: images.Pin(in.GetImageRef())}})
}

// store returns the images of an instance of containerd and its namespace. Only those on the disk are modelled.
func (b *boot) store(in *common.ContainerdInstance) (*image.Store, error) {
	driver, namespace := in.GetDriver(), in.GetNamespace()
	switch {
	case driver != common.ContainerDriver_CRI && driver != common.ContainerDriver_CONTAINERD:
		return nil, status.Errorf(codes.InvalidArgument, "invalid containerd driver %s", driver)
	case namespace != common.ContainerdNamespace_NS_CRI && namespace != common.ContainerdNamespace_NS_SYSTEM:
		return nil, status.Errorf(codes.InvalidArgument, "invalid containerd namespace %s", namespace)
	case driver == common.ContainerDriver_CONTAINERD && namespace == common.ContainerdNamespace_NS_CRI:
		return nil, status.Error(codes.InvalidArgument, "cannot use CRI namespace with containerd driver")
	case driver == common.ContainerDriver_CONTAINERD:
		return nil, status.Error(codes.Unimplemented, "images in memory are not modelled by the lab's simulated Talos nodes")
	case !b.services.IsUp("cri"):
		return nil, status.Error(codes.Unavailable,
			"error connecting to containerd: failed to dial \"/run/containerd/containerd.sock\": context deadline exceeded")
	}
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	return b.inst.images, nil
}

// pullOnce pulls an image, unless it is here. Only for an installer, the registry is asked: of the others, only the fault image-pull makes
// one missing.
func (b *boot) pullOnce(ctx context.Context, namespace common.ContainerdNamespace, ref string) error {
	b.site.mu.Lock()
	images := b.inst.images
	b.site.mu.Unlock()
	if images.HasIn(namespace, ref) {
		return nil
	}
	if err := sleep(ctx, b.site.cfg.Latency.ImagePull); err != nil {
		return err
	}
	if err := b.imagePullError(ref); err != nil {
		return err
	}
	if image.IsInstaller(ref) {
		if _, err := b.releaseOf(ref); err != nil {
			return status.Errorf(codes.NotFound, "error pulling image: %v", err)
		}
	}
	images.AddIn(namespace, ref)
	return nil
}

// pullPause is the time between two attempts to pull the image of a service or a static pod.
const pullPause = time.Second

// pull pulls an image, and tries again until that succeeds or ctx ends.
func (b *boot) pull(ctx context.Context, namespace common.ContainerdNamespace, ref string) error {
	for {
		changed := b.site.cfg.Faults.Changed()
		err := b.pullOnce(ctx, namespace, ref)
		if err == nil || ctx.Err() != nil {
			return err
		}
		b.Printk("[talos] retrying error: %v", err)
		select {
		case <-time.After(pullPause):
		case <-changed:
		case <-ctx.Done():
			return errOff
		}
	}
}
