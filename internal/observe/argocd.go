package observe

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/engines/argocd/handover"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

var (
	applicationsKind = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
	projectsKind     = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "appprojects"}
)

// refreshesAtOnce is how many Applications are asked to compare anew at the same time.
const refreshesAtOnce = 6

// ArgoCD reads what the checks of package argocd/handover judge. It lists and watches objects. Unless it only looks, it asks each
// Application of the tree once to compare anew, by an annotation, and begins failed syncs again. It writes nothing else.
type ArgoCD struct {
	*observer[handover.Spec, handover.Cluster]
}

// NewArgoCD returns an ArgoCD that has read nothing yet. One that only looks asks no Application to compare anew, and writes nothing.
func NewArgoCD(spec *handover.Spec, kube *Kube, lookOnly bool) *ArgoCD {
	a := &ArgoCD{newObserver(spec, kube, handover.Evaluate)}
	a.update(func(seen *handover.Cluster) { seen.LookOnly = lookOnly })
	return a
}

// AppliedRevision returns the revision that the root Application has applied, "" before.
func (a *ArgoCD) AppliedRevision() (revision string) {
	a.read(func(seen *handover.Cluster) { revision = seen.AppliedRevision(a.spec) })
	return revision
}

// Watch reads until ctx ends, and returns when everything it started has ended.
func (a *ArgoCD) Watch(ctx context.Context) {
	w := a.watches(ctx)
	defer w.Wait()
	follow(w, kind{GroupVersionResource: applicationsKind}, plain(application),
		func(seen *handover.Cluster, apps health.Seen[handover.Application]) {
			seen.Applications = apps
			seen.Note(a.spec)
		})
	follow(w, kind{GroupVersionResource: projectsKind, Namespace: a.spec.Namespace}, plain(objectName),
		func(seen *handover.Cluster, projects health.Seen[string]) {
			seen.Projects = projects
			seen.Note(a.spec)
		})
	keepWorkloads(w, func(seen *handover.Cluster) (*health.Seen[kube.Workload], *health.Seen[kube.Pod]) {
		return &seen.Workloads, &seen.Pods
	})
	w.Go(func() { a.refresh(ctx) })
}

// refresh asks the Applications of the tree to compare anew, once Argo CD's controllers run: settings and credentials may have changed, and
// Argo CD takes manifests from a cache for a day, and looks at Git every few minutes. From then on, it begins syncs again that have failed
// or are of former sources.
func (a *ArgoCD) refresh(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, pollEvery) {
		var begins, looks bool
		a.read(func(seen *handover.Cluster) { begins, looks = seen.Begins(a.spec), seen.LookOnly })
		if looks {
			return
		}
		if begins {
			a.update(func(seen *handover.Cluster) { seen.Begin(a.spec) })
		}
		var due, failed []handover.Application
		a.read(func(seen *handover.Cluster) {
			due, _ = seen.ToAsk()
			failed = seen.ToRestart(a.spec)
		})
		limited(ctx, refreshesAtOnce, due, func(app handover.Application) { a.ask(ctx, app) })
		limited(ctx, refreshesAtOnce, failed, func(app handover.Application) { a.restart(ctx, app) })
	}
}

// restart makes Argo CD forget the sync of an Application, so that it begins another one, or end one that waits for an object. It is tried
// again if the Application has changed meanwhile. A refusal is reported by ask, which needs the same right.
func (a *ArgoCD) restart(ctx context.Context, app handover.Application) {
	change := `"operation":null,"status":{"operationState":null}`
	if app.Operation.Waits() {
		change = `"status":{"operationState":{"phase":"Terminating"}}`
	}
	if _, err := a.patch(ctx, app, fmt.Sprintf(`{"metadata":{"resourceVersion":%q},%s}`, app.Version, change)); err == nil {
		a.update(func(seen *handover.Cluster) { seen.Restart(app) })
	}
}

// ask asks one Application to compare anew, and notes the answer.
func (a *ArgoCD) ask(ctx context.Context, app handover.Application) {
	version, err := a.annotate(ctx, app)
	if err != nil && temporary(broken(err)) {
		version, err = a.annotate(ctx, app) // as in asked
	}
	if ctx.Err() != nil {
		return
	}
	a.update(func(seen *handover.Cluster) {
		switch {
		case apierrors.IsNotFound(err):
			delete(seen.Refreshes, app.Key())
		case err != nil:
			seen.Refreshes[app.Key()] = handover.Refresh{Err: broken(err)}
		default:
			seen.Refreshes[app.Key()] = handover.Refresh{Version: version}
		}
		seen.Note(a.spec)
	})
}

