// Package kubelet simulates the kubelets and container runtimes of a cluster's nodes for a real API server. They
// register Node objects, renew leases, run pods (package workload has the programs in them), write pod status, and
// answer logs and exec on port 10250.
//
// A node becomes Ready with its first ready Cilium agent, and its network configuration then stays. Without a ready
// agent, only pods on the host network start. Not modelled: startup and liveness probes, resource limits and eviction,
// attach, port-forward, and, except in pods of workload.Registry.Images, images, container file systems, network
// namespaces and volumes other than whether their Secret or ConfigMap exists.
package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/kube/process"
	"github.com/slipway-platform/slipway/lab/latency"
	"github.com/slipway-platform/slipway/lab/network"
	"github.com/slipway-platform/slipway/lab/talos/versions"
	"github.com/slipway-platform/slipway/lab/workload"
	"github.com/slipway-platform/slipway/lab/workload/cilium"
)

// ControlPlane is what kubelets need from a cluster's control plane. kube.ControlPlane implements it.
type ControlPlane interface {
	RESTConfig() *rest.Config
	// NodeRESTConfig is of a node's kubelet: system:node:NODE in the group system:nodes. accepted are the CAs that the node accepts, PEM.
	NodeRESTConfig(node string, accepted []byte) (*rest.Config, error)
	ClusterCA() []byte // those of the cluster's start
	KubeletTLS(node string) (*tls.Config, error)
}

// Options configure the kubelets of a cluster.
type Options struct {
	Name         string     // cluster name
	Dir          string     // files of pods
	Loopback     netip.Addr // 127.x address of this cluster only, at which Services are served that programs know by name; zero: none
	Endpoint     string     // URL under which pods reach the API server; from cluster.controlPlane.endpoint
	ControlPlane ControlPlane
	Latency      latency.Latencies
	Faults       *fault.Set         // nil: none
	Addresses    network.Addresses  // for pods that are real processes; nil: their addresses exist already
	Namespaces   network.Namespaces // for pods that run as in reality; nil: there are none
	Workloads    workload.Registry
	Processes    *process.Table
	Log          *slog.Logger // nil: slog.Default
}

// Cluster is the shared part of the kubelets of a cluster: clients, caches, and the state of every node's containers.
type Cluster struct {
	o      Options
	log    *slog.Logger
	client kubernetes.Interface // an administrator's
	// nodeClient makes the client of a node's kubelet.
	nodeClient func(node string, accepted []byte) (kubernetes.Interface, error)
	pods       corelisters.PodLister
	nodes      corelisters.NodeLister
	shared     *workload.Cluster
	cilium     *cilium.Cilium
	cancel     context.CancelFunc
	life       context.Context // of everything that lives longer than a kubelet
	synced     []cache.InformerSynced
	work       sync.WaitGroup
	pokes      chan struct{}
	found      lookups

	mu       sync.Mutex
	runtimes map[string]*containerRuntime // by node
	kubelets map[string]*Kubelet          // the running ones
}

// NewCluster prepares a cluster. Its caches are filled once the API server answers.
func NewCluster(o Options) (*Cluster, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("kubelets of %s: %w", o.Name, err)
	}
	cfg := o.ControlPlane.RESTConfig()
	cfg.UserAgent = "kubelet/lab"
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("kubelets of %s: %w", o.Name, err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType = "" // custom resources are encoded as JSON
	custom, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("kubelets of %s: %w", o.Name, err)
	}
	c, err := newCluster(o, client, custom)
	if err == nil {
		c.nodeClient = c.ownClient
	}
	return c, err
}

// ownClient makes a client with a node's own credentials.
func (c *Cluster) ownClient(node string, accepted []byte) (kubernetes.Interface, error) {
	cfg, err := c.o.ControlPlane.NodeRESTConfig(node, accepted)
	if err != nil {
		return nil, fmt.Errorf("credentials of kubelet %s: %w", node, err)
	}
	cfg.UserAgent, cfg.ContentType = "kubelet/lab", "application/vnd.kubernetes.protobuf"
	return kubernetes.NewForConfig(cfg)
}

