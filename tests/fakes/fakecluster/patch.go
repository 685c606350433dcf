package fakecluster

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/tests/fakes/kubeapitest"
)

// Patches makes the server take merge patches of objects of a resource, and calls the function after each with the new object, which it
// must not change. A patch that changes nothing gives the object no new version.
func (k *Kube) Patches(resource string, patched func(*unstructured.Unstructured)) {
	k.Serves(resource)
	k.with(func() {
		if k.patches == nil {
			k.patches = map[string]func(*unstructured.Unstructured){}
		}
		k.patches[resource] = patched
	})
}

// servePatch changes an object by a merge patch.
func (k *Kube) servePatch(w http.ResponseWriter, r *http.Request, resource, key string) {
	text, err := io.ReadAll(r.Body)
	var patch map[string]any
	if err != nil || r.Header.Get("Content-Type") != "application/merge-patch+json" || json.Unmarshal(text, &patch) != nil {
		kubeapitest.Refuse(w, http.StatusUnsupportedMediaType, "UnsupportedMediaType")
		return
	}
	k.mu.Lock()
	before := k.objects[resource][key]
	if before == nil {
		k.mu.Unlock()
		kubeapitest.Refuse(w, http.StatusNotFound, "NotFound")
		return
	}
	object := before.DeepCopy()
	if kubeapitest.Merge(object.Object, patch) {
		k.version++
		object.SetResourceVersion(strconv.Itoa(k.version))
		k.objects[resource][key] = object
		k.announce(resource, "MODIFIED", object)
	}
	patched := k.patches[resource]
	k.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object.Object)
	patched(object)
}
