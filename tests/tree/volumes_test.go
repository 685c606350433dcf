package tree

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The values have the names that they have in the chart's values.yaml and in the plugin's docs/config.md. This test does not render the
// chart.
func TestVolumes_TheExampleOfProxmoxCSIIsBuiltAndMakesTheDefaultClass(t *testing.T) {
	pages := map[string]string{}
	for _, text := range blocksOf(t, "docs/volumes.md") {
		if name, found := strings.CutPrefix(strings.SplitN(text, "\n", 2)[0], "# "); found {
			pages[name] = text
		}
	}
	require.Len(t, pages, 5)
	for _, stack := range stacks(t) {
		files := checkout(t)
		for name, text := range pages {
			require.NoError(t, files.WriteFile(strings.Replace(name, "STACK", stack.Stack, 1), []byte(text)))
		}
		addLine(t, files, path.Join(stack.GitOps.Path, "workloads/kustomization.yaml"), "  - proxmox-csi.yaml")
		settings := with(stack.Settings(), map[string]string{"STORAGE_ROLE": "none", "STORAGE_CONNECTION": "git"})
		layers := keepsItsRules(t, files, stack.GitOps.Path, settings)
		assert.Empty(t, defaults(layers), "the tree has no class beside the release's")
		release := named(t, layers, "HelmRelease", "proxmox-csi")
		classes := release.List("spec", "values", "storageClass")
		require.Len(t, classes, 1)
		assert.Equal(t, "true", classes[0]["annotations"].(map[string]any)["storageclass.kubernetes.io/is-default-class"])
		assert.Contains(t, page(t, "docs/volumes.md"), "slipway:storage: {role: none, classes: ["+classes[0]["name"].(string)+"]}")

		secret := named(t, layers, "Secret", release.Text("spec", "values", "existingConfigSecret"))
		assert.Equal(t, release.GetNamespace(), secret.GetNamespace())
		text, _, err := unstructured.NestedString(secret.Object, "stringData", "config.yaml")
		require.NoError(t, err)
		var config struct{ Clusters []struct{ Region string } }
		require.NoError(t, yaml.Unmarshal([]byte(text), &config))
		require.Len(t, config.Clusters, 1)
		assert.Equal(t, stack.Proxmox.Cluster, config.Clusters[0].Region, "the label of the nodes")
	}
}
