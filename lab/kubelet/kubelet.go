package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/certificate"

	"github.com/slipway-platform/slipway/lab/workload"
)

// port is the port for logs and exec of a kubelet.
const port = 10250

// NodeOptions describe a node that a kubelet registers.
type NodeOptions struct {
	Name           string
	Addresses      []netip.Addr   // InternalIPs; the first is the primary one, on which the kubelet listens
	AcceptedCAs    []byte         // of the Kubernetes API and its clients, PEM; nil: those of the cluster's start
	ControlPlane   bool           // creates the mirror pods of a control plane's static pods
	RegisterTaints []corev1.Taint // the kubelet's registerWithTaints: set when the Node object is created, and never again
	// Labels, Annotations and Taints are those that Talos keeps on the Node object; see metadata.go.
	Labels            map[string]string
	Annotations       map[string]string
	Taints            []corev1.Taint
	TalosVersion      string // e.g. "v1.12.7"
	KubernetesVersion string // e.g. "v1.35.8"
	MachineID         string
	BootID            string // containers end when it changes
	Cores             int    // 0: 4
	MemoryMiB         int    // 0: 8192
	EphemeralBytes    uint64 // of the file system that holds pods, logs and images; 0: 18 GiB
	MaxPods           int    // 0: 110
	// AsksForCertificate is the kubelet's serverTLSBootstrap: its API has a certificate of the cluster's CA, once somebody has approved it.
	AsksForCertificate bool
	// Disk, if not nil, returns the machine's disk with a link in /dev/disk/by-id: see workload.Container.
	Disk func(link string) any
	// StaticPods returns the control plane's pods as they are now; nil: all components run in the kubelet's version. See StaticPodsChanged.
	StaticPods func() []StaticPod
	// Images are the images that the node has already, besides those that it pulls; nil: none.
	Images Images
	// Log, if not nil, receives the lines of the kubelet's own log.
	Log func(line string)
	// TalosLog, if not nil, receives the lines of the log of Talos's controllers.
	TalosLog func(line string)
	// NodeChanged, if not nil, receives the Node object whenever it has changed; nil if there is none.
	NodeChanged func(*corev1.Node)

	declared string // the name that the machine should have; empty: Name
}

// Images are container images on a node's disk.
type Images interface {
	Has(ref string) bool
	Add(ref string)
}

// Declared is the name that the machine should have. Faults name it as target.
func (o NodeOptions) Declared() string { return cmp.Or(o.declared, o.Name) }

// Kubelet is the kubelet of one node.
type Kubelet struct {
	c       *Cluster
	o       NodeOptions
	log     *slog.Logger
	runtime *containerRuntime
	server  *http.Server
	cancel  context.CancelFunc
	life    context.Context
	node    metav1.OwnerReference // set once registered
	work    sync.WaitGroup
	pokes   chan struct{}
	started time.Time
	changes chan struct{}        // the Node object has changed
	statics chan struct{}        // the static pods have changed
	own     kubernetes.Interface // with the kubelet's credentials
	// certificates asks for the certificate of the kubelet's API; nil: it has signed that itself.
	certificates certificate.Manager
	// cordoned means that Talos wants the node to be unschedulable.
	cordoned atomic.Bool
	// shutting means that the machine stops: no container is started any more.
	shutting atomic.Bool

	mu      sync.Mutex
	workers map[types.UID]*podWorker
	stopped bool
	ready   map[types.UID]bool // Cilium agents of this node that are ready
}

func (k *Kubelet) declared() string { return k.o.Declared() }

// Start starts a node's kubelet. It registers the node in the background, and retries until the API server answers. ctx
// limits this call only.
func (c *Cluster) Start(ctx context.Context, o NodeOptions) (*Kubelet, error) {
	if len(o.Addresses) == 0 {
		return nil, fmt.Errorf("kubelet %s: no address", o.Name)
	}
	if c.kubelet(o.Name) != nil {
		return nil, fmt.Errorf("kubelet %s: it runs already", o.Name)
	}
	k := &Kubelet{
		c: c, o: o, log: c.log.With("node", o.Name), pokes: make(chan struct{}, 1), changes: make(chan struct{}, 1), statics: make(chan struct{}, 1),
		started: time.Now(),
		workers: map[types.UID]*podWorker{}, ready: map[types.UID]bool{},
	}
	var err error
	if k.own, err = c.nodeClient(o.Name, o.AcceptedCAs); err != nil {
		return nil, err
	}
	tlsConfig, err := k.serving()
	if err != nil {
		return nil, err
	}
	tlsConfig.NextProtos = []string{"http/1.1"} // exec upgrades the connection, which HTTP/2 cannot do
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", netip.AddrPortFrom(o.Addresses[0], port).String())
	if err != nil {
		return nil, fmt.Errorf("kubelet %s: %w", o.Name, err)
	}
	k.runtime = c.runtime(o)
	k.life, k.cancel = context.WithCancel(c.life)
	c.mu.Lock()
	c.kubelets[o.Name] = k
	c.mu.Unlock()
	k.server = &http.Server{Handler: k.handler(), TLSConfig: tlsConfig, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(k.log.Handler(), slog.LevelDebug)}
	k.work.Go(func() {
		if err := k.server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
			k.log.Warn("kubelet API ended", "err", err)
		}
	})
	k.work.Go(func() { k.run(k.life) })
	return k, nil
}

