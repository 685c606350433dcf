package removal

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/tests/fakes/enginestest"
	"github.com/slipway-platform/slipway/tests/fakes/kubeapitest"
)

// Resources that the fake serves. A Deployment stands for what Applications apply.
const (
	applications    = "argoproj.io/v1alpha1/applications"
	applicationSets = "argoproj.io/v1alpha1/applicationsets"
	appProjects     = "argoproj.io/v1alpha1/appprojects"
	deployments     = "apps/v1/deployments"
)

var byKind = map[string]string{
	application: applications, applicationSet: applicationSets, appProject: appProjects, "Deployment": deployments,
}

// api is an API server with its garbage collector, and with Argo CD's controllers, as far as they take part in a removal. The controllers
// work once before each list of Applications, and remove one level of owners each time. It models neither destinations, projects of
// Applications, hooks nor waves of a sync.
type api struct {
	// git has what an Application applies, and what an ApplicationSet makes, by the name of either. An Application whose sync is automated
	// makes again what is missing, as an ApplicationSet does.
	git map[string][]string
	// stuck, by "Kind namespace/name", are Applications that Argo CD does not remove. The value is the message of their DeletionError.
	stuck map[string]string
	// off means that no controller of Argo CD runs.
	off bool
	// onRequest, if non-nil, is called with "VERB resource" before each request; true answers it with an internal error.
	onRequest func(request string) bool

	mu sync.Mutex
	enginestest.Store
	requests []string // those that have changed something, in order
	made     []string // what the controllers have made again
	version  int
}

func newAPI() *api {
	return &api{git: map[string][]string{}, stuck: map[string]string{}, Store: enginestest.NewStore(byKind)}
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	resource, namespace, name := enginestest.Split(r.URL.Path)
	if namespace == "" {
		discover(w, resource)
		return
	}
	if a.onRequest != nil && a.onRequest(r.Method+" "+resource) {
		kubeapitest.Refuse(w, http.StatusInternalServerError, "InternalError")
		return
	}
	if name == "" && resource == applications {
		a.reconcile()
	}
	object := a.Find(w, r)
	switch {
	case object == nil:
		return
	case r.Method == http.MethodDelete:
		var options metav1.DeleteOptions
		_ = json.NewDecoder(r.Body).Decode(&options)
		if *options.Preconditions.ResourceVersion != object.GetResourceVersion() || *options.Preconditions.UID != object.GetUID() {
			kubeapitest.Refuse(w, http.StatusConflict, "Conflict")
			return
		}
		a.requests = append(a.requests, fmt.Sprintf("DELETE %s %s", enginestest.Title(object), *options.PropagationPolicy))
		a.delete(object, *options.PropagationPolicy)
	case r.Method == http.MethodPatch:
		if !a.patch(w, r, object) {
			return
		}
	}
	_ = json.NewEncoder(w).Encode(object)
}

// discover answers which resources a version of a group has.
func discover(w http.ResponseWriter, version string) {
	var list metav1.APIResourceList
	for kind, resource := range byKind {
		if name, is := strings.CutPrefix(resource, version+"/"); is {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: kind, Namespaced: true})
		}
	}
	_ = json.NewEncoder(w).Encode(list)
}

// patch applies a merge patch, unless it refuses that.
func (a *api) patch(w http.ResponseWriter, r *http.Request, object *unstructured.Unstructured) bool {
	var change map[string]any
	_ = json.NewDecoder(r.Body).Decode(&change)
	metadata := change["metadata"].(map[string]any)
	if metadata["resourceVersion"] != object.GetResourceVersion() {
		kubeapitest.Refuse(w, http.StatusConflict, "Conflict")
		return false
	}
	delete(metadata, "resourceVersion")
	had := object.GetFinalizers()
	changed := object.DeepCopy()
	kubeapitest.Merge(changed.Object, change)
	for _, finalizer := range changed.GetFinalizers() {
		if object.GetDeletionTimestamp() != nil && !slices.Contains(had, finalizer) {
			kubeapitest.Refuse(w, http.StatusUnprocessableEntity, "Invalid")
			return false
		}
	}
	text, _ := json.Marshal(change)
	a.requests = append(a.requests, "PATCH "+enginestest.Title(object)+" "+string(text))
	object.Object = changed.Object
	a.store(object)
	return true
}

