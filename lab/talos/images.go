package talos

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Images are the container images on a node's disk. They survive reboots and end with EPHEMERAL. Talos pulls the images of its own
// services, the kubelet's among them, into another namespace of containerd than the images of pods. It is safe for concurrent use.
type Images struct {
	mu   sync.Mutex
	here map[string]bool   // by namespace and reference
	tags map[string]string // references with tags, by the same with digests
}

func newImages() *Images { return &Images{here: map[string]bool{}, tags: map[string]string{}} }

// pin adds the name with a digest to an image, as containerd does beside the name with a tag, and returns the new name.
func (i *Images) pin(ref string) string {
	repository := strings.TrimSuffix(ref, ":"+imageTag(ref))
	pinned := fmt.Sprintf("%s@sha256:%x", repository, sha256.Sum256([]byte(ref)))
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tags[pinned] = ref
	return pinned
}

// tagged returns the name with a tag of an image.
func (i *Images) tagged(name string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return cmp.Or(i.tags[name], name)
}

// Has tells whether the image of a pod is here.
func (i *Images) Has(ref string) bool { return i.has(common.ContainerdNamespace_NS_CRI, ref) }

// Add adds the image of a pod.
func (i *Images) Add(ref string) { i.add(common.ContainerdNamespace_NS_CRI, ref) }

func (i *Images) has(namespace common.ContainerdNamespace, ref string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.here[namespace.String()+" "+ref]
}

func (i *Images) add(namespace common.ContainerdNamespace, ref string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.here[namespace.String()+" "+ref] = true
}

// pullOnce pulls an image, unless it is here. Only for an installer, the registry is asked: of the others, only the fault image-pull makes
// one missing.
func (b *boot) pullOnce(ctx context.Context, namespace common.ContainerdNamespace, ref string) error {
	b.site.mu.Lock()
	images := b.inst.images
	b.site.mu.Unlock()
	if images.has(namespace, ref) {
		return nil
	}
	if err := sleep(ctx, b.site.cfg.Latency.ImagePull); err != nil {
		return err
	}
	if err := b.imagePullError(ref); err != nil {
		return err
	}
	if isInstaller(ref) {
		if _, err := b.releaseOf(ref); err != nil {
			return status.Errorf(codes.NotFound, "error pulling image: %v", err)
		}
	}
	images.add(namespace, ref)
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
		timer := time.NewTimer(pullPause)
		select {
		case <-timer.C:
		case <-changed:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return errOff
		}
	}
}
