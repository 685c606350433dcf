package removal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/cluster/secrecy"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/engines"
)

// Names of Argo CD's kinds.
const (
	application    = "Application"
	applicationSet = "ApplicationSet"
	appProject     = "AppProject"
)

const group = "argoproj.io"

var kinds = []engines.Kind{
	{Name: applicationSet, Resource: schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "applicationsets"}},
	{Name: application, Resource: schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "applications"}},
	{Name: appProject, Resource: schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "appprojects"}},
}

// Finalizers and annotations that Argo CD and Kubernetes act on.
const (
	cascadeFinalizer = "resources-finalizer.argocd.argoproj.io" // Argo CD removes what the Application has applied, and then the Application
	orphanFinalizer  = "orphan"                                 // Kubernetes removes the references to the object, and then the object

	trackingAnnotation = "argocd.argoproj.io/tracking-id"  // of an object that an Application has applied: NAME:GROUP/KIND:NAMESPACE/NAME
	optionsAnnotation  = "argocd.argoproj.io/sync-options" // of an object that an Application has applied
	approvalAnnotation = "argocd.argoproj.io/deletion-approved"
	policyAnnotation   = "helm.sh/resource-policy"
)

// cascades reports whether the deletion of an Application with the finalizers removes what it has applied.
func cascades(finalizers []string) bool {
	return slices.ContainsFunc(finalizers, func(one string) bool {
		return one == cascadeFinalizer || one == cascadeFinalizer+"/foreground" || one == cascadeFinalizer+"/background"
	})
}

// key identifies an object of Argo CD's namespace.
type key = engines.Key

// reference is an object that an Application has applied, as the Application's status has it.
type reference struct {
	apiVersion, kind, namespace, name string
	confirmation                      bool // its deletion must be confirmed
}

func (r reference) String() string {
	return strings.TrimSuffix(r.kind+" "+r.namespace, " ") + "/" + r.name
}

// object is an object of one of Argo CD's kinds.
type object struct {
	key
	uid, version string
	owner        key // the Application or ApplicationSet that has made it; zero without one
	finalizers   []string
	deleting     bool

	annotations map[string]string
	keeps       string      // why what it has applied or made stays on purpose; "" if it goes
	running     bool        // a sync runs, and Argo CD deletes nothing before its end
	unconfirmed string      // what must not be deleted without a confirmation that is missing
	errors      string      // the conditions that are errors, in words
	applied     []reference // what the Application has applied
}

func newObject(kind string, u *unstructured.Unstructured) object {
	o := object{
		key: engines.KeyOf(kind, u), uid: string(u.GetUID()), version: u.GetResourceVersion(), annotations: u.GetAnnotations(),
		finalizers: u.GetFinalizers(), deleting: u.GetDeletionTimestamp() != nil, errors: conditions(u),
	}
	if owner := ownerOf(u); owner != o.key { // an Application that has applied itself is not removed by itself
		o.owner = owner
	}
	switch kind {
	case application:
		options, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "syncPolicy", "syncOptions")
		if option(options) == "false" {
			o.keeps = "spec.syncPolicy.syncOptions: Delete=false"
		}
		_, requested, _ := unstructured.NestedMap(u.Object, "operation")
		phase, _, _ := unstructured.NestedString(u.Object, "status", "operationState", "phase")
		o.running = requested && phase == "Running"
		o.applied = appliedBy(u)
		if stamp := u.GetDeletionTimestamp(); stamp != nil && !approved(o.annotations[approvalAnnotation], stamp.Time) {
			for _, one := range o.applied {
				if one.confirmation && o.unconfirmed == "" {
					o.unconfirmed = one.String()
				}
			}
		}
	case applicationSet:
		preserve, _, _ := unstructured.NestedBool(u.Object, "spec", "syncPolicy", "preserveResourcesOnDeletion")
		finalizers, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "template", "metadata", "finalizers")
		switch {
		case preserve:
			o.keeps = "spec.syncPolicy.preserveResourcesOnDeletion: true"
		case len(finalizers) > 0 && !cascades(finalizers): // its controller would take the finalizer of a cascade away again
			o.keeps = "spec.template.metadata.finalizers without " + cascadeFinalizer
		}
	}
	return o
}

