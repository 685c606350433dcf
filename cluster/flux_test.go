package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
)

func TestFlux_RefusesOptionsThatDoNotFit(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*cluster.Flux, *cluster.Cluster)
		want   []string
	}{
		"a controller is missing": {func(f *cluster.Flux, _ *cluster.Cluster) {
			f.Components = []cluster.FluxComponent{"source-controller", "notification-controller", "image-reflector-controller"}
		}, []string{
			"gitops.flux.components: lacks kustomize-controller, without which Flux does not apply the repository; add it",
			"gitops.flux.components: lacks helm-controller, without which Flux does not apply the repository; add it",
		}},
		"an old version": {func(f *cluster.Flux, _ *cluster.Cluster) { f.Version = "2.5.x" }, []string{
			"gitops.flux.version: 2.5.x is too old; write 2.6.0 or newer"}},
		"Flux 1": {func(f *cluster.Flux, _ *cluster.Cluster) { f.Version = "1.x" }, []string{
			"gitops.flux.version: 1.x is too old; write 2.6.0 or newer"}},
		"source-watcher of an older version": {func(f *cluster.Flux, _ *cluster.Cluster) {
			f.Version, f.Components = "2.6.4", append(f.Components, "source-watcher")
		}, []string{"gitops.flux.components: has source-watcher, which Flux 2.6.4 does not have; " +
			"remove it, or write gitops.flux.version 2.7.0 or newer"}},
		"a release that the operator does not know": {func(f *cluster.Flux, _ *cluster.Cluster) { f.Version = "2.10.x" }, []string{
			"gitops.flux.version: 2.10.x does not go with flux-operator 0.59.0, which takes Flux 2.2 to 2.9; change one of the two"}},
		"an account of tenants without tenants": {func(f *cluster.Flux, _ *cluster.Cluster) { f.TenantServiceAccount = "flux" }, []string{
			"gitops.flux.tenantServiceAccount: flux is for tenants, and gitops.flux.multitenant is false; " +
				"remove it, or write gitops.flux.multitenant: true"}},
		"volumes without a storage class": {func(f *cluster.Flux, _ *cluster.Cluster) {
			f.Sharding = &cluster.FluxSharding{Key: "a/b", Shards: []string{"one"}, Persistent: true}
		}, []string{"gitops.flux.sharding.persistent: needs gitops.flux.storage, which is missing; add gitops.flux.storage, or remove it"}},
		"a login of another registry": {func(f *cluster.Flux, c *cluster.Cluster) {
			f.Registry = "registry.example.com:5000/fluxcd"
			c.FluxRegistryConfig = cluster.NewSecret(`{"auths": {"registry.example.com": {"auth": "YTpi"}}}`)
		}, []string{`fluxRegistryConfig: has no login for registry.example.com:5000; ` +
			`log in there, or set a config.json with {"auths": {"HOST": {"username": "…", "password": "…"}}}`}},
	} {
		assert.Equal(t, test.want, problemsOf(t, func(c *cluster.Cluster) { test.change(&c.GitOps.Flux, c) }), name)
	}
}

func TestFlux_ALaterOperatorMayKnowALaterRelease(t *testing.T) {
	assert.Empty(t, problemsOf(t, func(c *cluster.Cluster) { c.GitOps.Operator.Version, c.GitOps.Flux.Version = "0.60.0", "2.10.0" }))
}

func TestFlux_RangesAndOptionsThatFitAreValid(t *testing.T) {
	for _, version := range []string{"2.x", "2.6.x", "2.*", "2.9.0-rc.1", "3.x"} {
		assert.Empty(t, problemsOf(t, func(c *cluster.Cluster) {
			flux := &c.GitOps.Flux
			flux.Version, flux.Multitenant, flux.TenantServiceAccount = version, true, "flux"
			flux.Sharding = &cluster.FluxSharding{Key: "a/b", Shards: []string{"one"}, Persistent: true}
			flux.Storage = &cluster.FluxStorage{Class: "ceph-block", Size: 10 * cluster.GiB}
		}), version)
	}
}