// run registers the node, then writes status and lease.
func (k *Kubelet) run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), k.c.synced...) || !k.register(ctx) {
		return
	}
	if k.certificates != nil {
		k.certificates.Start()
	}
	k.work.Go(func() { k.keepLease(ctx) })
	k.work.Go(func() { k.keepMetadata(ctx) })
	k.work.Go(func() { k.keepCSINode(ctx) })
	if k.o.ControlPlane {
		k.work.Go(func() { k.keepStaticPods(ctx) })
	}
	for _, p := range k.c.podsOf(k.o.Name) {
		k.podChanged(p)
	}
	k.keepStatus(ctx)
}

// Stop ends the kubelet as a crash would: its API, lease and status end; the node's containers continue.
func (k *Kubelet) Stop() {
	k.c.mu.Lock()
	if k.c.kubelets[k.o.Name] == k {
		delete(k.c.kubelets, k.o.Name)
	}
	k.c.mu.Unlock()
	k.stop()
}

// Kill ends the kubelet and every container of the node at once, as a power failure does.
func (k *Kubelet) Kill() {
	k.Stop()
	k.runtime.kill(0)
	k.c.shared.CSI.NodeDown(k.o.Name)
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	if k.c.runtimes[k.o.Name] == k.runtime {
		delete(k.c.runtimes, k.o.Name)
	}
}

func (k *Kubelet) stop() {
	k.mu.Lock()
	k.stopped = true
	k.mu.Unlock()
	k.cancel()
	if k.certificates != nil {
		k.certificates.Stop()
	}
	_ = k.server.Close()
	k.work.Wait()
}

// podChanged wakes the pod's worker, or starts one.
func (k *Kubelet) podChanged(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	w := k.workers[pod.UID]
	if w == nil {
		if _, err := k.c.pods.Pods(pod.Namespace).Get(pod.Name); err != nil {
			return // the pod is deleted, and none of its containers runs here
		}
		w = &podWorker{k: k, key: cache.MetaObjectToName(pod), uid: pod.UID, wake: make(chan struct{}, 1)}
		k.workers[pod.UID] = w
		k.work.Go(func() {
			w.run(k.life)
			k.mu.Lock()
			delete(k.workers, w.uid)
			k.mu.Unlock()
			k.agentReady(w.uid, false)
		})
	}
	w.poke()
}

// poke makes the kubelet check its node again.
func (k *Kubelet) poke() { workload.Poke(k.pokes) }

// agentReady records whether a Cilium agent of this node is ready, and wakes what depends on it.
func (k *Kubelet) agentReady(uid types.UID, ready bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ready[uid] == ready {
		return
	}
	if ready {
		k.ready[uid] = true
	} else {
		delete(k.ready, uid)
	}
	k.poke()
}

// agentStarts records that a Cilium agent of this node has started. It writes the network plugin's configuration before it is ready
// (daemon/cmd/cni).
func (k *Kubelet) agentStarts() {
	if k.runtime.cniWritten() {
		k.poke()
	}
}

// agentUp tells whether a ready agent runs on the node.
func (k *Kubelet) agentUp() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.ready) > 0
}

// cni tells whether the node has a network plugin, and if not, when it will, if known. A runtime needs
// a moment to find the configuration that an agent has written. The configuration stays when the agent ends.
func (k *Kubelet) cni() (up bool, in time.Duration) {
	since := k.runtime.cni()
	if since.IsZero() {
		return false, 0
	}
	in = time.Until(since.Add(k.c.o.Latency.PodStart / 2))
	return in <= 0, max(in, 0)
}

// wakePods makes every worker check its pod again.
func (k *Kubelet) wakePods() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.workers {
		w.poke()
	}
}
