package talos

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"maps"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"golang.org/x/mod/semver"

	"github.com/slipway-platform/slipway/lab/talos/image"
	"github.com/slipway-platform/slipway/lab/talos/kubernetes"
)

// staticPod is a component of the control plane as the kubelet of a node runs it. Guarded by site.mu.
type staticPod struct {
	kubernetes.Component

	spec string          // podSpec, when its pod was made
	cfg  config.Provider // the configuration that it runs with
	made bool            // its container was made
	ends bool            // its program has ended at its start
	up   bool            // its program runs
	// of an API server: the run of etcd to which it is connected, and the CAs that it has trusted since its start; nil before
	etcd   *etcdProcess
	trusts []*x509.Certificate
}

// StaticPod is a component of the control plane on a node, for its kubelet.
type StaticPod struct {
	Name  string // e.g. kube-apiserver
	Image string
	Hash  string // of what the pod is made from
	// Annotations are those in which Talos numbers what the pod is made from.
	Annotations map[string]string
	Runs        bool // its program runs
	Ends        bool // its program has ended at its start
}

// keepStaticPod runs a component of this control plane as the active configuration says. A change of the pod ends the running one, and the
// next one begins when its image is there.
func (b *boot) keepStaticPod(name string) {
	for b.ctx.Err() == nil {
		err := b.site.waitUntil(b.ctx, func() bool {
			now, spec := b.static[name], b.podSpec(name)
			return b.planeLocked() != nil && b.kubeletWanted() && (now == nil || !now.up || now.spec != spec)
		})
		if err != nil {
			return
		}
		if err := b.restartStaticPod(name); err != nil && b.ctx.Err() == nil {
			b.Printk("[talos] retrying error: static pod %s: %v", name, err)
			_ = sleep(b.ctx, b.site.cfg.Latency.Service)
		}
	}
}

// podSpec is what the kubelet that runs, or is to run, makes a component's pod from. It names the pod by a hash of all that it knows of
// pods (applyDefaults in pkg/kubelet/config/common.go), and another minor release knows other fields: it ends the pod and makes it anew.
// The caller holds the site's mutex.
func (b *boot) podSpec(name string) string {
	release := cmp.Or(b.ranKubelet, semver.MajorMinor(image.Tag(b.config.Machine().Kubelet().Image())))
	return kubernetes.ComponentOf(b.config, name).Spec() + " of kubelet " + release
}

// planeLocked is the control plane of the node's cluster, if the node's own etcd runs and is not cut off; nil otherwise. The caller holds
// the site's mutex.
func (b *boot) planeLocked() ControlPlane {
	if e := b.cluster.etcd; b.etcdUp && e != nil && e.ready && !e.cutOff(b.inst.etcd) {
		return e.controlPlane
	}
	return nil
}

// kubeletWanted tells whether the sequence that runs has not stopped the kubelet. The caller holds the site's mutex.
func (b *boot) kubeletWanted() bool { return b.stage != StageStopping && b.stage != StageFailed }

// errSuperseded means that the configuration has changed again.
var errSuperseded = errors.New("the configuration has changed")

// restartStaticPod replaces the running pod of a component by that of the active configuration.
func (b *boot) restartStaticPod(name string) error {
	// The kubelet asks for its static pods now and then: a real one every 20 seconds.
	if err := sleep(b.ctx, b.site.cfg.Latency.Service); err != nil {
		return err
	}
	b.site.mu.Lock()
	cfg, plane := b.config, b.planeLocked()
	c := kubernetes.ComponentOf(cfg, name)
	if err := c.Denied(b.version); err != nil { // a controller of Talos fails, and the former pod stays
		b.site.mu.Unlock()
		return err
	}
	spec := b.podSpec(name)
	b.static[name] = &staticPod{Component: c, spec: spec, cfg: cfg}
	b.site.mu.Unlock()
	if plane == nil {
		return errSuperseded
	}
	b.staticPodsChanged()
	if !c.Enabled {
		b.note(name, spec, func(pod *staticPod) { pod.up = true })
		return nil
	}
	pull := func(ctx context.Context) error { return b.pull(ctx, common.ContainerdNamespace_NS_CRI, c.Image) }
	if b.whileWanted(name, spec, pull) != nil {
		return errSuperseded
	}
	if err := sleep(b.ctx, b.site.cfg.Latency.PodStart); err != nil {
		return err
	}
	b.note(name, spec, func(pod *staticPod) { pod.made = true })
	ended := func() { b.note(name, spec, func(pod *staticPod) { pod.ends = true }) }
	prepare := func(ctx context.Context) error { return plane.Prepare(ctx, name, cfg, ended) }
	if err := b.whileWanted(name, spec, prepare); err != nil {
		return err
	}
	b.note(name, spec, func(pod *staticPod) { pod.up = true })
	return nil
}

// whileWanted calls f with a context that ends when the component's pod gets another spec.
func (b *boot) whileWanted(name, spec string, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	b.wg.Go(func() {
		_ = b.site.waitUntil(ctx, func() bool {
			return b.podSpec(name) != spec || b.planeLocked() == nil
		})
		cancel()
	})
	return f(ctx)
}

// note records how far the pod of a spec is.
func (b *boot) note(name, spec string, how func(*staticPod)) {
	b.site.mu.Lock()
	if pod := b.static[name]; pod != nil && pod.spec == spec {
		how(pod)
		b.cluster.etcd.connect()
	}
	b.site.mu.Unlock()
	b.staticPodsChanged()
}

// staticPodsChanged tells the kubelet and the cluster that a static pod has changed.
func (b *boot) staticPodsChanged() {
	b.site.mu.Lock()
	k := b.kubelet
	b.site.mu.Unlock()
	if k != nil {
		k.StaticPodsChanged()
	}
	b.publishStatus()
	b.site.change.Notify()
}

// staticPods are the components as the kubelet is to run them.
func (b *boot) staticPods() []StaticPod {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	var out []StaticPod
	for _, name := range slices.Sorted(maps.Keys(b.static)) {
		if pod := b.static[name]; pod.Enabled {
			out = append(out, StaticPod{Name: name, Image: pod.Image, Hash: pod.spec, Annotations: pod.Annotations(), Runs: pod.up, Ends: pod.ends})
		}
	}
	return out
}

// runs returns the configuration that a component runs with on this node, nil if it does not run. The caller holds the site's mutex.
func (b *boot) runs(name string) config.Provider {
	pod := b.static[name]
	if pod == nil || !pod.up || !pod.Enabled {
		return nil
	}
	return pod.cfg
}
