package talos

import (
	"context"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/talos/image"
)

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
