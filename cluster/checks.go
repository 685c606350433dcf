package cluster

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// Check is a condition of your own that the cluster must meet: a CEL expression that is true of objects. `up` changes no node while
// it does not hold.
type Check struct {
	// The condition as a sentence, by which reports and errors name the check.
	Name string `json:"name" config:"required" form:"sentence" example:"the databases have a primary"`
	// The objects that the expression judges, each by itself.
	Objects CheckedObjects `json:"objects" config:"required"`
	// CEL expression about an object, that is true if all is well. A field that may be missing is written as in
	// `object.?status.?phase.orValue('')`. `now` is the time at which the object was read.
	Expression string `json:"expression" config:"required" form:"cel-expression" example:"object.status.readyInstances == object.spec.instances"`
	// What to say, and what to do, if the check fails.
	Message string `json:"message" form:"sentence" example:"see the runbook of the databases, and ask in #databases"`
}

// TurnChecks are what must hold before and after each turn of a node, in the specs of the runs of the probe.
type TurnChecks struct {
	Checks []Check `json:"checks,omitempty"`
	// What must hold instead before a sick or lost node is removed: this node may be why the other checks fail.
	Leaving []Check `json:"leaving,omitempty"`
	// How long the checks must hold without a break after a turn that interrupts pods, and before a removal: as long as their objects may be
	// out of date.
	Settle Duration `json:"settle,omitzero"`
	// Names of the nodes with disks of the shared storage. One after the other takes its turn.
	Storage []string `json:"storage,omitempty"`
	// What must hold before a node with such a disk is removed: data on this disk alone is lost with the node.
	Copies []Check `json:"copies,omitempty"`
}

// OfStorage returns those of the checks that judge the shared storage.
func (t TurnChecks) OfStorage() []Check {
	return slices.DeleteFunc(slices.Clone(t.Checks), func(check Check) bool { return check.Objects.Kind != cephClusterKind })
}

// Since returns checks for which older words of Rook about Ceph than of this time do not count; the zero time leaves them as they are.
func (t TurnChecks) Since(at time.Time, checks []Check) []Check {
	if at.IsZero() || len(t.Leaving) == 0 {
		return checks
	}
	return append(slices.Clone(checks), cephAskedSince(at))
}

// CheckedObjects are objects of one kind. Secrets cannot be checked: nothing that `up` reports may depend on their contents.
type CheckedObjects struct {
	// Group and version of the kind, as in a manifest.
	APIVersion string `json:"apiVersion" config:"required" form:"api-version" example:"postgresql.cnpg.io/v1"`
	// Kind, as in a manifest.
	Kind string `json:"kind" config:"required" form:"kind" example:"Cluster"`
	// Namespace. Without it, the objects of all namespaces.
	Namespace string `json:"namespace" form:"object-name" example:"databases"`
	// Name of the one object. Without it, all that the selector selects.
	Name string `json:"name" form:"object-name" example:"main"`
	// Selector of labels. Without it, all objects of the kind.
	Selector string `json:"selector" form:"label-selector" example:"team=data"`
}

// Title names the objects in a report.
func (o CheckedObjects) Title() string {
	title := o.Kind
	switch {
	case o.Name != "" && o.Namespace != "":
		title += " " + o.Namespace + "/" + o.Name
	case o.Name != "":
		title += " " + o.Name
	case o.Namespace != "":
		title += " in " + o.Namespace
	}
	if o.Selector != "" {
		title += " with " + o.Selector
	}
	return title
}

// Compile returns the check's expression.
func (c Check) Compile() (*syntax.Expression, error) { return syntax.CompileExpression(c.Expression) }

// CheckedObject is what was seen of an object that a check judges.
type CheckedObject struct {
	Namespace, Name string
	Holds           bool   // the expression is true of it
	Problem         string // why the expression is neither true nor false of it; "" otherwise
}

// Checked judges an object by an expression.
func Checked(ctx context.Context, expression *syntax.Expression, object *unstructured.Unstructured) CheckedObject {
	seen := CheckedObject{Namespace: object.GetNamespace(), Name: object.GetName()}
	var err error
	if seen.Holds, err = expression.Holds(ctx, object.Object); err != nil {
		seen.Problem = err.Error()
	}
	return seen
}

// Title names the object in a report.
func (o CheckedObject) Title(check Check) string {
	one := check.Objects
	one.Namespace, one.Name, one.Selector = o.Namespace, o.Name, ""
	return one.Title()
}

// Reason says why the check does not hold: in the words of its author, if there are any.
func (o CheckedObject) Reason(check Check) string {
	return cmp.Or(check.Message, o.Problem, check.Expression+" is false")
}