// annotate sets the annotation that asks an Application to compare anew, and returns the version of the Application with it.
func (a *ArgoCD) annotate(ctx context.Context, app handover.Application) (version string, err error) {
	return a.patch(ctx, app, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, handover.RefreshAnnotation, handover.RefreshHard))
}

// patch changes an Application by a merge patch, and returns its new version.
func (a *ArgoCD) patch(ctx context.Context, app handover.Application, patch string) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	patched, err := a.kube.Objects.Resource(applicationsKind).Namespace(app.Namespace).Patch(ctx, app.Name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{FieldManager: kubeapi.FieldManager})
	if err != nil {
		return "", err
	}
	return patched.GetResourceVersion(), nil
}

func objectName(object *unstructured.Unstructured) (string, error) { return object.GetName(), nil }

// application reads an Application.
func application(object *unstructured.Unstructured) (handover.Application, error) {
	flag := func(path ...string) bool {
		value, _, _ := unstructured.NestedBool(object.Object, path...)
		return value
	}
	automated, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "syncPolicy", "automated")
	_, automates := automated.(map[string]any)
	enabled, given, _ := unstructured.NestedBool(object.Object, "spec", "syncPolicy", "automated", "enabled")
	_, refreshing := object.GetAnnotations()[handover.RefreshAnnotation]
	seen := handover.Application{
		Namespace: object.GetNamespace(), Name: object.GetName(), Version: object.GetResourceVersion(),
		Project: textAt(object.Object, "spec", "project"), Sources: applicationSources(object), InCluster: inCluster(object),
		Tracker: tracker(object), Automated: automates && (enabled || !given),
		Prune:    flag("spec", "syncPolicy", "automated", "prune"),
		SelfHeal: flag("spec", "syncPolicy", "automated", "selfHeal"),
		Deleting: object.GetDeletionTimestamp() != nil, Refreshing: refreshing, Compared: comparedNewest(object),
		Sync: textAt(object.Object, "status", "sync", "status"), Health: textAt(object.Object, "status", "health", "status"),
		Operation: applicationSync(object),
	}
	for _, owner := range object.GetOwnerReferences() {
		if owner.Kind == "ApplicationSet" {
			seen.Set = seen.Namespace + "/" + owner.Name
		}
	}
	for _, condition := range kubeapi.Entries(object.Object, "status", "conditions") {
		if of := textAt(condition, "type"); strings.HasSuffix(of, "Error") { // others are warnings and information
			seen.Errors = append(seen.Errors, handover.Condition{Type: of, Message: cause(textAt(condition, "message"))})
		}
	}
	for _, entry := range kubeapi.Entries(object.Object, "status", "resources") {
		prune, _ := entry["requiresPruning"].(bool)
		hook, _ := entry["hook"].(bool)
		seen.Resources = append(seen.Resources, handover.Resource{
			Object: appliedObject(entry), Sync: textAt(entry, "status"), Health: textAt(entry, "health", "status"),
			Message: oneLine(textAt(entry, "health", "message")), Prune: prune, Hook: hook,
		})
	}
	return seen, nil
}

// textAt returns a text of an object; "" without it.
func textAt(object map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedString(object, path...)
	return value
}

func appliedObject(entry map[string]any) handover.Object {
	return handover.Object{
		Group: textAt(entry, "group"), Kind: textAt(entry, "kind"), Namespace: textAt(entry, "namespace"), Name: textAt(entry, "name"),
	}
}

// applicationSync reads the newest sync of an Application.
func applicationSync(object *unstructured.Unstructured) handover.Operation {
	_, requested, _ := unstructured.NestedFieldNoCopy(object.Object, "operation")
	state, _, _ := unstructured.NestedMap(object.Object, "status", "operationState")
	seen := handover.Operation{Requested: requested, Phase: textAt(state, "phase"), Message: oneLine(textAt(state, "message"))}
	seen.Retries = seen.Phase == "Running" && textAt(state, "finishedAt") != ""
	seen.Former = ofFormerSources(object, state)
	if seen.Revisions, _, _ = unstructured.NestedStringSlice(state, "syncResult", "revisions"); len(seen.Revisions) == 0 {
		if revision := textAt(state, "syncResult", "revision"); revision != "" {
			seen.Revisions = []string{revision}
		}
	}
	for _, entry := range kubeapi.Entries(state, "syncResult", "resources") {
		seen.Steps = append(seen.Steps, handover.Step{
			Object: appliedObject(entry), Hook: textAt(entry, "hookType"), Phase: textAt(entry, "hookPhase"),
			Status: textAt(entry, "status"), Message: oneLine(textAt(entry, "message")),
		})
	}
	return seen
}

