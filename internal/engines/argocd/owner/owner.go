// Package owner decides whether a stack may install Argo CD in a cluster that possibly has Flux or an Argo CD already. It reads the cluster
// and changes nothing.
//
// Slipway's Argo CD is the one whose namespace, or whose root Application, has the annotation with the name of the stack's cluster. Any
// other Argo CD is refused, and so is every Flux: both engines would apply the same objects.
package owner

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/engines"
)

// Declared is what the stack wants to install.
type Declared struct {
	Cluster   string // name of the cluster
	Namespace string // of Argo CD and the root Application
	Root      string // name of the root Application
}

// inspection is one run of Check.
type inspection struct {
	Declared
	engines.Inspection
}

// Check returns nil if the stack may install its Argo CD, and otherwise an error with the obstacle and the remedy.
func Check(ctx context.Context, kubeconfig string, declared Declared) error {
	return engines.Inspect(ctx, kubeconfig, func(in engines.Inspection) error {
		c := inspection{declared, in}
		if err := c.flux(); err != nil {
			return err
		}
		own, err := c.own()
		if err != nil || own {
			return err
		}
		return c.others()
	})
}

// flux refuses a cluster that has a Flux.
func (c inspection) flux() error {
	instances, err := c.List(engines.FluxInstances)
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
	controllers, err := c.List(engines.FluxControllers)
	if err != nil || len(controllers) == 0 {
		return err
	}
	first := controllers[0] // the others say the same
	return fmt.Errorf("Deployment %s/%s is part of a Flux, which runs this cluster; remove that Flux, which leaves what it has applied: "+
		"flux uninstall --namespace=%s; if a stack of Slipway has made that Flux, %s", first.Namespace, first.Name, first.Namespace, twoRuns)
}

const twoRuns = "first run `up` with gitops.engine: flux and gitops.enabled: false, and then with gitops.engine: argocd and " +
	"gitops.enabled: true"

// instance returns why a FluxInstance is an obstacle.
func (c inspection) instance(found metav1.PartialObjectMetadata) error {
	title := "FluxInstance " + found.Namespace + "/" + found.Name
	switch of := engines.ClusterOf(found); of {
	case c.Cluster:
		return fmt.Errorf("%s of this stack runs this cluster, and two engines would apply the same objects; %s", title, twoRuns)
	case "":
		return fmt.Errorf("%s runs this cluster, and two engines would apply the same objects; if this stack has made that Flux, %s; otherwise "+
			"remove the FluxInstance, which uninstalls Flux and leaves what Flux has applied: kubectl -n %s delete fluxinstance %s",
			title, twoRuns, found.Namespace, found.Name)
	default:
		return engines.Foreign(title, of, c.Cluster)
	}
}

// own reports whether the namespace or the root Application is the stack's own: of a run that was interrupted, or of a state that was lost.
func (c inspection) own() (own bool, err error) {
	var problems []error
	for _, one := range []struct{ title, path string }{
		{"Namespace " + c.Namespace, "/api/v1/namespaces/" + c.Namespace},
		{"Application " + c.Namespace + "/" + c.Root, "/apis/argoproj.io/v1alpha1/namespaces/" + c.Namespace + "/applications/" + c.Root},
	} {
		var found metav1.PartialObjectMetadata
		if _, err := c.Read(one.path, &found); err != nil {
			return false, err
		}
		switch of := engines.ClusterOf(found); of {
		case c.Cluster:
			own = true
		case "":
		default:
			problems = append(problems, engines.Foreign(one.title, of, c.Cluster))
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
		found, err := c.List(kind.path + engines.PartOf + "argocd")
		if err != nil {
			return err
		}
		for _, one := range found {
			if namespace := one.Namespace; !seen[namespace] {
				seen[namespace] = true
				release := one.Annotations["meta.helm.sh/release-name"]
				problems = append(problems, c.other(kind.name+" "+namespace+"/"+one.Name, namespace, release))
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
