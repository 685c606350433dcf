package talos_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/slipway-platform/slipway/lab/talos"
)

// fakeAddresses records the added addresses.
type fakeAddresses struct {
	mu      sync.Mutex
	up      map[netip.Prefix]bool
	removes func(netip.Prefix) // is told before an address is removed; nil by default
}

func (f *fakeAddresses) Add(p netip.Prefix) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.up[p] = true
	return nil
}

func (f *fakeAddresses) Remove(p netip.Prefix) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.removes != nil {
		f.removes(p)
	}
	delete(f.up, p)
	return nil
}

func (f *fakeAddresses) has(a netip.Addr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range f.up {
		if p.Addr() == a {
			return true
		}
	}
	return false
}

// fakeKubernetes records what was started. Nothing in it answers.
type fakeKubernetes struct {
	mu        sync.Mutex
	planes    []*fakeControlPlane
	kubelets  map[string]talos.KubeletConfig // running, by node
	noCordon  bool                           // the API server takes no cordon
	blocked   bool                           // no pod can be evicted
	noCNI     bool                           // no node becomes ready
	ends      string                         // the component whose program ends at its start
	recovered string                         // the id of the bootstrap that began with a snapshot
	did       []string                       // what kubelets were asked for, in order
	slow      sync.Mutex                     // held: an API server that stops takes its time
}

func (f *fakeKubernetes) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// serves is the image of the API server that answers on an address, empty if none does.
func (f *fakeKubernetes) serves(a netip.Addr) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cp := range f.planes {
		if cfg := cp.serving[a]; cfg != nil && !cp.stopped {
			return cfg.Cluster().APIServer().Image()
		}
	}
	return ""
}

// manager is the image of a component that leads, empty if none does.
func (f *fakeKubernetes) manager(component string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	cfg := f.planes[len(f.planes)-1].managers[component]
	switch {
	case cfg == nil:
		return ""
	case component == "kube-scheduler":
		return cfg.Cluster().Scheduler().Image()
	}
	return cfg.Cluster().ControllerManager().Image()
}

func (f *fakeKubernetes) done() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.did)
}

func newFakeKubernetes() *fakeKubernetes {
	return &fakeKubernetes{kubelets: map[string]talos.KubeletConfig{}}
}

func (f *fakeKubernetes) StartControlPlane(
	_ context.Context, id string, _ config.Provider, _ string, _ netip.Addr,
) (talos.ControlPlane, error) {
	cp := &fakeControlPlane{f: f, id: id, ready: make(chan struct{}), serving: map[netip.Addr]config.Provider{},
		managers: map[string]config.Provider{}}
	close(cp.ready)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.planes = append(f.planes, cp)
	return cp, nil
}

// RecoverEtcd accepts what a fake control plane has written.
func (f *fakeKubernetes) RecoverEtcd(_ context.Context, id string, _ config.Provider, snapshot []byte, _ bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !strings.HasPrefix(string(snapshot), "data of ") {
		return errors.New("error verifying snapshot: invalid database")
	}
	f.did = append(f.did, "recover "+string(snapshot))
	f.recovered = id
	return nil
}

func (f *fakeKubernetes) StartKubelet(_ context.Context, k talos.KubeletConfig) (talos.Kubelet, error) {
	ready := false
	f.set(func() { f.kubelets[k.Node], ready = k, !f.noCNI })
	k.NodeStatus(&k8s.NodeStatusSpec{Nodename: k.Node, NodeReady: ready})
	return &fakeKubelet{f: f, node: k.Node}, nil
}

// Manifests returns one ConfigMap, and the ids of the downloaded manifests.
func (f *fakeKubernetes) Manifests(_ config.Provider, downloaded map[string][]byte) (map[string][]map[string]any, error) {
	out := map[string][]map[string]any{"11-kube-config-in-cluster": {{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "kubeconfig-in-cluster", "namespace": "kube-system"},
	}}}
	for id := range downloaded {
		out[id] = nil
	}
	return out, nil
}

// kubelet returns the configuration of a running kubelet.
func (f *fakeKubernetes) kubelet(node string) (talos.KubeletConfig, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k, ok := f.kubelets[node]
	return k, ok
}

// answers tells whether a working control plane answers on an address.
func (f *fakeKubernetes) answers(a netip.Addr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.planes, func(cp *fakeControlPlane) bool { return !cp.stopped && !cp.suspended && cp.serving[a] != nil })
}

func (f *fakeKubernetes) running() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, cp := range f.planes {
		if !cp.stopped {
			n++
		}
	}
	return n
}