// ValidateChecks returns every problem of checks in the spec of a run of the probe.
func ValidateChecks(checks []Check) error {
	var problems Findings
	for i, check := range checks {
		path := ItemPath("checks", i)
		required := func(key, value, remedy string) {
			if strings.TrimSpace(value) == "" {
				problems.Add(path+key, remedy, "is empty")
			}
		}
		required(".name", check.Name, "give a sentence")
		required(".objects.apiVersion", check.Objects.APIVersion, "give a version such as apps/v1")
		required(".objects.kind", check.Objects.Kind, "give a kind such as Deployment")
		if _, err := check.Compile(); err != nil {
			problems.Add(path+".expression", "correct it", err.Error())
		}
	}
	problems.sameNames(checks)
	return problems.Err()
}

// sameNames adds a problem for each check with the name of one before it.
func (f *Findings) sameNames(checks []Check) {
	names := map[string]int{}
	for i, check := range checks {
		if first, twice := names[check.Name]; twice && check.Name != "" {
			f.Found(ItemPath("checks", i)+".name", "give each check its own", "%s is the name of checks[%d], too", check.Name, first)
		} else {
			names[check.Name] = i
		}
	}
}

// ownChecks checks the checks of the user.
func (c clusterCheck) ownChecks() {
	c.sameNames(c.Checks)
	for i, check := range c.Checks {
		path := ItemPath("checks", i)
		if check.Objects.Kind == "Secret" && check.Objects.APIVersion == "v1" {
			c.Found(path+".objects.kind", "check what uses it, such as an ExternalSecret's status", "Secret cannot be checked")
		}
		c.checkedKind(path+".objects", check.Objects)
		if check.Objects.Name != "" && check.Objects.Selector != "" {
			c.Found(path+".objects.selector", "remove one of both", "is not for an object with a name")
		}
	}
}

// builtIn are the kinds of the API groups that every cluster has and that get no new kinds.
var builtIn = map[string][]string{
	"v1": {
		"ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod", "PodTemplate",
		"ReplicationController", "ResourceQuota", "Secret", "Service", "ServiceAccount",
	},
	"apps/v1":  {"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
	"batch/v1": {"CronJob", "Job"},
}

// inNoNamespace are kinds that are in no namespace, by their groups: of Kubernetes, and of what Slipway and its tree install.
var inNoNamespace = map[string][]string{
	"apiextensions.k8s.io":      {"CustomResourceDefinition"},
	"apiregistration.k8s.io":    {"APIService"},
	"cert-manager.io":           {"ClusterIssuer"},
	"external-secrets.io":       {"ClusterExternalSecret", "ClusterSecretStore"},
	"gateway.networking.k8s.io": {"GatewayClass"},
	"networking.k8s.io":         {"IngressClass"},
	"rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding"},
	"scheduling.k8s.io":         {"PriorityClass"},
	"v1":                        {"Namespace", "Node", "PersistentVolume"},
	"storage.k8s.io":            {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"},
}

// lastServed are API versions of which no Kubernetes that Slipway knows serves anything, with the version that has their kinds. Versions
// that come back with other kinds, such as storage.k8s.io/v1beta1, are not among them.
var lastServed = map[string]string{
	"apiextensions.k8s.io/v1beta1": "apiextensions.k8s.io/v1", "apps/v1beta1": "apps/v1", "apps/v1beta2": "apps/v1",
	"batch/v1beta1": "batch/v1", "batch/v2alpha1": "batch/v1", "cert-manager.io/v1alpha2": "cert-manager.io/v1",
	"cert-manager.io/v1alpha3": "cert-manager.io/v1", "cert-manager.io/v1beta1": "cert-manager.io/v1",
	"extensions/v1beta1": "apps/v1 or networking.k8s.io/v1", "policy/v1beta1": "policy/v1",
	"rbac.authorization.k8s.io/v1beta1": "rbac.authorization.k8s.io/v1",
}

// checkedKind checks a kind of Kubernetes' own. Objects of a kind that does not exist are none, of which every check is true.
func (c clusterCheck) checkedKind(path string, o CheckedObjects) {
	if served := lastServed[o.APIVersion]; served != "" {
		c.Found(path+".apiVersion", "write "+served, "%s is served no more", o.APIVersion)
		return
	}
	group, _, _ := strings.Cut(o.APIVersion, "/")
	if o.Namespace != "" && slices.Contains(inNoNamespace[group], o.Kind) {
		c.Found(path+".namespace", "remove it", "%s, and a %s is in none", o.Namespace, o.Kind)
	}
	kinds, known := builtIn[o.APIVersion]
	if !known || o.Kind == "" || slices.Contains(kinds, o.Kind) {
		return
	}
	remedy := OneOf(o.Kind, kinds)
	for version, others := range builtIn {
		if slices.Contains(others, o.Kind) {
			remedy = "write apiVersion: " + version
		}
	}
	c.Found(path+".kind", remedy, "%s is no kind of %s", o.Kind, o.APIVersion)
}
