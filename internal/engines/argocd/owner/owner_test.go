package owner

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/fakes/enginestest"
)

// Paths of the API; of workloads with the value of the label app.kubernetes.io/part-of.
const (
	instances    = "/apis/fluxcd.controlplane.io/v1/fluxinstances"
	flux         = "/apis/apps/v1/deployments flux"
	deployments  = "/apis/apps/v1/deployments argocd"
	statefulSets = "/apis/apps/v1/statefulsets argocd"
	namespace    = "/api/v1/namespaces/argocd"
	root         = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/root"
)

func check(t *testing.T, answers map[string]string) error {
	t.Helper()
	return Check(t.Context(), enginestest.Answers(t, answers), Declared{Cluster: "infra", Namespace: "argocd", Root: "root"})
}

// of returns an object of the cluster's stack.
func of(cluster string) string {
	return `{metadata: {name: x, annotations: {slipway-platform.github.io/cluster: ` + cluster + `}}}`
}

// server returns the list of a workload of Argo CD.
func server(namespace string) string {
	const of = `, annotations: {meta.helm.sh/release-name: argocd}}}`
	return `{items: [{metadata: {name: argocd-server, namespace: ` + namespace + of + `, {metadata: {name: argocd-repo-server, namespace: ` +
		namespace + of + `]}`
}

func TestCheck_AllowsAClusterWithoutAnEngineAndTheStacksOwnArgoCD(t *testing.T) {
	require.NoError(t, check(t, nil), "no CRD is there")
	require.NoError(t, check(t, map[string]string{instances: "{items: []}", flux: "{items: []}", deployments: "{items: []}",
		namespace: `{metadata: {name: argocd}}`, root: `{metadata: {name: root}}`}))
	for _, own := range []string{namespace, root} {
		require.NoError(t, check(t, map[string]string{own: of("infra"), deployments: server("argocd")}), "of a run that was interrupted")
	}
}

func TestCheck_RefusesAClusterThatFluxRuns(t *testing.T) {
	const runs = "first run `up` with gitops.engine: flux and gitops.enabled: false, and then with gitops.engine: argocd and " +
		"gitops.enabled: true"
	const same = " runs this cluster, and two engines would apply the same objects; "
	instance := func(metadata string) string {
		return `{items: [{metadata: {name: flux, namespace: flux-system, ` + metadata + `}}]}`
	}
	const title = "FluxInstance flux-system/flux"
	for _, key := range []string{cluster.AnnotationCluster, cluster.OldAnnotationCluster} {
		require.EqualError(t, check(t, map[string]string{instances: instance(`annotations: {` + key + `: infra}`), namespace: of("infra")}),
			title+" of this stack"+same+runs)
	}
	require.EqualError(t, check(t, map[string]string{instances: instance(`annotations: {slipway-platform.github.io/cluster: apps}`)}),
		title+" belongs to the cluster apps, and this stack is of infra; check the kubeconfig and cluster.name")
	require.EqualError(t, check(t, map[string]string{instances: instance(``)}), title+same+"if this stack has made that Flux, "+runs+
		"; otherwise remove the FluxInstance, which uninstalls Flux and leaves what Flux has applied: kubectl -n flux-system delete "+
		"fluxinstance flux")
	require.EqualError(t, check(t, map[string]string{flux: `{items: [{metadata: {name: source-controller, namespace: gitops}}]}`}),
		"Deployment gitops/source-controller is part of a Flux, which runs this cluster; remove that Flux, which leaves what it has applied: "+
			"flux uninstall --namespace=gitops; if a stack of Slipway has made that Flux, "+runs)
}

func TestCheck_RefusesTheArgoCDOfAnotherCluster(t *testing.T) {
	for path, title := range map[string]string{namespace: "Namespace argocd", root: "Application argocd/root"} {
		answers := map[string]string{namespace: of("infra"), root: of("infra")}
		answers[path] = of("apps")
		require.EqualError(t, check(t, answers),
			title+" belongs to the cluster apps, and this stack is of infra; check the kubeconfig and cluster.name")
	}
}

func TestCheck_RefusesEachArgoCDOfSomebodyElseOnce(t *testing.T) {
	remove := func(namespace string) string {
		return "remove that Argo CD without a cascade, so that what it has applied stays: argocd app delete NAME --cascade=false for each " +
			"Application of the namespace " + namespace + ", and then uninstall it"
	}
	ours := " argocd/argocd-server is part of an Argo CD that this stack has not made, and is not overwritten; let this stack take it over: " +
		"kubectl annotate namespace argocd slipway-platform.github.io/cluster=infra; or " + remove("argocd")
	theirs := " team/argocd-server is part of an Argo CD in another namespace than argocd, and two of them would apply the same objects; " +
		remove("team")
	require.EqualError(t, check(t, map[string]string{deployments: server("argocd"), statefulSets: server("argocd")}), "Deployment"+ours)
	require.EqualError(t, check(t, map[string]string{statefulSets: server("argocd")}), "StatefulSet"+ours)
	require.EqualError(t, check(t, map[string]string{deployments: server("argocd"), statefulSets: server("team")}),
		"Deployment"+ours+"\nStatefulSet"+theirs)
	another := strings.Replace(server("argocd"), "release-name: argocd", "release-name: argo", 1)
	require.EqualError(t, check(t, map[string]string{deployments: another}), "Deployment argocd/argocd-server is part of an Argo CD that "+
		"this stack has not made, and is not overwritten; "+remove("argocd"), "Helm takes over its own release only")
}