// ownerOf returns what has made an object. An object with an owner in Kubernetes' sense belongs to that alone.
func ownerOf(u *unstructured.Unstructured) key {
	for _, owner := range u.GetOwnerReferences() {
		if owner.Kind == applicationSet && strings.HasPrefix(owner.APIVersion, group+"/") {
			return key{Kind: applicationSet, Namespace: u.GetNamespace(), Name: owner.Name}
		}
	}
	if name, _, tracked := strings.Cut(u.GetAnnotations()[trackingAnnotation], ":"); tracked {
		return key{Kind: application, Namespace: u.GetNamespace(), Name: name}
	}
	return key{}
}

// appliedBy returns what an Application has applied, as Argo CD saw it last.
func appliedBy(u *unstructured.Unstructured) (all []reference) {
	for _, entry := range kubeapi.Entries(u.Object, "status", "resources") {
		text := func(field string) string { value, _ := entry[field].(string); return value }
		one := reference{kind: text("kind"), namespace: text("namespace"), name: text("name")}
		one.apiVersion = strings.TrimPrefix(text("group")+"/"+text("version"), "/")
		one.confirmation, _ = entry["requiresDeletionConfirmation"].(bool)
		all = append(all, one)
	}
	return all
}

// approved reports whether the annotation confirms deletions since the moment.
func approved(annotation string, since time.Time) bool {
	at, err := time.Parse(time.RFC3339, annotation)
	return err == nil && !at.Before(since)
}

// option returns the value of the option Delete in a list of options of a sync; "" without it.
func option(options []string) string {
	for _, one := range options {
		if value, is := strings.CutPrefix(strings.TrimSpace(one), "Delete="); is {
			return value
		}
	}
	return ""
}

// keptBy returns why Argo CD does not remove an object with the annotations, together with the Application or ApplicationSet that has made
// it; "" if it does.
func keptBy(owner object, title string, annotations map[string]string) string {
	keeps := owner.keeps
	if owner.Kind == application {
		switch option(strings.Split(annotations[optionsAnnotation], ",")) {
		case "":
		case "false":
			return title + " has " + optionsAnnotation + ": Delete=false"
		default:
			keeps = "" // the object's own option comes first
		}
		if slices.Contains(strings.Split(strings.ReplaceAll(annotations[policyAnnotation], " ", ""), ","), "keep") {
			return title + " has " + policyAnnotation + ": keep"
		}
	}
	if keeps != "" {
		return owner.key.String() + " has " + keeps
	}
	return ""
}

// conditions returns the conditions of an object that are errors in words, that of the deletion first.
func conditions(u *unstructured.Unstructured) string {
	var texts []string
	for _, condition := range kubeapi.Entries(u.Object, "status", "conditions") {
		of, _ := condition["type"].(string)
		message, _ := condition["message"].(string)
		text := secrecy.Line(of + ": " + strings.Join(strings.Fields(message), " "))
		switch {
		case of == "DeletionError":
			texts = append([]string{text}, texts...)
		case strings.HasSuffix(of, "Error") || of == "ErrorOccurred" && condition["status"] == "True":
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

// Command returns a kubectl command for the object, which names its group, too: other products have Applications.
func (o object) Command(verb, arguments string) string {
	full := o.key
	full.Kind += "s." + group
	return full.Command(verb, arguments)
}

// State says what an object that is still there does.
func (o object) State() string {
	text := "is not being deleted yet"
	switch {
	case o.unconfirmed != "":
		text = fmt.Sprintf("waits until the deletion of %s is confirmed: %s", o.unconfirmed,
			o.Command("annotate", "--overwrite "+approvalAnnotation+`="$(date -u +%Y-%m-%dT%H:%M:%SZ)"`))
	case o.deleting && o.running:
		text = "is being deleted, and a sync still runs"
	case o.deleting:
		text = "is being deleted"
	}
	if o.errors != "" {
		text += "; " + o.errors
	}
	return text
}
