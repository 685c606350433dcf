package world

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/lab/kube"
	"github.com/slipway-platform/slipway/lab/kube/authority"
	"github.com/slipway-platform/slipway/lab/kubelet"
	"github.com/slipway-platform/slipway/lab/talos"
)

// kubernetes implements talos.Kubernetes with real control planes and simulated kubelets.
type kubernetes struct {
	world *World

	mu       sync.Mutex
	clusters map[string]*cluster // by the id of the bootstrap
	indices  map[string]int      // index of a cluster's loopback address, by its cluster.id
}

// cluster is a Kubernetes cluster: its processes and its kubelets.
type cluster struct {
	*kube.ControlPlane
	kubelets *kubelet.Cluster
}

// Stop ends the kubelets and pods, then the control plane.
func (c *cluster) Stop() {
	c.kubelets.Stop()
	c.ControlPlane.Stop()
}

// StartControlPlane implements talos.Kubernetes. The processes of a cluster listen on a loopback address of its own.
// Clients connect to the addresses that the nodes serve.
func (k *kubernetes) StartControlPlane(
	ctx context.Context, id string, cfg config.Provider, version string, advertise netip.Addr,
) (talos.ControlPlane, error) {
	w, name := k.world, cfg.Cluster().Name()
	plane, err := kube.Start(ctx, kube.Options{
		Name: name, Dir: filepath.Join(w.Home.Clusters(), id), Config: cfg, Talos: version, Advertise: advertise,
		Loopback: k.loopback(cfg),
		Binary:   w.Tools.Programs["kube"], Minors: w.Tools.minors(), Faults: w.faults, Processes: w.processes, Log: w.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	kubelets, err := kubelet.NewCluster(kubelet.Options{
		Name: name, Dir: filepath.Join(w.Home.Clusters(), id, "pods"), Loopback: k.loopback(cfg), Endpoint: cfg.Cluster().Endpoint().String(),
		ControlPlane: plane, Latency: w.Latency, Faults: w.faults, Addresses: w.link, Namespaces: w.link,
		Workloads: w.workloads(), Processes: w.processes,
		Log: w.Log,
	})
	if err != nil {
		plane.Stop()
		return nil, fmt.Errorf("cluster %s: kubelets: %w", name, err)
	}
	c := &cluster{ControlPlane: plane, kubelets: kubelets}
	k.mu.Lock()
	k.clusters[id] = c
	k.mu.Unlock()
	return c, w.credentials(cfg)
}

// RecoverEtcd implements talos.Kubernetes.
func (k *kubernetes) RecoverEtcd(ctx context.Context, id string, cfg config.Provider, snapshot []byte, skipHashCheck bool) error {
	w := k.world
	return kube.RestoreEtcd(ctx, w.Tools.Programs["kube"], filepath.Join(w.Home.Clusters(), id), k.loopback(cfg), snapshot, skipHashCheck)
}

// loopback is the address on which a cluster's processes listen. It is the same after a restart, and for a restored cluster: a snapshot
// contains it, as in the URLs of Flux's artifacts, where a real cluster has names of Services.
func (k *kubernetes) loopback(cfg config.Provider) netip.Addr {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := cfg.Cluster().ID()
	if _, known := k.indices[id]; !known {
		k.indices[id] = len(k.indices) + 1
	}
	return netip.AddrFrom4([4]byte{127, 1, byte(k.indices[id]), 1})
}

// StartKubelet implements talos.Kubernetes.
func (k *kubernetes) StartKubelet(ctx context.Context, o talos.KubeletConfig) (talos.Kubelet, error) {
	k.mu.Lock()
	c := k.clusters[o.ClusterID]
	k.mu.Unlock()
	if c == nil {
		return nil, fmt.Errorf("kubelet of %s: cluster %s has no control plane", o.Node, o.ClusterName)
	}
	if err := c.KubeletError(o.KubernetesVersion); err != nil {
		return nil, fmt.Errorf("kubelet of %s: %w", o.Node, err)
	}
	statics := func() []kubelet.StaticPod {
		var pods []kubelet.StaticPod
		for _, p := range o.StaticPods() {
			pods = append(pods, kubelet.StaticPod(p))
		}
		return pods
	}
	return c.kubelets.Run(ctx, kubelet.NodeOptions{
		Name: o.Node, Addresses: o.Addresses, AcceptedCAs: authority.Accepted(o.Config.Cluster()), ControlPlane: o.IsControlPlane,
		RegisterTaints: o.RegisterTaints, Labels: o.Labels, Annotations: o.Annotations, Taints: o.Taints,
		TalosVersion: o.TalosVersion, KubernetesVersion: o.KubernetesVersion, MachineID: o.MachineID, BootID: o.BootID,
		Cores: o.Cores, MemoryMiB: o.MemoryMiB, EphemeralBytes: o.EphemeralBytes, MaxPods: maxPods(o), AsksForCertificate: asksForCertificate(o),
		Disk: o.Disk, Log: o.Log, TalosLog: o.TalosLog, Images: o.Images, StaticPods: statics,
		NodeChanged: func(n *corev1.Node) { o.NodeStatus(nodeStatus(n)) },
	})
}

// Manifests implements talos.Kubernetes.
func (k *kubernetes) Manifests(cfg config.Provider, downloaded map[string][]byte) (map[string][]map[string]any, error) {
	return kube.Manifests(cfg, downloaded)
}

// nodeStatus is what Talos publishes of a Node object; nil of none.
func nodeStatus(n *corev1.Node) *k8s.NodeStatusSpec {
	if n == nil {
		return nil
	}
	status := &k8s.NodeStatusSpec{
		Nodename: n.Name, Unschedulable: n.Spec.Unschedulable, Labels: n.Labels, Annotations: n.Annotations,
		NodeReady: slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}),
	}
	for _, cidr := range n.Spec.PodCIDRs {
		if prefix, err := netip.ParsePrefix(cidr); err == nil { // the API server has validated it
			status.PodCIDRs = append(status.PodCIDRs, prefix)
		}
	}
	return status
}

// maxPods is the largest number of pods of the kubelet; a flag overrides its configuration file.
func maxPods(o talos.KubeletConfig) int {
	if n, err := strconv.Atoi(o.ExtraArgs["max-pods"]); err == nil {
		return n
	}
	return o.MaxPods
}

// asksForCertificate reports whether the kubelet asks the cluster's CA for the certificate of its API; a flag overrides its configuration
// file.
func asksForCertificate(o talos.KubeletConfig) bool {
	if flag, err := strconv.ParseBool(o.ExtraArgs["rotate-server-certificates"]); err == nil {
		return flag
	}
	inFile, _ := o.Config.Machine().Kubelet().ExtraConfig()["serverTLSBootstrap"].(bool)
	return inFile
}

func (k *kubernetes) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.clusters {
		c.Stop()
	}
}
