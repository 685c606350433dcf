package tree

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layersOf are two Kustomizations of Flux, the first with a spec.
func layersOf(spec string) string {
	const head = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: "
	return head + "apps, namespace: flux-system}\nspec: {" + spec + "}\n---\n" + head +
		"base, namespace: flux-system}\nspec: {interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: flux-system}, " +
		"dependsOn: [{name: first}]}\n---\n" + head +
		"first, namespace: flux-system}\nspec: {interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n"
}

func TestCheckStack_WarnsOfKustomizationsThatFluxRefusesOrThatWaitForEver(t *testing.T) {
	const source = "sourceRef: {kind: GitRepository, name: flux-system}"
	const at = "gitops.path: kubernetes/clusters/infra/object.yaml: Kustomization apps: "
	for spec, says := range map[string]string{
		"interval: 1h, prune: true, " + source + ", dependOn: [{name: base}]": "dependOn is no field of its spec; did you mean dependsOn?",
		"interval: 1h, prune: true, " + source + ", dependsOn: [{name: bas}]": "waits for bas, which no manifest declares; did you mean base?",
		"interval: 1h, prune: true, " + source + ", dependsOn: [{name: storage}]": "waits for storage, which no manifest declares; " +
			"apply it, too, or remove it from dependsOn",
		"interval: 1h, prune: true, " + source + ", dependsOn: [{name: apps}]": "waits for itself: apps → apps; " +
			"remove one of them from dependsOn",
		"interval: 10, prune: true, " + source:   "its interval 10 is no duration; write a number with a unit, such as 10m",
		"prune: true, " + source:                 "has no interval; add one, such as interval: 10m",
		"interval: 1h, " + source:                "does not say whether it prunes; add prune: true, or false",
		"interval: 1h, prune: 'true', " + source: "its prune is neither true nor false; write true or false, without quotes",
		"interval: 1h, prune: true": "has no source; " +
			"add sourceRef, such as {kind: GitRepository, name: flux-system}",
		"interval: 1h, prune: true, sourceRef: {kind: Gitrepository, name: flux-system}": "Gitrepository is no kind of its sourceRef; " +
			"did you mean GitRepository?",
		"interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: flux-sytem}": "its source flux-sytem is not declared; " +
			"did you mean flux-system?",
	} {
		advice, problems, err := CheckStack(withTree(t, layersOf(spec)), given(t, nil))
		require.NoError(t, err)
		assert.Empty(t, problems)
		assert.EqualError(t, advice, at+says, spec)
	}
	for _, right := range []string{
		"interval: 1h, prune: true, " + source + ", dependsOn: [{name: base}, {name: '${LAYER}'}], timeout: 5m, wait: true, path: ./apps",
		"interval: '${EVERY:=1h}', prune: false, sourceRef: {kind: OCIRepository, name: shared, namespace: team}, targetNamespace: team",
	} {
		manifests := withTree(t, layersOf(right))
		manifests["apps/object.yaml"] = manifests["kubernetes/clusters/apps/object.yaml"]
		advice, _, err := CheckStack(manifests, given(t, map[string]string{"LAYER": "base"}))
		require.NoError(t, err)
		assert.Empty(t, advice, right)
	}
}

func TestCheckStack_NamesTheWayOfACircle(t *testing.T) {
	layers := layersOf("interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: flux-system}, dependsOn: [{name: base}]")
	layers = layers[:len(layers)-2] + ", dependsOn: [{name: apps}]}\n"
	advice, _, err := CheckStack(withTree(t, layers), given(t, nil))
	require.NoError(t, err)
	assert.ErrorContains(t, advice, "Kustomization apps: waits for itself: apps → base → first → apps; "+
		"remove one of them from dependsOn")
}

func TestCheckStack_LeavesObjectsAloneWhoseFieldsHaveOtherForms(t *testing.T) {
	const job = "apiVersion: example.com/v1\nkind: Job\nmetadata: {name: a}\nspec: {dependsOn: [b]}\n"
	advice, _, err := CheckStack(withTree(t, job), given(t, nil))
	require.NoError(t, err)
	assert.Empty(t, advice)
}
