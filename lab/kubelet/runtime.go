package kubelet

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/lab/workload"
)

// containerRuntime is the part of a node that survives a restart of its kubelet: containers, pulled images, pod
// addresses. It ends with the machine's boot.
type containerRuntime struct {
	bootID string
	life   context.Context
	cancel context.CancelFunc
	pulls  func(from, to time.Time) // told about each pull that begins; nil: nobody

	disk Images // images of earlier boots and those that others pull; nil: there are none

	mu        sync.Mutex
	images    map[string]*image
	sandboxes map[types.UID]*sandbox
	pods      []*ipam   // one for each pod range of the node
	cniSince  time.Time // when an agent has written the network plugin's configuration; zero: never

	mounts mounts
}

// image is an image that a node has or pulls.
type image struct {
	done time.Time // when the pull ends
	here bool
}

func newContainerRuntime(parent context.Context, bootID string, disk Images) *containerRuntime {
	r := &containerRuntime{bootID: bootID, disk: disk, images: map[string]*image{}, sandboxes: map[types.UID]*sandbox{}}
	r.life, r.cancel = context.WithCancel(parent)
	return r
}

// pull returns how long the pull of an image still takes. The first call starts the pull. When the pull ends, fails
// returns its error; after an error the next call starts another pull.
func (r *containerRuntime) pull(ref string, takes time.Duration, fails func() string) (left time.Duration, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.images[ref]
	if r.disk != nil && r.disk.Has(ref) {
		return 0, ""
	}
	if m == nil {
		m = &image{done: time.Now().Add(takes)}
		r.images[ref] = m
		if r.pulls != nil {
			r.pulls(m.done.Add(-takes), m.done)
		}
	}
	if m.here {
		return 0, ""
	}
	if left := time.Until(m.done); left > 0 {
		return left, ""
	}
	if problem := fails(); problem != "" {
		delete(r.images, ref)
		return 0, problem
	}
	m.here = true
	if r.disk != nil {
		r.disk.Add(ref)
	}
	return 0, ""
}

// setPodCIDRs sets the ranges of pod addresses. A range that stays keeps its assigned addresses.
func (r *containerRuntime) setPodCIDRs(ranges []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var pods []*ipam
	for _, cidr := range ranges {
		p, err := netip.ParsePrefix(cidr)
		if err != nil {
			continue
		}
		at := slices.IndexFunc(r.pods, func(m *ipam) bool { return m.prefix == p })
		if at >= 0 {
			pods = append(pods, r.pods[at])
		} else {
			pods = append(pods, newIPAM(p))
		}
	}
	r.pods = pods
}

// cniWritten records that an agent has written the network plugin's configuration, which then stays. It reports whether it is the
// first one.
func (r *containerRuntime) cniWritten() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.cniSince.IsZero()
	if first {
		r.cniSince = time.Now()
	}
	return first
}

func (r *containerRuntime) cni() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cniSince
}

// addresses are the pods with an address of their own, by address.
func (r *containerRuntime) addresses() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]string{}
	for _, s := range r.sandboxes {
		if s.own {
			for _, ip := range s.ips {
				out[ip.String()] = s.name
			}
		}
	}
	return out
}

// sandbox returns the pod's sandbox, or nil.
func (r *containerRuntime) sandbox(uid types.UID) *sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sandboxes[uid]
}

// create creates a sandbox; on the host network it has the node's addresses. It returns false if the node has no pod
// range yet, or no free address.
func (r *containerRuntime) create(pod *corev1.Pod, host []netip.Addr) (*sandbox, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &sandbox{name: pod.Namespace + "/" + pod.Name, ips: host, own: !pod.Spec.HostNetwork, containers: map[string]*container{}}
	if s.own {
		s.ips = nil
		for _, m := range r.pods {
			ip, ok := m.take()
			if !ok {
				r.freeAddresses(s.ips)
				return nil, false
			}
			s.ips = append(s.ips, ip)
		}
		if len(s.ips) == 0 {
			return nil, false
		}
	}
	s.life, s.cancel = context.WithCancel(r.life)
	r.sandboxes[pod.UID] = s
	return s, true
}

// freeAddresses frees addresses. The caller holds the lock.
func (r *containerRuntime) freeAddresses(ips []netip.Addr) {
	for _, ip := range ips {
		for _, m := range r.pods {
			m.free(ip)
		}
	}
}

// remove removes a sandbox whose containers have ended.
func (r *containerRuntime) remove(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sandboxes[uid]; s != nil {
		s.cancel()
		s.releaseAddress()
		if s.own {
			r.freeAddresses(s.ips)
		}
		delete(r.sandboxes, uid)
	}
}

// kill ends every container; with a grace of zero as a power failure does.
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
	name   string       // "namespace/name" of the pod
	ips    []netip.Addr // of all families, the primary one first
	own    bool         // the addresses are the pod's own, not the node's
	life   context.Context
	cancel context.CancelFunc
	// network is the file of the pod's network namespace; "" if it has none of its own.
	network string
	// release removes the pod's address from the lab's link, or its network namespace; nil if there is neither.
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

// container is a container of a pod, over its restarts.
type container struct {
	instance *workload.Instance // nil: not running
	started  time.Time
	restarts int32
	last     *corev1.ContainerStateTerminated // how the previous run ended
	ended    *corev1.ContainerStateTerminated // how this run ended; nil while it runs
	waiting  corev1.ContainerStateWaiting     // why it does not run
	retryAt  time.Time                        // earliest time of the next start
	log      string                           // of the current or last run
	previous string                           // log of the run before
	pulls    pulls
}

// pulls is the state of pulling a container's image.
type pulls struct {
	failures int
	problem  string    // error of the last pull; empty: it succeeded
	retryAt  time.Time // earliest time of the next pull
}

// get returns the container with that name, if it has been started.
func (s *sandbox) get(name string) (container, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.containers[name]
	if !ok {
		return container{}, false
	}
	return *c, true
}

// of returns the container with that name, and creates it if necessary. The caller holds the lock.
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
