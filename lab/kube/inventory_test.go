package kube

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/kube/kubetest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// settings returns ConfigMaps of these names in the namespace default, with a value.
func settings(value string, names ...string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, name := range names {
		o := &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": "ConfigMap", "data": object{"value": value}}}
		o.SetName(name)
		out = append(out, o)
	}
	return out
}

// applies is a client whose server-side apply creates ConfigMaps; it refuses those with the name wrong and fails with those with the name
// fails.
func applies() (*fake.FakeDynamicClient, meta.RESTMapper) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	dyn := fake.NewSimpleDynamicClient(runtime.NewScheme())
	dyn.PrependReactor("patch", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch := a.(clienttesting.PatchAction)
		switch patch.GetName() {
		case "wrong":
			return true, nil, apierrors.NewBadRequest("wrong")
		case "fails":
			return true, nil, apierrors.NewInternalError(errors.New("no"))
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(patch.GetPatch()); err != nil {
			return true, nil, err
		}
		return true, o, dyn.Tracker().Create(configMaps, o, a.GetNamespace())
	})
	return dyn, mapper
}

func TestManifests_OfTalos113AreCreatedOnceAndNeitherChangedNorRemoved(t *testing.T) {
	dyn, mapper := applies()
	maps := dyn.Resource(configMaps).Namespace("default")
	_, err := maps.Create(t.Context(), settings("mine", "there")[0], metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, createListed(t.Context(), dyn, mapper, settings("first", "there", "new", "dropped")))
	value := func(name string) string {
		o, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		text, _, _ := unstructured.NestedString(o.Object, "data", "value")
		return text + " " + o.GetAnnotations()[owningInventory]
	}
	require.Equal(t, "mine ", value("there"), "what exists is only listed")
	require.Equal(t, "first talos-bootstrap-manifests-inventory", value("new"))
	keys, err := readInventory(t.Context(), dyn)
	require.NoError(t, err)
	require.Equal(t, inventory{"default_there__ConfigMap": true, "default_new__ConfigMap": true, "default_dropped__ConfigMap": true}, keys)

	require.NoError(t, maps.Delete(t.Context(), "there", metav1.DeleteOptions{}))
	require.NoError(t, createListed(t.Context(), dyn, mapper, settings("second", "there", "new")))
	require.Equal(t, "first talos-bootstrap-manifests-inventory", value("new"))
	require.Contains(t, value("dropped"), "first")
	_, err = maps.Get(t.Context(), "there", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "Talos 1.12 would create it again")
}

func TestManifests_OfTalos113AnErrorEmptiesTheList(t *testing.T) {
	dyn, mapper := applies()
	err := createListed(t.Context(), dyn, mapper, settings("x", "wrong", "new"))
	require.EqualError(t, err, "error creating /v1/ConfigMap/wrong: wrong")
	keys, err := readInventory(t.Context(), dyn)
	require.NoError(t, err)
	require.Equal(t, inventory{"default_new__ConfigMap": true}, keys, "what is wrong in itself holds nothing")
	err = createListed(t.Context(), dyn, mapper, settings("x", "new", "fails", "after"))
	require.ErrorContains(t, err, "error creating /v1/ConfigMap/fails: ")
	keys, err = readInventory(t.Context(), dyn)
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestManifests_TheVersionOfTalosDecides(t *testing.T) {
	cfg := kubetest.Config(t, nil)
	for version, want := range map[string]bool{"": false, "v1.12.7": false, "v1.13.0": true, "v1.14.1": true} {
		require.Equal(t, want, manifestsOf(cfg, version, nil).inventory, version)
	}
	role := &unstructured.Unstructured{Object: object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}}
	role.SetName("system:x")
	require.Equal(t, "_system__x_rbac.authorization.k8s.io_ClusterRole", key(role))
}

func TestControlPlane_OfTalos113ListsItsManifests(t *testing.T) {
	o := Options{Name: "infra", Dir: t.TempDir(), Loopback: kubetest.Loopback(), Config: kubetest.Config(t, nil), Talos: "v1.13.9",
		Binary: kubetest.Binary(t, "kube"), Faults: &fault.Set{}}
	c, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	await(t, c)
	dyn, err := dynamic.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	byID, err := Manifests(kubetest.Config(t, nil), nil)
	require.NoError(t, err)
	want := inventory{}
	for _, objects := range byID {
		for _, one := range objects {
			want[key(&unstructured.Unstructured{Object: one})] = true
		}
	}
	require.Eventually(t, func() bool {
		keys, err := readInventory(t.Context(), dyn)
		return err == nil && maps.Equal(want, keys)
	}, time.Minute, 100*time.Millisecond)
}
