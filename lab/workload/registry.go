// Package workload holds the programs in the lab's simulated pods. A container's image selects its program. Most only
// become ready. Cilium's agent and operator act on the Kubernetes API and answer the health commands. Flux's
// controllers are the real programs, as processes that start and end with their containers.
//
// Images and file systems are modelled only for Registry.Images. User ids, resource limits, liveness probes and
// network policies of pods are not modelled.
package workload

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/kube/process"
)

// Cluster is what the workloads of one cluster have in common.
type Cluster struct {
	Name      string // cluster name
	Endpoint  string // URL under which pods reach the API server, e.g. https://10.25.11.10:6443
	Client    kubernetes.Interface
	Dynamic   dynamic.Interface // for Cilium's custom resources; nil: there are none
	Faults    *fault.Set
	Processes *process.Table
	PodStart  time.Duration // a container from created to ready
	// Loopback is an address of this cluster only, at which Cilium's load balancers serve Services that programs know by name; zero: none.
	Loopback netip.Addr
	// Services are the addresses at which they serve Services for containers in network namespaces of their own; nil: none.
	Services *ServiceAddresses
	Nodes    func() []*corev1.Node
	// PodAddresses returns the pods of a node, "namespace/name", by address; nil: not known.
	PodAddresses func(node string) map[string]string
	Log          *slog.Logger
	CSI          *CSI // shared by all nodes
}

// Container is a container of a pod that is to start.
type Container struct {
	Cluster *Cluster
	Node    string
	// KubernetesVersion is the version of the kubelet, e.g. "v1.35.8".
	KubernetesVersion string
	NodeIP            netip.Addr
	PodIP             netip.Addr   // NodeIP if the pod uses the host network
	PodIPs            []netip.Addr // of all families, PodIP first
	Pod               *corev1.Pod
	Spec              corev1.Container
	// RunsToCompletion is true for init containers except sidecars, and for pods that are not restarted, e.g. those of
	// jobs.
	RunsToCompletion bool
	// Network is the file of the pod's network namespace; "" if it has none of its own.
	Network string
	// Disk returns the node's disk with a link in /dev/disk/by-id, as any value that is the same as long as the disk exists; nil if the node
	// has none. The function is nil if disks are not known.
	Disk func(link string) any
	// Claims are the folders with the mounted volumes of the pod's claims, by the name of the pod's volume.
	Claims  map[string]string
	Dir     string    // of this pod; exists; removed with the pod
	Log     io.Writer // stdout and stderr
	LogPath string    // file with what is written to Log
}

// Repository is the image's name without registry, tag and digest, e.g. "fluxcd/source-controller".
func (c Container) Repository() string { return repository(c.Spec.Image) }

func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if slash, colon := strings.LastIndex(image, "/"), strings.LastIndex(image, ":"); colon > slash {
		image = image[:colon]
	}
	if first, rest, found := strings.Cut(image, "/"); found && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return rest
	}
	return image
}

// base is the last element of a repository.
func base(repository string) string { return repository[strings.LastIndex(repository, "/")+1:] }

// Behaviour starts a container. The context ends with the container's node, not with the call.
type Behaviour func(ctx context.Context, c Container) (*Instance, error)

// Registry selects the program of a container. With the zero value, containers only become ready.
type Registry struct {
	// Network, if not nil, returns the behaviours of the cluster's network, and nil for other containers.
	Network  func(Container) Behaviour
	Programs map[string]Program // by last element of the image's name, e.g. "source-controller"
	// Behaviours are additional simulated programs, by last element of the image's name, or by that and the container's name: those run
	// in init containers and jobs, too.
	Behaviours map[string]Behaviour
	// Images are images whose containers run as in reality, by the last element of the image's name, or by more of its last elements, e.g.
	// "library/redis". Their pods have a network namespace.
	Images map[string]Image
	// Listens are the images whose simulated program listens on its pod's address, by last element of the image's name.
	Listens []string
	CRDs    string   // directory with the CRDs of Cilium; empty: its operator installs none
	Env     []string // of every program, e.g. SSL_CERT_FILE=…
}

// Find returns the behaviour of a container.
func (r Registry) Find(c Container) Behaviour {
	name := base(c.Repository())
	if m, ok := r.image(c.Spec.Image); ok {
		return func(ctx context.Context, c Container) (*Instance, error) { return m.start(ctx, r.Env, c) }
	}
	if b, ok := r.Behaviours[name+"/"+c.Spec.Name]; ok {
		return b
	}
	if b, ok := r.Behaviours[name]; ok && !c.RunsToCompletion {
		return b
	}
	if r.Network != nil {
		if b := r.Network(c); b != nil {
			return b
		}
	}
	if c.RunsToCompletion {
		return completes
	}
	if p, ok := r.Programs[name]; ok {
		return func(ctx context.Context, c Container) (*Instance, error) { return p.Start(ctx, name, r.Env, c) }
	}
	return quiet
}

// image returns what the lab knows of an image.
func (r Registry) image(of string) (Image, bool) {
	whole := "/" + repository(of)
	for name, m := range r.Images {
		if strings.HasSuffix(whole, "/"+name) {
			return m, true
		}
	}
	return Image{}, false
}

// Listening tells whether a program in the pod listens on the pod's address, as every real program does.
func (r Registry) Listening(pod *corev1.Pod) bool {
	for _, c := range pod.Spec.Containers {
		name := base(repository(c.Image))
		if _, ok := r.Programs[name]; ok || slices.Contains(r.Listens, name) {
			return true
		}
	}
	return false
}

// Isolated tells whether the pod has a network namespace of its own.
func (r Registry) Isolated(pod *corev1.Pod) bool {
	return !pod.Spec.HostNetwork && slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		_, is := r.image(c.Image)
		return is
	})
}

// podIPs is the value of the downward API's field status.podIPs.
func (c Container) podIPs() string {
	if len(c.PodIPs) == 0 {
		return c.PodIP.String()
	}
	var out []string
	for _, ip := range c.PodIPs {
		out = append(out, ip.String())
	}
	return strings.Join(out, ",")
}
