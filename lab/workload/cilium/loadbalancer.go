package cilium

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"

	"github.com/slipway-platform/slipway/lab/network"
	"github.com/slipway-platform/slipway/lab/wait"
	"github.com/slipway-platform/slipway/lab/workload"
)

var (
	l2Policies        = schema.GroupVersionResource{Group: "cilium.io", Version: "v2alpha1", Resource: "ciliuml2announcementpolicies"}
	bgpAdvertisements = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumbgpadvertisements"}
	bgpConfigs        = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumbgpclusterconfigs"}
)

// MeshServer is the name of a cluster's mesh API server: of its Service, and of its image.
const MeshServer = "clustermesh-apiserver"

// LoadBalancers are the load-balancer addresses of a cluster, as its agents announce and serve them: an announced address is on the lab's
// link, and connections to a Service's TCP port there go to a ready pod. Without a ready pod they are refused; an address that is not
// announced does not answer. Which node answers, source addresses, UDP, and the cluster-internal addresses of Services are not modelled,
// but for the Services of source-controller, from which Flux fetches artifacts: see servicePort, and for those in
// workload.ServiceAddresses.
type LoadBalancers struct {
	cluster   *workload.Cluster
	cilium    *Cilium
	addresses network.Addresses

	services  workload.ObjectCache[*corev1.Service]
	endpoints workload.ObjectCache[*discoveryv1.EndpointSlice]
	l2        workload.ObjectCache[*unstructured.Unstructured]
	bgp       workload.ObjectCache[*unstructured.Unstructured]
	bgpConfig workload.ObjectCache[*unstructured.Unstructured]

	serving map[netip.Addr]map[uint16]*balancer
}

// ServeLoadBalancers announces and serves the load-balancer addresses of a cluster until ctx ends.
func (n *Cilium) ServeLoadBalancers(ctx context.Context, c *workload.Cluster, addresses network.Addresses) {
	if c.Dynamic == nil || addresses == nil {
		return
	}
	for changed := n.Changed(); !n.crdsExist(ctx, c); changed = n.Changed() {
		select { // the API server is not asked before the first agent runs
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
	l := &LoadBalancers{cluster: c, cilium: n, addresses: addresses, serving: map[netip.Addr]map[uint16]*balancer{}}
	l.services, l.endpoints = newServiceCache(ctx, c), newEndpointCache(ctx, c)
	l.l2, l.bgp = workload.NewCustomCache(ctx, c, l2Policies), workload.NewCustomCache(ctx, c, bgpAdvertisements)
	l.bgpConfig = workload.NewCustomCache(ctx, c, bgpConfigs)
	defer l.serve(nil)
	for {
		agents, faults := n.Changed(), c.Faults.Changed()
		var named <-chan struct{}
		if c.Services != nil {
			named = c.Services.Changed()
		}
		if l.services.Synced() && l.endpoints.Synced() && l.l2.Synced() && l.bgp.Synced() && l.bgpConfig.Synced() {
			l.serve(l.wanted())
		}
		if !wait.Pause(ctx, 50*time.Millisecond) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-agents:
		case <-faults:
		case <-named:
		case <-l.services.Changed:
		case <-l.endpoints.Changed:
		case <-l.l2.Changed:
		case <-l.bgp.Changed:
		case <-l.bgpConfig.Changed:
		case <-time.After(2 * time.Second):
		}
	}
}

// wanted returns the ready pods behind every announced address and port.
func (l *LoadBalancers) wanted() map[netip.Addr]map[uint16][]string {
	out := map[netip.Addr]map[uint16][]string{}
	for _, s := range l.services.List() {
		if own := l.cluster.Loopback; own.IsValid() && strings.HasPrefix(s.Name, workload.SourceController) && len(s.Spec.Ports) > 0 {
			if out[own] == nil {
				out[own] = map[uint16][]string{}
			}
			out[own][workload.ServicePort(s.Namespace, s.Name)] = l.backends(s, s.Spec.Ports[0].Name)
		}
		if ip, is := l.cluster.Services.Assigned(s.Namespace, s.Name); is {
			out[ip] = l.ports(s)
		}
		if s.Spec.Type != corev1.ServiceTypeLoadBalancer || !l.announced(s) || s.Name == MeshServer && l.meshGone() {
			continue
		}
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			ip, err := netip.ParseAddr(ingress.IP)
			if err != nil {
				continue
			}
			if out[ip] == nil {
				out[ip] = map[uint16][]string{}
			}
			maps.Copy(out[ip], l.ports(s))
		}
	}
	return out
}