// store keeps an object with a new version. An object that is deleted goes with its last finalizer.
func (a *api) store(o *unstructured.Unstructured) {
	a.version++
	o.SetResourceVersion(strconv.Itoa(a.version))
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
		a.Drop(o)
		return
	}
	a.Keep(o)
}

func (a *api) delete(o *unstructured.Unstructured, policy metav1.DeletionPropagation) {
	if o.GetDeletionTimestamp() != nil {
		return
	}
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	finalizer := map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationOrphan: orphanFinalizer, metav1.DeletePropagationForeground: "foregroundDeletion",
	}[policy]
	if finalizer != "" && o.GetKind() == applicationSet { // nothing else owns anything
		o.SetFinalizers(append(o.GetFinalizers(), finalizer))
	}
	a.store(o)
}

// sorted returns the objects of a kind, in the order of their names.
func (a *api) sorted(kind string) (all []*unstructured.Unstructured) {
	for _, name := range slices.Sorted(maps.Keys(a.Objects[byKind[kind]])) {
		all = append(all, a.Objects[byKind[kind]][name])
	}
	return all
}

// drop takes a finalizer of an object away.
func (a *api) drop(o *unstructured.Unstructured, finalizer string) {
	o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(one string) bool { return strings.HasPrefix(one, finalizer) }))
	a.store(o)
}

// reconcile lets Argo CD and the garbage collector work once.
func (a *api) reconcile() {
	var work []func()
	for _, o := range slices.Concat(a.sorted(application), a.sorted(applicationSet), a.sorted(appProject)) {
		work = append(work, func() {
			switch {
			case a.off:
			case o.GetKind() == application:
				a.application(o)
			case o.GetKind() == applicationSet && o.GetDeletionTimestamp() == nil:
				a.make(o)
			}
		})
	}
	for _, one := range work {
		one()
	}
	a.collect()
}

func (a *api) application(o *unstructured.Unstructured) {
	if a.Objects[applications][o.GetNamespace()+"/"+o.GetName()] != o {
		return // gone meanwhile
	}
	if _, syncs := o.Object["operation"]; syncs {
		if phase, _, _ := unstructured.NestedString(o.Object, "status", "operationState", "phase"); phase == "Terminating" {
			delete(o.Object, "operation")
			a.store(o)
		}
		return
	}
	if _, automated, _ := unstructured.NestedMap(o.Object, "spec", "syncPolicy", "automated"); o.GetDeletionTimestamp() == nil {
		if automated {
			a.make(o)
		}
		return
	}
	if !cascades(o.GetFinalizers()) {
		return
	}
	if message := a.stuck[enginestest.Title(o)]; message != "" {
		_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"type": "DeletionError", "message": message}}, "status", "conditions")
		return
	}
	left := false
	for kind := range byKind {
		for _, applied := range a.sorted(kind) {
			tracked := strings.HasPrefix(applied.GetAnnotations()[trackingAnnotation], o.GetName()+":") && applied != o
			options, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "syncPolicy", "syncOptions")
			stays := applied.GetAnnotations()[optionsAnnotation]+applied.GetAnnotations()[policyAnnotation] != "" || len(options) > 0
			if tracked && !stays {
				left = true
				a.delete(applied, metav1.DeletePropagationForeground)
			}
		}
	}
	if !left {
		a.drop(o, cascadeFinalizer)
	}
}

// make makes what Git has of an Application or ApplicationSet and is missing.
func (a *api) make(owner *unstructured.Unstructured) {
	for _, text := range a.git[owner.GetName()] {
		made := a.Decode(text)
		if a.Objects[byKind[made.GetKind()]][made.GetNamespace()+"/"+made.GetName()] == nil {
			a.made = append(a.made, enginestest.Title(made))
			a.add(a.owned(made, owner))
		}
	}
}

