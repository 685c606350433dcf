package tree

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/docs"
)

// encrypted stands for the file of the page that kubeseal or sops writes.
const encrypted = "apiVersion: v1\nkind: Secret\nmetadata: {name: notes}\nstringData: {password: example}\n"

// TestFirstApp_ThePageIsBuiltAndKeepsTheRules adds the application to the clusters of the checkout, which have volumes, and to the
// repository of the quick start, which has none.
func TestFirstApp_ThePageIsBuiltAndKeepsTheRules(t *testing.T) {
	for _, stack := range stacks(t) {
		app := docs.App{Cluster: stack.GitOps.Path + "/workloads", Secret: encrypted, Volume: true}
		for _, fromChart := range []bool{false, true} {
			app.Chart = fromChart
			layers := withApp(t, checkout(t), stack, app)
			keepsItsVolume(t, layers)
		}
	}
	for _, fromChart := range []bool{false, true} {
		files, stack := ofQuickStart(t)
		layers := withApp(t, files, stack, docs.App{Cluster: stack.GitOps.Path, Secret: encrypted, Chart: fromChart})
		for _, layer := range layers {
			assert.NotEqual(t, "storage", layer.Name, "the quick start has no volumes")
		}
	}
}

// withApp adds the application to a tree, and checks all of the tree.
func withApp(t *testing.T, files filesys.FileSystem, stack *cluster.Cluster, app docs.App) []Layer {
	t.Helper()
	pages, err := app.Files(page(t, docs.FirstAppPage))
	require.NoError(t, err)
	for name, text := range pages {
		require.NoError(t, files.WriteFile(name, []byte(text)))
	}
	addLine(t, files, path.Join(app.Cluster, "kustomization.yaml"), "  - notes.yaml")
	layers := keepsItsRules(t, files, stack.GitOps.Path, stack.Settings())
	named(t, layers, "Kustomization", "notes")
	if app.Chart {
		layers = append(layers, rendered(t, layers))
		for _, check := range []func(*tree){images, workloads} {
			one := tree{layers: layers}
			check(&one)
			assert.Empty(t, one.problems)
		}
	}
	whole := tree{layers: layers}
	_, service, found := whole.find("", "Service", "notes", "notes")
	require.True(t, found, "the route leads to it")
	assert.EqualValues(t, 9898, service.List("spec", "ports")[0]["port"])
	return layers
}

// keepsItsVolume checks that the one pod has the claim at the folder of its data, and that no second pod waits for it in a change.
func keepsItsVolume(t *testing.T, layers []Layer) {
	t.Helper()
	named(t, layers, "PersistentVolumeClaim", "notes")
	deployment := named(t, layers, "Deployment", "notes")
	strategy, _, err := unstructured.NestedMap(deployment.Object, "spec", "strategy")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"type": "Recreate"}, strategy)
	w, found := read(deployment)
	require.True(t, found)
	require.Len(t, w.pod.Spec.Volumes, 1)
	require.NotNil(t, w.pod.Spec.Volumes[0].PersistentVolumeClaim)
	assert.Nil(t, w.pod.Spec.Volumes[0].EmptyDir)
	assert.Equal(t, "notes", w.pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
	require.Len(t, w.pod.Spec.Containers[0].VolumeMounts, 1)
	mount := w.pod.Spec.Containers[0].VolumeMounts[0]
	assert.Equal(t, [2]string{w.pod.Spec.Volumes[0].Name, "/data"}, [2]string{mount.Name, mount.MountPath})
}

// rendered is what the chart of the page makes. It is the lab's chart, with the names of the original, and its values but no others.
func rendered(t *testing.T, layers []Layer) Layer {
	t.Helper()
	objects, original, err := Render(named(t, layers, "HelmRelease", "notes"))
	require.NoError(t, err)
	assert.False(t, original)
	known, err := schemas()
	require.NoError(t, err)
	for _, object := range objects {
		assert.NoError(t, known.Validate(object), object.Title())
	}
	return Layer{Name: "notes", Folder: "chart notes", Objects: objects}
}

func TestFirstApp_APlaceThatThePageHasNotAnyMoreIsReported(t *testing.T) {
	text := strings.Replace(page(t, docs.FirstAppPage), "    - name: storage\n", "", 1)
	_, err := docs.App{Volume: true}.Files(text)
	require.NoError(t, err)
	_, err = docs.App{}.Files(text)
	require.ErrorContains(t, err, "kubernetes/clusters/STACK/workloads/notes.yaml")
}