// newCluster is NewCluster with given clients, of which the first is every node's, too. Without a client for custom resources, Cilium creates none.
func newCluster(o Options, client kubernetes.Interface, custom dynamic.Interface) (*Cluster, error) {
	c := &Cluster{o: o, log: o.Log.With("cluster", o.Name), client: client, runtimes: map[string]*containerRuntime{},
		kubelets: map[string]*Kubelet{}, pokes: make(chan struct{}, 1)}
	c.nodeClient = func(string, []byte) (kubernetes.Interface, error) { return client, nil }
	c.life, c.cancel = context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slim))
	podInformer, nodeInformer := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	c.pods, c.nodes = podInformer.Lister(), nodeInformer.Lister()
	for informer, changed := range map[cache.SharedIndexInformer]func(any){
		podInformer.Informer(): c.dispatch, nodeInformer.Informer(): c.nodeChanged,
	} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: changed, UpdateFunc: func(_, now any) { changed(now) }, DeleteFunc: changed,
		}); err != nil {
			return nil, err
		}
	}
	c.synced = []cache.InformerSynced{podInformer.Informer().HasSynced, nodeInformer.Informer().HasSynced}
	c.shared = &workload.Cluster{Name: o.Name, Endpoint: o.Endpoint, Client: client, Dynamic: custom,
		PodAddresses: c.podAddresses,
		Faults:       o.Faults, Processes: o.Processes, PodStart: o.Latency.PodStart, Log: c.log, CSI: &workload.CSI{},
		Nodes: func() []*corev1.Node {
			list, _ := c.nodes.List(labels.Everything()) // from the cache: never an error
			return list
		}}
	c.cilium = &cilium.Cilium{Second: o.Latency.CiliumSecond, CRDs: o.Workloads.CRDs, Server: o.Workloads.Images[cilium.MeshServer]}
	c.o.Workloads.Network = c.cilium.Find
	if o.Addresses != nil { // otherwise nothing serves it
		c.shared.Loopback = o.Loopback
		if o.Namespaces != nil && o.Loopback.IsValid() {
			c.shared.Services = &workload.ServiceAddresses{Range: serviceNet(o.Loopback)}
		}
	}
	factory.Start(c.life.Done())
	c.work.Go(func() { c.keepOperatorOut(c.life) })
	c.work.Go(func() { c.cilium.ServeLoadBalancers(c.life, c.shared, o.Addresses) })
	return c, nil
}

// serviceNet is the network of the addresses at which a cluster's Services are served: a part of what RFC 2544 reserves for tests of
// network devices, by the cluster's loopback address.
func serviceNet(loopback netip.Addr) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 19, loopback.As4()[2], 0}), 24)
}

// slim removes what the lab does not read. With a hundred nodes that is most of the memory.
func slim(o any) (any, error) {
	if m, ok := o.(interface {
		SetManagedFields([]metav1.ManagedFieldsEntry)
	}); ok {
		m.SetManagedFields(nil)
	}
	return o, nil
}

// Stop ends every kubelet and every container of the cluster.
func (c *Cluster) Stop() {
	c.mu.Lock()
	kubelets, runtimes := c.kubelets, c.runtimes
	c.kubelets, c.runtimes = map[string]*Kubelet{}, map[string]*containerRuntime{}
	c.mu.Unlock()
	var all sync.WaitGroup
	for _, k := range kubelets {
		all.Go(k.stop)
	}
	all.Wait()
	for _, r := range runtimes {
		all.Go(func() { r.kill(2 * time.Second) })
	}
	all.Wait()
	c.cancel()
	c.work.Wait()
}

// poke makes the cluster check again what it has to do.
func (c *Cluster) poke() { workload.Poke(c.pokes) }

// podAddresses are the pods of a node that do not use the host network, by address.
func (c *Cluster) podAddresses(node string) map[string]string {
	c.mu.Lock()
	r := c.runtimes[node]
	c.mu.Unlock()
	if r == nil {
		return nil
	}
	return r.addresses()
}

// podsOf are the pods of a node.
func (c *Cluster) podsOf(node string) []*corev1.Pod {
	list, _ := c.pods.List(labels.Everything()) // from the cache: never an error
	return slices.DeleteFunc(list, func(p *corev1.Pod) bool { return p.Spec.NodeName != node })
}

// dispatch passes a pod to the kubelet of its node.
func (c *Cluster) dispatch(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	pod, ok := o.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return
	}
	if pod.Name == blocker || operatorLabels.AsSelector().Matches(labels.Set(pod.Labels)) {
		c.poke()
	}
	if k := c.kubelet(pod.Spec.NodeName); k != nil {
		k.podChanged(pod)
	}
	c.cilium.NodeChanged(pod.Spec.NodeName)
}

func (c *Cluster) nodeChanged(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if n, ok := o.(*corev1.Node); ok {
		if k := c.kubelet(n.Name); k != nil {
			if n.Spec.PodCIDR != "" {
				k.runtime.setPodCIDRs(cilium.PodCIDRs(n, c.o.Faults))
			}
			k.poke()
			k.metadataChanged()
		}
		c.cilium.NodeChanged(n.Name)
		c.poke()
	}
}

func (c *Cluster) kubelet(node string) *Kubelet {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kubelets[node]
}

// runtime returns the containers of a node. After a reboot it has none. Up to Talos 1.13, the configuration of the network plugin stays on
// the disk (constants.Overlays).
func (c *Cluster) runtime(of NodeOptions) *containerRuntime {
	c.mu.Lock()
	old := c.runtimes[of.Name]
	if old != nil && old.bootID == of.BootID {
		defer c.mu.Unlock()
		return old
	}
	r := newContainerRuntime(c.life, of.BootID, of.Images)
	r.pulls = func(from, to time.Time) {
		c.o.Latency.Record.Add(latency.Span{What: "image pull", Of: of.Name, From: from, To: to})
	}
	if old != nil && old.disk == of.Images && !versions.Since(of.TalosVersion, "v1.14") {
		r.cniSince = old.cni()
	}
	c.runtimes[of.Name] = r
	c.mu.Unlock()
	if old != nil {
		old.kill(0)
		c.shared.CSI.NodeDown(of.Name)
	}
	return r
}