// ofFormerSources reports whether a sync is of other sources than the Application has now. One that a person began may name none.
func ofFormerSources(object *unstructured.Unstructured, state map[string]any) bool {
	sources, several := applicationSpecSources(object)
	if several {
		before := kubeapi.Entries(state, "operation", "sync", "sources")
		return len(before) > 0 && !sameSources(sources, before)
	}
	before, given, _ := unstructured.NestedMap(state, "operation", "sync", "source")
	return given && len(before) > 0 && len(sources) == 1 && !same(sources[0], before)
}

// inCluster reports whether an Application applies to the cluster that Argo CD runs in, by Argo CD's own words for it.
func inCluster(object *unstructured.Unstructured) bool {
	server := textAt(object.Object, "spec", "destination", "server")
	return server == "https://kubernetes.default.svc" || textAt(object.Object, "spec", "destination", "name") == "in-cluster"
}

// tracker returns the Application that the tracking id names, APP:GROUP/KIND:NAMESPACE/NAME; "" if the id is that of another object, from
// which the annotation was copied.
func tracker(object *unstructured.Unstructured) string {
	app, of, _ := strings.Cut(object.GetAnnotations()["argocd.argoproj.io/tracking-id"], ":")
	if of != "argoproj.io/Application:"+key(object) {
		return ""
	}
	return app
}

// applicationSpecSources returns the sources of an Application's spec, as Argo CD takes them: several only if it has several.
func applicationSpecSources(object *unstructured.Unstructured) (sources []map[string]any, several bool) {
	if hydrator, hydrates, _ := unstructured.NestedMap(object.Object, "spec", "sourceHydrator"); hydrates {
		return []map[string]any{{
			"repoURL":        cmp.Or(textAt(hydrator, "syncSource", "repoURL"), textAt(hydrator, "drySource", "repoURL")),
			"path":           textAt(hydrator, "syncSource", "path"),
			"targetRevision": textAt(hydrator, "syncSource", "targetBranch"),
		}}, false
	}
	if sources = kubeapi.Entries(object.Object, "spec", "sources"); len(sources) > 0 {
		return sources, true
	}
	if source, found, _ := unstructured.NestedMap(object.Object, "spec", "source"); found {
		return []map[string]any{source}, false
	}
	return nil, false
}

// applicationSources returns the sources with the revisions of the newest comparison.
func applicationSources(object *unstructured.Unstructured) (all []handover.Source) {
	sources, several := applicationSpecSources(object)
	revisions := []string{textAt(object.Object, "status", "sync", "revision")}
	if several {
		revisions, _, _ = unstructured.NestedStringSlice(object.Object, "status", "sync", "revisions")
	}
	for i, source := range sources {
		one := handover.Source{URL: textAt(source, "repoURL"), Ref: textAt(source, "targetRevision"), Path: textAt(source, "path")}
		if i < len(revisions) {
			one.Revision = revisions[i]
		}
		all = append(all, one)
	}
	return all
}

// comparedNewest reports whether the newest comparison was about the spec's sources, destination and ignored differences. The status has no
// generation: each write of the status raises the object's own.
func comparedNewest(object *unstructured.Unstructured) bool {
	compared, found, _ := unstructured.NestedMap(object.Object, "status", "sync", "comparedTo")
	if !found {
		return false
	}
	sources, several := applicationSpecSources(object)
	before := kubeapi.Entries(compared, "sources")
	if !several {
		one, _ := compared["source"].(map[string]any)
		before = []map[string]any{one}
	}
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	return sameSources(sources, before) && same(spec["destination"], compared["destination"]) &&
		same(spec["ignoreDifferences"], compared["ignoreDifferences"])
}

func sameSources(a, b []map[string]any) bool {
	return slices.EqualFunc(a, b, func(a, b map[string]any) bool { return same(a, b) })
}

// inComponent is what a component of Argo CD puts before the error of another one that it has called.
var inComponent = regexp.MustCompile(`rpc error: code = \w+ desc = `)

// cause returns the error of the component that failed, in one line: each component on the way adds a sentence before it.
func cause(message string) string {
	parts := inComponent.Split(message, -1)
	return oneLine(parts[len(parts)-1])
}

// same reports whether two values differ in nothing but empty values, which Argo CD leaves out.
func same(a, b any) bool { return reflect.DeepEqual(withoutEmpty(a), withoutEmpty(b)) }

// withoutEmpty returns a value without empty values in objects; nil if it is empty itself.
func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		full := map[string]any{}
		for name, one := range value {
			if one = withoutEmpty(one); one != nil {
				full[name] = one
			}
		}
		if len(full) > 0 {
			return full
		}
		return nil
	case []any:
		if len(value) == 0 {
			return nil
		}
		full := make([]any, 0, len(value))
		for _, one := range value {
			full = append(full, withoutEmpty(one))
		}
		return full
	}
	if value == nil || reflect.ValueOf(value).IsZero() {
		return nil
	}
	return value
}
