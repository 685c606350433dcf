package talos

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/hashicorp/go-multierror"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/slipway-platform/slipway/lab/talos/kubernetes"
	"github.com/slipway-platform/slipway/lab/wait"
)

// applyManifests makes the control plane create the bootstrap manifests of this node's configuration that do not exist.
// Those by URL follow when they are downloaded.
func (b *boot) applyManifests() {
	b.site.mu.Lock()
	cfg := b.config
	if b.downloads != nil {
		b.downloads()
	}
	var ctx context.Context
	ctx, b.downloads = context.WithCancel(b.ctx)
	b.downloaded = nil
	b.site.mu.Unlock()
	b.publishManifests(cfg)
	if !cfg.Machine().Type().IsControlPlane() {
		return
	}
	b.giveManifests(cfg, nil) // without a control plane: they are applied when it starts
	if urls := kubernetes.Manifests(cfg); len(urls) > 0 {
		b.wg.Go(func() { b.downloadManifests(ctx, cfg, urls) })
	}
}

// giveManifests gives the manifests to the control plane. It returns false if there is none yet.
func (b *boot) giveManifests(cfg config.Provider, downloaded map[string][]byte) bool {
	b.site.mu.Lock()
	c := b.cluster
	b.site.mu.Unlock()
	c.reconcileMu.Lock()
	defer c.reconcileMu.Unlock()
	if c.current == nil {
		return false
	}
	b.site.mu.Lock()
	cp := c.current.controlPlane
	b.site.mu.Unlock()
	cp.ApplyManifests(cfg, b.version, downloaded, func(err error) { b.controllerFailed("k8s.ManifestApplyController", err) })
	return true
}

// publishManifests publishes the bootstrap manifests of a control plane's configuration, as far as they are downloaded.
// `talosctl upgrade-k8s` compares them with the cluster's objects.
func (b *boot) publishManifests(cfg config.Provider) {
	if !cfg.Machine().Type().IsControlPlane() {
		return
	}
	b.site.mu.Lock()
	downloaded := b.downloaded
	b.site.mu.Unlock()
	rendered, _ := b.site.cfg.Kubernetes.Manifests(cfg, downloaded) // the error is reported where the manifests are applied
	for id, objects := range rendered {
		r := k8s.NewManifest(k8s.ControlPlaneNamespaceName, id)
		for _, o := range objects {
			r.TypedSpec().Items = append(r.TypedSpec().Items, k8s.SingleManifest{Object: o})
		}
		b.res.Put(r)
	}
	published, err := safe.StateListAll[*k8s.Manifest](b.ctx, b.res.State())
	if err != nil {
		return // the boot ends
	}
	for r := range published.All() {
		if _, still := rendered[r.Metadata().ID()]; !still {
			b.res.Remove(r.Metadata())
		}
	}
}

// Talos restarts a controller that has failed after these times.
const (
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = time.Minute
)

// downloadManifests downloads the manifests until all could be downloaded, as k8s.ExtraManifestController does: a round
// tries all of them; each error is in the log, and the next round starts later. What could be downloaded is applied.
func (b *boot) downloadManifests(ctx context.Context, cfg config.Provider, urls []kubernetes.Manifest) {
	given := map[string][]byte{}
	for backoff := firstBackoff; ; backoff = min(backoff*3/2, maxBackoff) {
		var errs []error
		downloaded := maps.Clone(given)
		for _, m := range urls {
			content, err := m.Download(ctx, b.site.cfg.Fetch)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("error downloading %q: %w", m.URL, err))
				continue
			}
			b.Printk(`[talos] downloaded manifest %q {"component": "controller-runtime", "controller": "k8s.ExtraManifestController"}`, m.URL)
			downloaded[m.ID] = content
		}
		if !maps.EqualFunc(given, downloaded, func(a, b []byte) bool { return string(a) == string(b) }) {
			for !b.giveManifests(cfg, downloaded) {
				if !wait.Pause(ctx, firstBackoff) {
					return
				}
			}
			given = downloaded
			b.site.mu.Lock()
			b.downloaded = downloaded
			b.site.mu.Unlock()
			b.publishManifests(cfg)
		}
		if len(errs) == 0 {
			return
		}
		b.controllerFailed("k8s.ExtraManifestController", &multierror.Error{Errors: errs})
		if !wait.Pause(ctx, backoff) {
			return
		}
	}
}

// controllerFailed writes the line of Talos's log about a controller that will be restarted.
func (b *boot) controllerFailed(controller string, err error) {
	b.Printk(`[talos] controller failed {"component": "controller-runtime", "controller": %q, "error": %q}`, controller, err.Error())
}
