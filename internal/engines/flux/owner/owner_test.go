package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/fakes/enginestest"
)

func declared() Declared {
	return Declared{
		Cluster: "infra", Namespace: "flux-system", Instance: "flux", Sync: "flux-system", Version: "2.9.5",
		SourceKind: "gitrepositories", Source: "https://git.home.arpa/platform/slipway.git", Ref: "refs/heads/main",
		Path: "kubernetes/clusters/infra", Description: "GitRepository",
	}
}

// Paths of the API.
const (
	instances   = "/apis/fluxcd.controlplane.io/v1/fluxinstances"
	deployments = "/apis/apps/v1/deployments flux"
	root        = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/flux-system"
	source      = "/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/flux-system"
)

// bootstrapped is what `flux bootstrap git --url=… --branch=main --path=kubernetes/clusters/infra` of Flux 2.8 leaves.
func bootstrapped() map[string]string {
	return map[string]string{
		deployments: `{items: [{metadata: {name: source-controller, namespace: flux-system, labels: {
  app.kubernetes.io/part-of: flux, app.kubernetes.io/version: v2.8.3, kustomize.toolkit.fluxcd.io/name: flux-system}}}]}`,
		root: `{metadata: {name: flux-system}, spec: {path: ./kubernetes/clusters/infra, prune: true,
  sourceRef: {kind: GitRepository, name: flux-system}}}`,
		source: `{metadata: {name: flux-system}, spec: {url: "https://git.home.arpa/platform/slipway.git", ref: {branch: main}}}`,
	}
}

func check(t *testing.T, answers map[string]string) error {
	t.Helper()
	return Check(t.Context(), enginestest.Answers(t, answers), declared())
}

func TestCheck_AllowsAClusterWithoutFluxItsOwnAndOneOfTheSameSource(t *testing.T) {
	require.NoError(t, check(t, nil))
	require.NoError(t, check(t, map[string]string{instances: "{items: []}"}))
	for _, key := range []string{cluster.AnnotationCluster, cluster.OldAnnotationCluster} {
		require.NoError(t, check(t, map[string]string{instances: `{items: [{metadata: {name: flux, namespace: flux-system,
  annotations: {` + key + `: infra}}}]}`}), "of a run that was interrupted")
	}
	require.NoError(t, check(t, bootstrapped()), "flux-operator takes it over")
	installed := bootstrapped()
	delete(installed, root)
	delete(installed, source)
	require.NoError(t, check(t, installed), "flux install: it syncs nothing")
	younger := bootstrapped()
	younger[source] = `{spec: {url: "https://git.home.arpa/platform/slipway.git", ref: {name: refs/heads/main}}}`
	require.NoError(t, check(t, younger))
}

func TestCheck_RefusesAFluxInstanceOfAnotherOwner(t *testing.T) {
	const remove = "remove it, which uninstalls Flux and leaves what Flux has applied: kubectl -n "
	for text, want := range map[string]string{
		`{items: [{metadata: {name: flux, namespace: flux-system,
  managedFields: [{manager: helm}, {manager: flux-operator}, {manager: helm}]}}]}`: "FluxInstance flux-system/flux was made by somebody " +
			"else (by helm), and is not overwritten; let this stack take it over: " +
			"kubectl -n flux-system annotate fluxinstance flux slipway-platform.github.io/cluster=infra; or " +
			remove + "flux-system delete fluxinstance flux",
		`{items: [{metadata: {name: flux, namespace: flux-system,
  annotations: {slipway-platform.github.io/cluster: apps}}}]}`: "FluxInstance flux-system/flux belongs to the cluster apps, " +
			"and this stack is of infra; check the kubeconfig and cluster.name",
		`{items: [{metadata: {name: flux, namespace: gitops}}]}`: "FluxInstance gitops/flux was made by somebody else, and flux-operator can " +
			"install only one Flux; " + remove + "gitops delete fluxinstance flux",
	} {
		require.EqualError(t, check(t, map[string]string{instances: text}), want)
	}
}

func TestCheck_RefusesAFluxWhoseWorkloadsWouldBeRemovedOrThatIsNewer(t *testing.T) {
	const sync = "Kustomization flux-system/flux-system belongs to a Flux that this stack did not make, and would remove what it has applied: "
	const out = "; declare in gitops what it syncs, or remove that Flux, which leaves what it has applied: " +
		"flux uninstall --namespace=flux-system"
	for want, change := range map[string]func(map[string]string){
		sync + "its path is ./clusters/home and not kubernetes/clusters/infra" + out: func(a map[string]string) {
			a[root] = `{spec: {path: ./clusters/home, sourceRef: {kind: GitRepository, name: flux-system}}}`
		},
		sync + "its source is ssh://git@git.home.arpa/a.git and not https://git.home.arpa/platform/slipway.git" + out: func(a map[string]string) {
			a[source] = `{spec: {url: "ssh://git@git.home.arpa/a.git", ref: {branch: main}}}`
		},
		sync + "its source follows refs/heads/dev and not refs/heads/main" + out: func(a map[string]string) {
			a[source] = `{spec: {url: "https://git.home.arpa/platform/slipway.git", ref: {branch: dev}}}`
		},
		sync + "its source is a Bucket and not a GitRepository" + out: func(a map[string]string) {
			delete(a, source)
			a[root] = `{spec: {path: ./kubernetes/clusters/infra, sourceRef: {kind: Bucket, name: flux-system}}}`
		},
		"Deployment flux-system/source-controller is of Flux v2.10.1, and gitops.flux.version is 2.9.5, which is older; declare 2.10.1 or newer" +
			"; or remove that Flux, which leaves what it has applied: flux uninstall": func(a map[string]string) {
			a[deployments] = `{items: [{metadata: {name: source-controller, namespace: flux-system, labels: {app.kubernetes.io/version: v2.10.1}}}]}`
		},
		"Deployment gitops/source-controller is part of a Flux in another namespace than flux-system; remove that Flux, which leaves what it " +
			"has applied: flux uninstall --namespace=gitops": func(a map[string]string) {
			delete(a, root)
			a[deployments] = `{items: [{metadata: {name: source-controller, namespace: gitops}}]}`
		},
	} {
		answers := bootstrapped()
		change(answers)
		require.EqualError(t, check(t, answers), want)
	}
}

func TestNewer_ComparesWithVersionsAndRanges(t *testing.T) {
	for _, pair := range [][2]string{{"v2.9.6", "2.9.5"}, {"v2.10.0", "2.9.x"}, {"v3.0.0", "2.x"}} {
		assert.True(t, newer(pair[0], pair[1]), pair)
	}
	for _, pair := range [][2]string{{"v2.9.5", "2.9.5"}, {"v2.9.9", "2.9.x"}, {"v2.99.0", "2.x"}, {"v2.8.0", "2.9.0-rc.1"}, {"", "2.9.5"}} {
		assert.False(t, newer(pair[0], pair[1]), pair)
	}
}