// ports are the ready pods behind each TCP port of a Service.
func (l *LoadBalancers) ports(s *corev1.Service) map[uint16][]string {
	out := map[uint16][]string{}
	for _, port := range s.Spec.Ports {
		if port.Protocol == corev1.ProtocolTCP || port.Protocol == "" {
			out[uint16(port.Port)] = l.backends(s, port.Name)
		}
	}
	return out
}

// backends are the ready pods of a Service's port, with their ports.
func (l *LoadBalancers) backends(s *corev1.Service, port string) (out []string) {
	for _, slice := range l.endpoints.List() {
		if slice.Namespace != s.Namespace || slice.Labels[discoveryv1.LabelServiceName] != s.Name {
			continue
		}
		for _, p := range slice.Ports {
			if p.Port == nil || p.Name != nil && *p.Name != port {
				continue
			}
			for _, e := range slice.Endpoints {
				if e.Conditions.Ready == nil || *e.Conditions.Ready {
					for _, address := range e.Addresses {
						out = append(out, net.JoinHostPort(address, strconv.Itoa(int(*p.Port))))
					}
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// announced tells whether some ready agent announces the addresses of a Service.
func (l *LoadBalancers) announced(s *corev1.Service) bool {
	for node, config := range l.cilium.ready() {
		if config.on("enable-l2-announcements") && slices.ContainsFunc(l.l2.List(), func(policy *unstructured.Unstructured) bool {
			return l.announcesL2(policy, s, node)
		}) {
			return true
		}
		// The lab has no routers. They are assumed to accept every session and every route.
		if config.on("enable-bgp-control-plane") && len(l.bgpConfig.List()) > 0 &&
			slices.ContainsFunc(l.bgp.List(), func(one *unstructured.Unstructured) bool { return advertises(one, s) }) {
			return true
		}
	}
	return false
}

// announcesL2 tells whether a policy lets a node announce a Service.
func (l *LoadBalancers) announcesL2(policy *unstructured.Unstructured, s *corev1.Service, node string) bool {
	var read struct {
		Spec struct {
			LoadBalancerIPs bool
			ServiceSelector *metav1.LabelSelector
			NodeSelector    *metav1.LabelSelector
		}
	}
	if err := workload.Decode(policy, &read); err != nil || !read.Spec.LoadBalancerIPs {
		return false
	}
	nodes := l.cluster.Nodes()
	at := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == node })
	return at >= 0 && selects(read.Spec.ServiceSelector, serviceLabels(s), true) &&
		selects(read.Spec.NodeSelector, nodes[at].Labels, true)
}

// advertises tells whether a CiliumBGPAdvertisement has the load-balancer addresses of a Service. Without a selector it has none.
func advertises(object *unstructured.Unstructured, s *corev1.Service) bool {
	var read struct {
		Spec struct {
			Advertisements []struct {
				AdvertisementType string
				Service           struct{ Addresses []string }
				Selector          *metav1.LabelSelector
			}
		}
	}
	if err := workload.Decode(object, &read); err != nil {
		return false
	}
	for _, one := range read.Spec.Advertisements {
		balanced := one.AdvertisementType == "Service" && slices.Contains(one.Service.Addresses, "LoadBalancerIP")
		if balanced && selects(one.Selector, serviceLabels(s), false) {
			return true
		}
	}
	return false
}

// serviceLabels are a Service's labels, and Cilium's additions for selectors.
func serviceLabels(s *corev1.Service) map[string]string {
	out := map[string]string{"io.kubernetes.service.namespace": s.Namespace, "io.kubernetes.service.name": s.Name}
	maps.Copy(out, s.Labels)
	return out
}

func selects(selector *metav1.LabelSelector, set map[string]string, without bool) bool {
	if selector == nil {
		return without
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(set))
}

// address changes the lab's link. Loopback addresses are there already.
func (l *LoadBalancers) address(ip netip.Addr, change func(netip.Prefix) error) error {
	if ip.IsLoopback() {
		return nil
	}
	return change(netip.PrefixFrom(ip, ip.BitLen()))
}

// serve makes what is served equal to what is wanted.
func (l *LoadBalancers) serve(wanted map[netip.Addr]map[uint16][]string) {
	for ip, ports := range l.serving {
		for port, b := range ports {
			if len(wanted[ip][port]) == 0 {
				b.close()
				delete(ports, port)
			}
		}
		if _, is := wanted[ip]; !is {
			if err := l.address(ip, l.addresses.Remove); err != nil {
				l.cluster.Log.Warn("load-balancer address not removed", "address", ip, "err", err)
			}
			delete(l.serving, ip)
		}
	}
	for ip, ports := range wanted {
		if l.serving[ip] == nil {
			if err := l.address(ip, l.addresses.Add); err != nil {
				l.cluster.Log.Warn("load-balancer address not added", "address", ip, "err", err)
				continue
			}
			l.serving[ip] = map[uint16]*balancer{}
		}
		for port, backends := range ports {
			switch b := l.serving[ip][port]; {
			case len(backends) == 0:
			case b != nil:
				b.set(backends)
			default:
				listener, err := net.Listen("tcp", netip.AddrPortFrom(ip, port).String())
				if err != nil {
					l.cluster.Log.Warn("load-balancer address not served", "address", ip, "port", port, "err", err)
					continue
				}
				l.serving[ip][port] = balance(listener, backends)
			}
		}
	}
}

// balancer passes connections on to the pods behind a port in turn.
type balancer struct {
	listener net.Listener

	mu       sync.Mutex
	backends []string
	next     int
	open     map[net.Conn]string // connections, and the pods behind them
	closed   bool
}

func balance(listener net.Listener, backends []string) *balancer {
	b := &balancer{listener: listener, backends: backends, open: map[net.Conn]string{}}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go b.pass(in)
		}
	}()
	return b
}

// set replaces the pods. Connections to others end, as those to a pod that has gone.
func (b *balancer) set(backends []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = backends
	for conn, to := range b.open {
		if !slices.Contains(backends, to) {
			_ = conn.Close()
		}
	}
}

// close ends all connections.
func (b *balancer) close() {
	_ = b.listener.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for conn := range b.open {
		_ = conn.Close()
	}
}

func (b *balancer) pass(in net.Conn) {
	defer in.Close()
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return
	}
	b.next++
	to := b.backends[b.next%len(b.backends)]
	b.open[in] = to
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.open, in)
	}()
	workload.Forward(in, to)
}

// newServiceCache follows all Services.
func newServiceCache(ctx context.Context, c *workload.Cluster) workload.ObjectCache[*corev1.Service] {
	return workload.NewCache[*corev1.Service](ctx, informers.NewSharedInformerFactory(c.Client, 0).Core().V1().Services().Informer())
}

// newEndpointCache follows the EndpointSlices of Services.
func newEndpointCache(ctx context.Context, c *workload.Cluster) workload.ObjectCache[*discoveryv1.EndpointSlice] {
	factory := informers.NewSharedInformerFactoryWithOptions(c.Client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = discoveryv1.LabelServiceName }))
	return workload.NewCache[*discoveryv1.EndpointSlice](ctx, factory.Discovery().V1().EndpointSlices().Informer())
}
