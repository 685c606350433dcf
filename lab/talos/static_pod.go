package talos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/lab/kube/authority"
)

// components are the static pods of a control plane.
var components = []string{k8s.APIServerID, k8s.ControllerManagerID, k8s.SchedulerID}

// staticPod is a component of the control plane as the kubelet of a node runs it. Guarded by site.mu.
type staticPod struct {
	image string
	spec  string          // what its pod is made from: another spec is another pod
	cfg   config.Provider // the configuration that it runs with
	made  bool            // its container was made
	up    bool            // its program runs
}

// StaticPod is a component of the control plane on a node, for its kubelet.
type StaticPod struct {
	Name  string // e.g. kube-apiserver
	Image string
	Hash  string // of what the pod is made from
	// Annotations are those in which Talos numbers what the pod is made from.
	Annotations map[string]string
	Runs        bool // its program runs
}

// secretsVersion stands for Talos's number for the files of the static pods, which it counts up when they change. The lab has a checksum of
// the CAs that they are made from.
func secretsVersion(cfg config.Provider) string { return authority.Checksum(cfg.Cluster()) }

// numbered returns the annotations of a component's pod. Talos counts up the number of the arguments when they change; the lab has a
// checksum of what the pod is made from.
func numbered(cfg config.Provider, name string) map[string]string {
	_, spec, _ := componentOf(cfg, name)
	sum := sha256.Sum256([]byte(spec))
	return map[string]string{
		constants.AnnotationStaticPodSecretsVersion: secretsVersion(cfg), constants.AnnotationStaticPodConfigVersion: hex.EncodeToString(sum[:4]),
	}
}

// componentOf returns a component's image, and what its static pod is made from; ok is false if the component is disabled. Names of the
// API server's certificate are no part of the pod.
func componentOf(cfg config.Provider, name string) (image, spec string, ok bool) {
	cluster, raw := cfg.Cluster(), cfg.RawV1Alpha1().ClusterConfig
	var source any
	switch name {
	case k8s.APIServerID:
		image, ok = cluster.APIServer().Image(), true
		if raw.APIServerConfig != nil {
			c := *raw.APIServerConfig
			c.CertSANs = nil
			source = c
		}
	case k8s.ControllerManagerID:
		image, ok = cluster.ControllerManager().Image(), !cfg.Machine().Controlplane().ControllerManager().Disabled()
		source = raw.ControllerManagerConfig
	case k8s.SchedulerID:
		image, ok = cluster.Scheduler().Image(), !cfg.Machine().Controlplane().Scheduler().Disabled()
		source = raw.SchedulerConfig
	}
	text, err := yaml.Marshal(source)
	return image, fmt.Sprintf("%s %s %t %s%v", image, secretsVersion(cfg), ok, text, err), ok
}

// keepStaticPod runs a component of this control plane as the active configuration says. A change of the pod ends the running one, and the
// next one begins when its image is there.
func (b *boot) keepStaticPod(name string) {
	for b.ctx.Err() == nil {
		err := b.site.waitUntil(b.ctx, func() bool {
			_, spec, _ := componentOf(b.config, name)
			now := b.static[name]
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

// planeLocked is the control plane of the node's cluster, if the node's own etcd runs; nil otherwise. The caller holds the site's mutex.
func (b *boot) planeLocked() ControlPlane {
	if e := b.cluster.etcd; b.etcdUp && e != nil && e.ready {
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
	image, spec, enabled := componentOf(cfg, name)
	b.static[name] = &staticPod{image: image, spec: spec, cfg: cfg}
	b.site.mu.Unlock()
	if plane == nil {
		return errSuperseded
	}
	b.staticPodsChanged()
	if !enabled {
		b.setStaticPod(name, spec, true)
		return nil
	}
	if err := b.pullFor(name, spec, image); err != nil {
		return err
	}
	if err := sleep(b.ctx, b.site.cfg.Latency.PodStart); err != nil {
		return err
	}
	b.site.mu.Lock()
	if pod := b.static[name]; pod != nil && pod.spec == spec {
		pod.made = true
	}
	b.site.mu.Unlock()
	if name == k8s.APIServerID {
		if err := b.awaitAPIServer(name, spec, plane, cfg); err != nil {
			return err
		}
	}
	b.setStaticPod(name, spec, true)
	return nil
}

// superseding returns a context that ends when the component's pod gets another spec.
func (b *boot) superseding(name, spec string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(b.ctx)
	b.wg.Go(func() {
		_ = b.site.waitUntil(ctx, func() bool {
			_, wanted, _ := componentOf(b.config, name)
			return wanted != spec || b.planeLocked() == nil
		})
		cancel()
	})
	return ctx, cancel
}

// pullFor pulls the image of a component, until the configuration asks for another pod.
func (b *boot) pullFor(name, spec, image string) error {
	ctx, cancel := b.superseding(name, spec)
	defer cancel()
	if err := b.pull(ctx, common.ContainerdNamespace_NS_CRI, image); err != nil {
		return errSuperseded
	}
	return nil
}

// awaitAPIServer waits until the API server of a configuration answers.
func (b *boot) awaitAPIServer(name, spec string, plane ControlPlane, cfg config.Provider) error {
	ctx, cancel := b.superseding(name, spec)
	defer cancel()
	return plane.Prepare(ctx, cfg)
}

// setStaticPod records that the program of a pod runs, or does not.
func (b *boot) setStaticPod(name, spec string, up bool) {
	b.site.mu.Lock()
	if pod := b.static[name]; pod != nil && pod.spec == spec {
		pod.up = up
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
		pod := b.static[name]
		if _, _, enabled := componentOf(pod.cfg, name); enabled {
			out = append(out, StaticPod{Name: name, Image: pod.image, Hash: pod.spec, Annotations: numbered(pod.cfg, name), Runs: pod.up})
		}
	}
	return out
}

// runs returns the configuration that a component runs with on this node, nil if it does not run. The caller holds the site's mutex.
func (b *boot) runs(name string) config.Provider {
	pod := b.static[name]
	if pod == nil || !pod.up {
		return nil
	}
	if _, _, enabled := componentOf(pod.cfg, name); !enabled {
		return nil
	}
	return pod.cfg
}
