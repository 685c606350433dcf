// Package externalsecrets checks that External Secrets Operator has access to a store, and has made a Secret of an item in it.
package externalsecrets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

// Kinds of objects.
const (
	Store  = "ClusterSecretStore"
	Secret = "ExternalSecret"
)

// Checks are in the order in which the objects become Ready.
var Checks = []health.Check[*Spec, *Cluster]{storeReady, secretSynced}

// Cluster is what was seen of External Secrets Operator. The zero value has seen nothing.
type Cluster struct {
	Stores   health.Seen[Object] // ClusterSecretStores
	Secrets  health.Seen[Object] // ExternalSecrets in the namespace of the spec
	Warnings health.Seen[Warning]
}

// Object is a store or an ExternalSecret.
type Object struct {
	Kind, Namespace, Name  string
	Ready, Reason, Message string // of the Ready condition; "" without one
	Current                bool   // an ExternalSecret's newest spec has synced; true for a store, whose status does not tell
}

// Warning is a Warning event about an object. The operator's conditions only say that something failed; its events say what.
type Warning struct {
	Kind, Namespace, Name string // of the object; the namespace of an event about a store is "default"
	Text                  string // reason and message; without anything that may be a secret
	Time                  int64  // of the event, in nanoseconds since 1970
}

var storeReady = health.Check[*Spec, *Cluster]{
	Name: "every ClusterSecretStore has access to its vaults",
	Looks: "the Ready conditions of `onepassword` and, with `storage.vault`, of `onepassword-storage`, " +
		"and the newest Warning events about them",
	ByHand: "kubectl describe clustersecretstores",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		results := judge(seen, seen.Stores, Object{Kind: Store, Name: spec.Store})
		if spec.Storage != "" {
			results = append(results, judge(seen, seen.Stores, Object{Kind: Store, Name: spec.Storage})...)
		}
		return results
	},
}

var secretSynced = health.Check[*Spec, *Cluster]{
	Name:   "the probe's ExternalSecret has synced",
	Looks:  "its newest spec has synced, its Ready condition, and the newest Warning event about it",
	ByHand: "kubectl -n external-secrets describe externalsecret slipway-probe",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		if !health.Hold(judge(seen, seen.Stores, Object{Kind: Store, Name: spec.Store})) {
			return []health.Result{health.Block("", "the ClusterSecretStore is not Ready")}
		}
		return judge(seen, seen.Secrets, Object{Kind: Secret, Namespace: spec.Namespace, Name: spec.ExternalSecret})
	},
}

// Evaluate runs all checks.
func Evaluate(spec *Spec, seen *Cluster) []health.Result {
	return health.Evaluate(Checks, spec, seen, nil)
}

// judge judges the object with the kind, namespace and name of another.
func judge(seen *Cluster, objects health.Seen[Object], of Object) []health.Result {
	subject := of.title()
	if result, missing := objects.Unread(subject, "it"); missing {
		return []health.Result{result}
	}
	object, exists := objects.Find(func(o Object) bool { return o.Namespace == of.Namespace && o.Name == of.Name })
	switch {
	case !exists:
		return []health.Result{health.Fail(subject, "does not exist").WithCommand(of.command("get"))}
	case object.Ready == "False" && !seen.Warnings.Synced && seen.Warnings.Err == nil:
		return []health.Result{health.NotSeen(subject, "the events about it")}
	}
	return []health.Result{object.result(seen.warning(object))}
}

// Synced judges an ExternalSecret, whatever its store. Of seen, it needs Secrets and Warnings.
func (seen *Cluster) Synced(namespace, name string) health.Result {
	return judge(seen, seen.Secrets, Object{Kind: Secret, Namespace: namespace, Name: name})[0]
}

// NoItem reports whether an ExternalSecret has not synced because 1Password has no such item in the vaults of its store.
func (seen *Cluster) NoItem(namespace, name string) bool {
	return slices.ContainsFunc(seen.Secrets.Items, func(o Object) bool {
		return o.Namespace == namespace && o.Name == name && o.Ready == "False" && strings.Contains(seen.warning(o), noItem)
	})
}

// noItem is how the operator (0.20.4 to 2.9.0) begins to say that no vault has the item.
const noItem = "key not found in 1Password Vaults"

func (o Object) result(warning string) health.Result {
	reason := ""
	switch {
	case o.Ready != "True":
		reason = health.NotReady(o.Ready, o.Reason, o.Message)
	case !o.Current:
		reason = "has not synced its newest spec yet"
	default:
		return health.Pass(o.title())
	}
	if o.Ready == "False" && warning != "" {
		reason += "; " + warning
		reason += o.remedy(warning)
	}
	return health.Fail(o.title(), reason).WithCommand(o.command("describe"))
}

// remedy returns what an answer of Connect with an HTTP status means; "" for others. The client of Connect writes it as "status 401: …".
func (o Object) remedy(warning string) string {
	token, vaults := "onepasswordToken", "secrets.onepassword.vaults"
	if strings.Contains(o.Name, "storage") { // the store, and the tree's ExternalSecrets that use it
		token, vaults = "onepasswordStorageToken", "storage.vault"
	}
	switch {
	case strings.Contains(warning, "status 401"):
		return ": Connect refuses the token; set " + token + " anew"
	case strings.Contains(warning, "status 403"):
		return ": the token has no access to a vault; give it access, or change " + vaults
	}
	return ""
}

// warning returns the newest warning about an object.
func (seen *Cluster) warning(object Object) string {
	var newest Warning
	for _, one := range seen.Warnings.Items {
		if one.Kind == object.Kind && one.Name == object.Name && (object.Namespace == "" || one.Namespace == object.Namespace) &&
			one.Time >= newest.Time {
			newest = one
		}
	}
	return newest.Text
}

func (o Object) title() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

func (o Object) command(verb string) string {
	namespace := ""
	if o.Namespace != "" {
		namespace = "-n " + o.Namespace + " "
	}
	return fmt.Sprintf("kubectl %s%s %s %s", namespace, verb, strings.ToLower(o.Kind), o.Name)
}