func (f *fakeKubernetes) ids() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, cp := range f.planes {
		out = append(out, cp.id)
	}
	return out
}

func (f *fakeKubernetes) suspended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.planes, func(cp *fakeControlPlane) bool { return !cp.stopped && cp.suspended })
}

type fakeControlPlane struct {
	f                  *fakeKubernetes
	id                 string
	ready              chan struct{}
	suspended, stopped bool
	applied            []config.Provider // whose manifests were applied after the start
	downloaded         map[string][]byte // with the last of them
	report             func(error)       // of the last of them
	serving            map[netip.Addr]config.Provider
	managers           map[string]config.Provider
	access             config.Provider // that gives pods access to Talos's API
	accessAt           []netip.Addr
	snapshot           string // instead of its id
	talos              string // version that has applied manifests last
}

func (c *fakeControlPlane) set(change func()) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	change()
}

func (c *fakeControlPlane) Ready() <-chan struct{} { return c.ready }
func (c *fakeControlPlane) Suspend()               { c.set(func() { c.suspended = true }) }
func (c *fakeControlPlane) Resume()                { c.set(func() { c.suspended = false }) }
func (c *fakeControlPlane) Stop()                  { c.set(func() { c.stopped = true }) }

func (c *fakeControlPlane) ApplyManifests(cfg config.Provider, version string, downloaded map[string][]byte, report func(error)) {
	c.set(func() {
		c.applied, c.talos, c.downloaded, c.report = append(c.applied, cfg), version, downloaded, report
	})
}

func (c *fakeControlPlane) Snapshot(_ context.Context, to io.Writer) error {
	_, err := io.WriteString(to, cmp.Or(c.snapshot, "data of "+c.id))
	return err
}

func (c *fakeControlPlane) Database(to io.Writer) error {
	_, err := io.WriteString(to, "data of "+c.id)
	return err
}

// Prepare waits while the component ends at its start.
func (c *fakeControlPlane) Prepare(ctx context.Context, component string, _ config.Provider, ended func()) error {
	ends := false
	c.set(func() { ends = c.f.ends == component })
	if !ends {
		return nil
	}
	ended()
	<-ctx.Done()
	return ctx.Err()
}

// Log returns a line with the component's name and image.
func (c *fakeControlPlane) Log(component string, cfg config.Provider) ([]byte, error) {
	return []byte("first line\n" + component + " of " + cfg.Cluster().APIServer().Image() + "\n"), nil
}

func (c *fakeControlPlane) Manage(component string, cfg config.Provider) {
	c.set(func() { c.managers[component] = cfg })
}

func (c *fakeControlPlane) ManageTalosAPI(cfg config.Provider, addresses []netip.Addr) {
	c.set(func() { c.access, c.accessAt = cfg, addresses })
}

func (c *fakeControlPlane) Serve(a netip.Addr, cfg config.Provider) (func(), error) {
	c.set(func() { c.serving[a] = cfg })
	return func() {
		c.set(func() { delete(c.serving, a) })
		c.f.slow.Lock()
		defer c.f.slow.Unlock()
	}, nil
}

type fakeKubelet struct {
	f    *fakeKubernetes
	node string
}

func (k *fakeKubelet) StaticPodsChanged() {}

func (k *fakeKubelet) Cordon(ctx context.Context) error {
	k.f.mu.Lock()
	defer k.f.mu.Unlock()
	if k.f.noCordon {
		k.f.mu.Unlock()
		<-ctx.Done()
		k.f.mu.Lock()
		return ctx.Err()
	}
	k.f.did = append(k.f.did, "cordon "+k.node)
	return nil
}

// Drain takes until its deadline while blocked.
func (k *fakeKubelet) Drain(ctx context.Context, _ func(string)) error {
	k.f.mu.Lock()
	blocked := k.f.blocked
	k.f.did = append(k.f.did, "drain "+k.node)
	k.f.mu.Unlock()
	if blocked {
		<-ctx.Done()
	}
	return nil
}

func (k *fakeKubelet) Shutdown(context.Context) {
	k.f.mu.Lock()
	k.f.did = append(k.f.did, "shutdown "+k.node)
	k.f.mu.Unlock()
	k.Stop()
}

func (k *fakeKubelet) Kill() { k.Stop() }

func (k *fakeKubelet) Stop() {
	k.f.mu.Lock()
	defer k.f.mu.Unlock()
	delete(k.f.kubelets, k.node)
}
