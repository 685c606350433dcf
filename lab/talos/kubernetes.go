package talos

import (
	"context"
	"io"
	"net/netip"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/lab/talos/image"
)

// Kubernetes runs control planes and kubelets for the simulated nodes.
type Kubernetes interface {
	// StartControlPlane starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler of a cluster. Each
	// bootstrap has a new id, which is usable as a directory name. The same id after Stop means that the control plane
	// continues with its data. cfg is the configuration of a control plane, with the keys of all CAs; advertise is its
	// address, and version what it runs of Talos. The context ends with the site.
	StartControlPlane(ctx context.Context, id string, cfg config.Provider, version string, advertise netip.Addr) (ControlPlane, error)
	// RecoverEtcd makes etcd's data for the id of a bootstrap from a snapshot, before StartControlPlane. Its errors are those of Talos.
	RecoverEtcd(ctx context.Context, id string, cfg config.Provider, snapshot []byte, skipHashCheck bool) error
	// Manifests returns the bootstrap manifests of a control plane's configuration: the objects in JSON's types, by the id
	// that Talos gives to their manifest. downloaded is as for ApplyManifests. A manifest that cannot be read is in the
	// error, and the others are returned.
	Manifests(cfg config.Provider, downloaded map[string][]byte) (map[string][]map[string]any, error)
	// StartKubelet starts the kubelet of a node. It registers the node and renews its lease until stopped.
	StartKubelet(ctx context.Context, k KubeletConfig) (Kubelet, error)
}

// ControlPlane is the control plane of one cluster. Its methods are called one at a time.
type ControlPlane interface {
	// Ready is closed once the API server answers.
	Ready() <-chan struct{}
	// Prepare starts a component of a control plane's configuration, in its version and with its flags, and returns once its program has
	// answered; it calls ended if the program ends before.
	Prepare(ctx context.Context, component string, cfg config.Provider, ended func()) error
	// Serve makes the API server of a control plane's configuration answer on port 6443 of an address of this host, until stop is
	// called.
	Serve(a netip.Addr, cfg config.Provider) (stop func(), err error)
	// Manage makes kube-controller-manager or kube-scheduler run as in the configuration of the control plane that leads; nil: none.
	// Before the first call they run as in the configuration of the start.
	Manage(component string, cfg config.Provider)
	// Log returns what the process of a component has written that works for a control plane of this configuration.
	Log(component string, cfg config.Provider) ([]byte, error)
	// ManageTalosAPI gives pods access to Talos's API as the configuration of a control plane allows it, at the addresses of the control
	// planes; with nil, none any more.
	ManageTalosAPI(cfg config.Provider, addresses []netip.Addr)
	// ApplyManifests creates the objects of a configuration's bootstrap manifests that do not exist, and does not change the others: Talos
	// does so at each boot of a control plane, and when a change of its configuration changes the manifests. version is that of Talos: since
	// 1.13, an object that was created once and is gone is not created again. It returns at once.
	// downloaded are the contents of the manifests by URL, by id, as far as they could be downloaded. report receives each error.
	ApplyManifests(cfg config.Provider, version string, downloaded map[string][]byte, report func(error))
	// Snapshot writes a snapshot of etcd, with its checksum at the end.
	Snapshot(ctx context.Context, to io.Writer) error
	// Database writes the file of etcd's database as it is in the data directory, also while etcd is suspended.
	Database(to io.Writer) error
	// Suspend is called when etcd has lost its quorum: nothing can be read or written until Resume.
	Suspend()
	Resume()
	// Stop ends all processes and keeps their data.
	Stop()
}

// KubeletConfig is the configuration of a kubelet, from its node's machine configuration.
type KubeletConfig struct {
	ClusterID         string       // as given to StartControlPlane
	ClusterName       string       // cluster.clusterName of the machine configuration
	ControlPlane      ControlPlane // of the cluster; has been ready at least once
	Node              string       // node name
	Addresses         []netip.Addr // InternalIPs, the first is the primary one
	IsControlPlane    bool
	RegisterTaints    []corev1.Taint    // registerWithTaints of the kubelet's configuration, which Talos writes
	Labels            map[string]string // machine.nodeLabels and those that Talos sets
	Annotations       map[string]string // machine.nodeAnnotations
	Taints            []corev1.Taint    // machine.nodeTaints, and the control plane's taint unless workloads may be scheduled there
	Cores             int               // of the machine
	MemoryMiB         int               // of the machine
	EphemeralBytes    uint64            // of the file system that holds pods, logs and images
	MaxPods           int               // machine.kubelet.extraConfig.maxPods; 0: the kubelet's default
	ExtraArgs         map[string]string // machine.kubelet.extraArgs
	Disk              func(string) any  // the machine's disk with a link in /dev/disk/by-id: see workload.Container
	Config            config.Provider
	TalosVersion      string // e.g. "v1.12.7"
	KubernetesVersion string // from the kubelet image's tag, e.g. "v1.35.8"
	BootID            string
	MachineID         string
	Images            *image.Store       // the node's images; not nil
	StaticPods        func() []StaticPod // the control plane's pods of this node as they are now; see Kubelet.StaticPodsChanged
	Log               func(line string)  // receives each line of the kubelet's log; nil: discarded
	TalosLog          func(line string)  // receives each line of the log of Talos's controllers; nil: discarded
	// NodeStatus receives what the Node object says whenever it has changed; nil if there is none.
	NodeStatus func(*k8s.NodeStatusSpec)
}

// Kubelet is a running kubelet.
type Kubelet interface {
	// Stop ends it as a crash would, without a message to the API server. The node's containers continue.
	Stop()
	// Kill ends it and all containers of the node, because the machine stops.
	Kill()
	// StaticPodsChanged makes it look at its static pods again.
	StaticPodsChanged()
	// Cordon makes the node unschedulable as Talos does, with Talos's annotation, and returns once it is. A kubelet that starts makes
	// the node schedulable again if it has that annotation.
	Cordon(ctx context.Context) error
	// Drain evicts the node's pods as Talos does. When ctx ends, it returns without an error, and the pods that are left stay.
	Drain(ctx context.Context, log func(line string)) error
	// Shutdown ends the node's pods within their grace periods, as a kubelet does before the machine stops, and then the kubelet.
	Shutdown(ctx context.Context)
}
