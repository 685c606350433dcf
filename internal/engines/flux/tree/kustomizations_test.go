package tree

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheckStack_WarnsOfKustomizationsThatKustomizeRefuses(t *testing.T) {
	checked := func(kustomization string) error {
		manifests := withTree(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
		manifests["kubernetes/clusters/infra/kustomization.yaml"] = &fstest.MapFile{Data: []byte(kustomization)}
		advice, problems, err := CheckStack(manifests, given(t, nil))
		require.NoError(t, err)
		assert.Empty(t, problems)
		if len(advice) == 0 {
			return nil
		}
		return advice
	}
	const at = "gitops.path: kubernetes/clusters/infra/kustomization.yaml: "
	for text, says := range map[string]string{
		"resources: [object.yaml]\nresource: [a.yaml]\n": "resource is no field of a kustomization; did you mean resources?",
		"resources: [object.yaml, ./object.yaml]\n":      "names ./object.yaml twice; keep one",
		"resources: [object.yaml]\npatches: [{path: p.yaml}]\n": "kubernetes/clusters/infra/p.yaml is not in the repository; " +
			"commit it, or remove its patch",
		"resources: [object.yaml]\npatchesStrategicMerge: [q.yaml]\n": "kubernetes/clusters/infra/q.yaml is not in the repository; " +
			"commit it, or remove its patch",
		"resources: [object.yaml]\nhelmCharts: [{name: a}]\n": "has helmCharts, which Flux does not render; write a HelmRelease",
	} {
		assert.EqualError(t, checked(text), at+says, text)
	}
	assert.ErrorContains(t, checked("kind: kustomization\nresources: [object.yaml]\nnamespace: a\n"),
		at+"kustomization is no kind that kustomize knows; write Kustomization")
	for _, right := range []string{
		"resources: [object.yaml, 'github.com/o/r//deploy?ref=v1.2.3', 'git@github.com:o/r//deploy?ref=v1']\n",
		"resources: [.//object.yaml]\n",
		"bases: [object.yaml]\npatchesStrategicMerge:\n- |\n  kind: ConfigMap\n  metadata: {name: a}\n",
		"resources: [object.yaml]\npatches: [{patch: 'a: b', target: {kind: ConfigMap}}, {path: object.yaml}]\nreplacements: []\n",
	} {
		assert.NoError(t, checked(right), right)
	}
}
