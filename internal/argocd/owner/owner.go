// Package owner decides whether a stack may install Argo CD in a cluster that possibly has Flux or an Argo CD already. It reads the cluster
// and changes nothing.
//
// Slipway's Argo CD is the one whose namespace, or whose root Application, has the annotation with the name of the stack's cluster. Any
// other Argo CD is refused, and so is every Flux: both engines would apply the same objects.
package owner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/kubeapi"
)

const (
	timeout        = time.Minute      // longest wait for an API server that does not answer
	requestTimeout = 10 * time.Second // for one request
)

// Declared is what the stack wants to install.
type Declared struct {
	Cluster   string // name of the cluster
	Namespace string // of Argo CD and the root Application
	Root      string // name of the root Application
}

type object struct {
	Metadata struct {
		Name, Namespace string
		Annotations     map[string]string
	}
}

// cluster returns the name of the cluster whose stack has made the object; "" if no stack has.
func (o object) cluster() string {
	return cmp.Or(o.Metadata.Annotations[cluster.AnnotationCluster], o.Metadata.Annotations[cluster.OldAnnotationCluster])
}

// inspection is one run of Check.
type inspection struct {
	Declared

	read func(path string, answer any) (found bool, err error)
}

// Check returns nil if the stack may install its Argo CD, and otherwise an error with the obstacle and the remedy.
func Check(ctx context.Context, kubeconfig string, declared Declared) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("gave up after %s", timeout))
	defer cancel()
	api, err := kubeapi.New([]byte(kubeconfig), requestTimeout)
	if err != nil {
		return err
	}
	c := inspection{declared, func(path string, answer any) (bool, error) { return api.ReadJSON(ctx, path, answer) }}
	if err := c.flux(); err != nil {
		return err
	}
	own, err := c.own()
	if err != nil || own {
		return err
	}
	return c.others()
}

// list returns the objects of a list; none if the API server does not know their kind.
func (c inspection) list(path string) ([]object, error) {
	var list struct{ Items []object }
	_, err := c.read(path, &list)
	return list.Items, err
}

// flux refuses a cluster that has a Flux.
func (c inspection) flux() error {
	instances, err := c.list("/apis/fluxcd.controlplane.io/v1/fluxinstances")
	if err != nil {
		return err
	}
	var problems []error
	for _, instance := range instances {
		problems = append(problems, c.instance(instance))
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	controllers, err := c.list("/apis/apps/v1/deployments" + partOf("flux"))
	if err != nil || len(controllers) == 0 {
		return err
	}
	first := controllers[0].Metadata // the others say the same
	return fmt.Errorf("Deployment %s/%s is part of a Flux, which runs this cluster; remove that Flux, which leaves what it has applied: "+
		"flux uninstall --namespace=%s; if a stack of Slipway has made that Flux, %s", first.Namespace, first.Name, first.Namespace, twoRuns)
}

const twoRuns = "first run `up` with gitops.engine: flux and gitops.enabled: false, and then with gitops.engine: argocd and " +
	"gitops.enabled: true"

// instance returns why a FluxInstance is an obstacle.
func (c inspection) instance(found object) error {
	title := "FluxInstance " + found.Metadata.Namespace + "/" + found.Metadata.Name
	switch of := found.cluster(); of {
	case c.Cluster:
		return fmt.Errorf("%s of this stack runs this cluster, and two engines would apply the same objects; %s", title, twoRuns)
	case "":
		return fmt.Errorf("%s runs this cluster, and two engines would apply the same objects; if this stack has made that Flux, %s; otherwise "+
			"remove the FluxInstance, which uninstalls Flux and leaves what Flux has applied: kubectl -n %s delete fluxinstance %s",
			title, twoRuns, found.Metadata.Namespace, found.Metadata.Name)
	default:
		return c.foreign(title, of)
	}
}

// foreign is the error about an object of another stack's cluster.
func (c inspection) foreign(title, of string) error {
	return fmt.Errorf("%s belongs to the cluster %s, and this stack is of %s; check the kubeconfig and cluster.name", title, of, c.Cluster)
}

// own reports whether the namespace or the root Application is the stack's own: of a run that was interrupted, or of a state that was lost.
func (c inspection) own() (own bool, err error) {
	var problems []error
	for _, one := range []struct{ title, path string }{
		{"Namespace " + c.Namespace, "/api/v1/namespaces/" + c.Namespace},
		{"Application " + c.Namespace + "/" + c.Root, "/apis/argoproj.io/v1alpha1/namespaces/" + c.Namespace + "/applications/" + c.Root},
	} {
		var found object
		if _, err := c.read(one.path, &found); err != nil {
			return false, err
		}
		switch of := found.cluster(); of {
		case c.Cluster:
			own = true
		case "":
		default:
			problems = append(problems, c.foreign(one.title, of))
		}
	}
	return own, errors.Join(problems...)
}

// others refuses the Argo CDs that the stack has not made, each once.
func (c inspection) others() error {
	var problems []error
	seen := map[string]bool{} // namespaces
	for _, kind := range []struct{ name, path string }{
		{"Deployment", "/apis/apps/v1/deployments"}, {"StatefulSet", "/apis/apps/v1/statefulsets"},
	} {
		found, err := c.list(kind.path + partOf("argocd"))
		if err != nil {
			return err
		}
		for _, one := range found {
			if namespace := one.Metadata.Namespace; !seen[namespace] {
				seen[namespace] = true
				release := one.Metadata.Annotations["meta.helm.sh/release-name"]
				problems = append(problems, c.other(kind.name+" "+namespace+"/"+one.Metadata.Name, namespace, release))
			}
		}
	}
	return errors.Join(problems...)
}

// other returns why an Argo CD is an obstacle, of which a workload was found. release is the Helm release that made it; "" if none did.
func (c inspection) other(title, namespace, release string) error {
	remove := fmt.Sprintf("remove that Argo CD without a cascade, so that what it has applied stays: argocd app delete NAME "+
		"--cascade=false for each Application of the namespace %s, and then uninstall it", namespace)
	if namespace != c.Namespace {
		return fmt.Errorf("%s is part of an Argo CD in another namespace than %s, and two of them would apply the same objects; %s",
			title, c.Namespace, remove)
	}
	if release != cluster.ArgoCDRelease { // Helm refuses the objects of another
		return fmt.Errorf("%s is part of an Argo CD that this stack has not made, and is not overwritten; %s", title, remove)
	}
	return fmt.Errorf("%s is part of an Argo CD that this stack has not made, and is not overwritten; let this stack take it over: kubectl "+
		"annotate namespace %s %s=%s; or %s", title, namespace, cluster.AnnotationCluster, c.Cluster, remove)
}

// partOf returns the query for the objects that are part of an application.
func partOf(application string) string {
	return "?labelSelector=app.kubernetes.io%2Fpart-of%3D" + application
}
