package kubelet

import (
	"context"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/lab/workload"
)

// containerRuntime is what of a node outlives its kubelet: containers, pulled images, pod addresses. It ends with the
// machine's boot.
type containerRuntime struct {
	bootID string
	life   context.Context
	cancel context.CancelFunc

	mu        sync.Mutex
	images    map[string]time.Time // when the pull is done
	sandboxes map[types.UID]*sandbox
	pods      ipam
}

func newContainerRuntime(parent context.Context, bootID string) *containerRuntime {
	r := &containerRuntime{bootID: bootID, images: map[string]time.Time{}, sandboxes: map[types.UID]*sandbox{}}
	r.life, r.cancel = context.WithCancel(parent)
	return r
}

// pull returns how long the image is still being pulled; the first question starts the pull.
func (r *containerRuntime) pull(image string, takes time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	done, ok := r.images[image]
	if !ok {
		done = time.Now().Add(takes)
		r.images[image] = done
	}
	return time.Until(done)
}

func (r *containerRuntime) setPodCIDR(cidr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods.set(cidr)
}

// sandbox returns the pod's sandbox, or nil.
func (r *containerRuntime) sandbox(uid types.UID) *sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sandboxes[uid]
}

// create makes a sandbox; on the host network with the node's address. It reports false where the node has no pod
// range yet, or no free address.
func (r *containerRuntime) create(pod *corev1.Pod, host netip.Addr) (*sandbox, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ip := host
	if !pod.Spec.HostNetwork {
		var ok bool
		if ip, ok = r.pods.take(); !ok {
			return nil, false
		}
	}
	s := &sandbox{ip: ip, own: !pod.Spec.HostNetwork, containers: map[string]*container{}}
	s.life, s.cancel = context.WithCancel(r.life)
	r.sandboxes[pod.UID] = s
	return s, true
}

// remove forgets a sandbox whose containers have ended.
func (r *containerRuntime) remove(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sandboxes[uid]; s != nil {
		s.cancel()
		s.releaseAddress()
		if s.own {
			r.pods.free(s.ip)
		}
		delete(r.sandboxes, uid)
	}
}

// kill ends every container, as a power cut does where grace is zero.
func (r *containerRuntime) kill(grace time.Duration) {
	r.mu.Lock()
	sandboxes := r.sandboxes
	r.sandboxes = map[types.UID]*sandbox{}
	r.mu.Unlock()
	var all sync.WaitGroup
	for _, s := range sandboxes {
		all.Go(func() {
			s.stop(context.Background(), grace)
			s.cancel()
			s.releaseAddress()
		})
	}
	all.Wait()
	r.cancel()
}

// sandbox is a pod's network namespace and containers.
type sandbox struct {
	ip     netip.Addr
	own    bool // the address is of the pod, not of the node
	life   context.Context
	cancel context.CancelFunc
	// release takes the pod's address off the lab's link; nil where it was not put there.
	release func()

	mu         sync.Mutex
	containers map[string]*container
}

func (s *sandbox) releaseAddress() {
	if s.release != nil {
		s.release()
		s.release = nil
	}
}

// container is one container of a pod across its restarts.
type container struct {
	instance *workload.Instance // nil: not running
	started  time.Time
	restarts int32
	last     *corev1.ContainerStateTerminated // how the previous run ended
	ended    *corev1.ContainerStateTerminated // how this run ended; nil while it runs
	waiting  corev1.ContainerStateWaiting     // why it does not run
	retryAt  time.Time                        // not before
	log      string                           // of the current or last run
	previous string                           // log of the run before
}

// get returns the container of that name, if it has been started.
func (s *sandbox) get(name string) (container, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.containers[name]
	if !ok {
		return container{}, false
	}
	return *c, true
}

// of returns the container of that name, made at need; callers hold the lock.
func (s *sandbox) of(name string) *container {
	c, ok := s.containers[name]
	if !ok {
		c = &container{}
		s.containers[name] = c
	}
	return c
}

// stop ends all containers at the same time.
func (s *sandbox) stop(ctx context.Context, grace time.Duration) {
	s.mu.Lock()
	var running []*workload.Instance
	for _, c := range s.containers {
		if c.instance != nil {
			running = append(running, c.instance)
		}
	}
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, i := range running {
		all.Go(func() { i.Stop(ctx, grace) })
	}
	all.Wait()
}