// owned marks an object as made by an owner.
func (a *api) owned(made, owner *unstructured.Unstructured) *unstructured.Unstructured {
	if owner.GetKind() == applicationSet {
		made.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: owner.GetAPIVersion(), Kind: applicationSet, Name: owner.GetName(), UID: owner.GetUID(),
		}})
		return made
	}
	annotations := made.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[trackingAnnotation] = owner.GetName() + ":x/" + made.GetKind() + ":" + made.GetNamespace() + "/" + made.GetName()
	made.SetAnnotations(annotations)
	entries, _, _ := unstructured.NestedSlice(owner.Object, "status", "resources")
	gv := strings.Split(made.GetAPIVersion(), "/")
	_ = unstructured.SetNestedSlice(owner.Object, append(entries, map[string]any{"group": gv[0], "version": gv[1], "kind": made.GetKind(),
		"namespace": made.GetNamespace(), "name": made.GetName()}), "status", "resources")
	return made
}

// collect is the garbage collector, for what ApplicationSets own.
func (a *api) collect() {
	exists := map[string]bool{}
	for _, set := range a.sorted(applicationSet) {
		exists[string(set.GetUID())] = true
		var owns []*unstructured.Unstructured
		for _, o := range a.sorted(application) {
			if owners := o.GetOwnerReferences(); len(owners) > 0 && owners[0].UID == set.GetUID() {
				owns = append(owns, o)
			}
		}
		switch {
		case slices.Contains(set.GetFinalizers(), orphanFinalizer):
			for _, o := range owns {
				o.SetOwnerReferences(nil)
				a.store(o)
			}
			a.drop(set, orphanFinalizer)
		case slices.Contains(set.GetFinalizers(), "foregroundDeletion"):
			for _, o := range owns {
				a.delete(o, metav1.DeletePropagationBackground)
			}
			if len(owns) == 0 {
				a.drop(set, "foregroundDeletion")
			}
		}
	}
	for _, o := range a.sorted(application) {
		if owners := o.GetOwnerReferences(); len(owners) > 0 && !exists[string(owners[0].UID)] {
			a.delete(o, metav1.DeletePropagationBackground)
		}
	}
}

// put adds an object, and all below it that Git has.
func (a *api) put(object string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.add(a.Decode(object))
}

func (a *api) add(o *unstructured.Unstructured) {
	o.SetUID(types.UID("uid-of-" + o.GetName()))
	a.store(o)
	for _, text := range a.git[o.GetName()] {
		if o.GetKind() != "Deployment" && o.GetKind() != appProject {
			a.add(a.owned(a.Decode(text), o))
		}
	}
}

// object returns an object, to be changed.
func (a *api) object(kind, name string) *unstructured.Unstructured {
	return a.Objects[byKind[kind]][name]
}

// exists returns the titles of all objects, sorted.
func (a *api) exists() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Titles()
}

// cascading is the finalizer of an Application, for its metadata.
const cascading = `finalizers: [` + cascadeFinalizer + `]`

// deployment is a Deployment, in a namespace of its own.
func deployment(name string) string {
	return fmt.Sprintf(`{kind: Deployment, metadata: {name: %s, namespace: %s}}`, name, name)
}

// fixture is a run against a fake cluster. The root has applied the Application apps, which has no finalizer, and the ApplicationSet
// tenants, which has made the Application team. The Application other is not below the root. Each Application has applied a Deployment.
type fixture struct {
	*run
	api      *api
	progress *strings.Builder
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{api: newAPI(), progress: &strings.Builder{}}
	f.api.git = map[string][]string{
		"root": {
			`{kind: Application, metadata: {name: apps, namespace: argocd}, spec: {syncPolicy: {automated: {}}}}`,
			`{kind: ApplicationSet, metadata: {name: tenants, namespace: argocd}}`, deployment("dns"),
		},
		"apps": {deployment("web")}, "team": {deployment("team")}, "other": {deployment("other")},
		"tenants": {`{kind: Application, metadata: {name: team, namespace: argocd, ` + cascading + `}, spec: {syncPolicy: {automated: {}}}}`},
	}
	f.api.put(`{kind: Application, metadata: {name: root, namespace: argocd}, spec: {syncPolicy: {automated: {}}}}`)
	f.api.put(`{kind: Application, metadata: {name: other, namespace: argocd, ` + cascading + `}, spec: {}}`)
	f.api.put(deployment("coredns"))
	var spec Spec
	spec.SetDefaults()
	f.run = &run{spec: spec, settle: time.Millisecond, Removal: enginestest.Begin(t, f.api, f.progress)}
	return f
}
