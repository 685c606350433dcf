package talos

import (
	"context"
	"net/netip"

	"github.com/siderolabs/talos/pkg/machinery/config"
)

// Kubernetes runs what the simulated nodes do not simulate themselves: the control plane of a cluster, and kubelets.
type Kubernetes interface {
	// StartControlPlane starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler of a cluster. The id is
	// new for each bootstrap and fit for a directory name; the same id after Stop means: go on with the data of then.
	// The configuration is that of a control plane (keys of all CAs included), advertise its address. The context ends
	// with the site.
	StartControlPlane(ctx context.Context, id string, cfg config.Provider, advertise netip.Addr) (ControlPlane, error)
	// StartKubelet starts the kubelet of a node; it registers the node and keeps it alive until stopped.
	StartKubelet(ctx context.Context, k KubeletConfig) (Kubelet, error)
}

// ControlPlane is the control plane of one cluster. Its methods are called one at a time.
type ControlPlane interface {
	// Ready is closed once the API server answers.
	Ready() <-chan struct{}
	// Serve makes the API answer on port 6443 of an address of this host, until stopped.
	Serve(netip.Addr) (stop func(), err error)
	// Suspend tells that etcd has lost its quorum: nothing can be read or written until Resume.
	Suspend()
	Resume()
	// Stop ends all processes and keeps their data.
	Stop()
}

// KubeletConfig is what a kubelet gets from its node's machine configuration.
type KubeletConfig struct {
	ClusterID         string       // as given to StartControlPlane
	ClusterName       string       // cluster.clusterName of the machine configuration
	ControlPlane      ControlPlane // of the cluster, ready at least once
	Node              string       // node name
	Addresses         []netip.Addr // InternalIPs, the first is the primary one
	IsControlPlane    bool
	Labels            map[string]string // machine.nodeLabels and what Talos itself sets
	Annotations       map[string]string // machine.nodeAnnotations
	Taints            []Taint           // machine.nodeTaints and, unless scheduling is allowed there, the control plane's
	Cores             int               // of the machine
	MemoryMiB         int               // of the machine
	MaxPods           int               // machine.kubelet.extraConfig.maxPods; 0: the kubelet's default
	ExtraArgs         map[string]string // machine.kubelet.extraArgs
	Config            config.Provider
	TalosVersion      string // e.g. "v1.12.7"
	KubernetesVersion string // from the kubelet image's tag, e.g. "v1.35.8"
	BootID            string
	MachineID         string
	Log               func(line string) // takes a line of the kubelet's own log; nil: nobody reads it
}

// Taint is a taint a node registers with.
type Taint struct{ Key, Value, Effect string }

// ManifestsApplier is a ControlPlane that takes the bootstrap manifests of a configuration again: what of them is not
// there is created, what is there is left alone. Talos does so whenever a control plane's configuration changes them,
// and at each boot of a control plane.
type ManifestsApplier interface {
	// ApplyManifests returns at once.
	ApplyManifests(cfg config.Provider)
}

// Kubelet is a running kubelet.
type Kubelet interface {
	// Stop ends it without telling the API server, as a crash would: the node's containers run on.
	Stop()
	// Kill ends it with all containers of the node, whose machine goes down.
	Kill()
}
