package owner

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Paths of the API.
const (
	namespace    = "/api/v1/namespaces/argocd"
	argocd       = "/apis/apps/v1/namespaces/argocd/deployments argocd"
	argocdSets   = "/apis/apps/v1/namespaces/argocd/statefulsets argocd"
	oursOfArgoCD = `{metadata: {name: argocd, annotations: {slipway-platform.github.io/cluster: infra}}}`
	argocdServer = `{items: [{metadata: {name: argocd-server, namespace: argocd}}]}`
)

func TestCheck_RefusesAClusterThatTheStacksArgoCDRuns(t *testing.T) {
	const remedy = " is part of this stack's Argo CD, which runs this cluster, and two engines would apply the same objects; first run `up` " +
		"with gitops.engine: argocd and gitops.enabled: false, and then with gitops.engine: flux and gitops.enabled: true; " +
		"if that has left an Argo CD which owned itself: helm uninstall argocd --namespace argocd"
	ownInstance := `{items: [{metadata: {name: flux, namespace: flux-system, annotations: {slipway-platform.github.io/cluster: infra}}}]}`
	require.EqualError(t, check(t, map[string]string{namespace: oursOfArgoCD, argocd: argocdServer, instances: ownInstance}),
		"Deployment argocd/argocd-server"+remedy)
	require.EqualError(t, check(t, map[string]string{namespace: oursOfArgoCD, argocd: "{items: []}",
		argocdSets: `{items: [{metadata: {name: argocd-application-controller, namespace: argocd}}]}`}),
		"StatefulSet argocd/argocd-application-controller"+remedy)
	require.EqualError(t, check(t, map[string]string{argocd: argocdServer,
		namespace: `{metadata: {name: argocd, annotations: {slipway-platform.github.io/cluster: apps}}}`}),
		"Deployment argocd/argocd-server is part of the Argo CD of the cluster apps, and this stack is of infra; check the kubeconfig and "+
			"cluster.name")
}

func TestCheck_AllowsWhatAnArgoCDHasLeftAndTheArgoCDOfSomebodyElse(t *testing.T) {
	require.NoError(t, check(t, map[string]string{namespace: oursOfArgoCD}), "only the namespace is left")
	require.NoError(t, check(t, map[string]string{namespace: oursOfArgoCD, argocd: "{items: []}", argocdSets: "{items: []}"}))
	require.NoError(t, check(t, map[string]string{namespace: `{metadata: {name: argocd}}`, argocd: argocdServer}), "it may run beside Flux")
}
