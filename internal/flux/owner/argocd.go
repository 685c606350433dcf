package owner

import (
	"fmt"

	"github.com/slipway-platform/slipway/cluster"
)

// argoCD refuses a cluster in which an Argo CD runs that a stack of Slipway has made. An Argo CD that somebody else has made may run
// beside Flux.
func (d Declared) argoCD(get func(string, any) (bool, error)) error {
	var namespace object
	if _, err := get("/api/v1/namespaces/"+cluster.ArgoCDNamespace, &namespace); err != nil {
		return err
	}
	of := namespace.Metadata.Annotations[cluster.AnnotationCluster]
	if of == "" {
		return nil
	}
	for _, kind := range []struct{ name, resource string }{{"Deployment", "deployments"}, {"StatefulSet", "statefulsets"}} {
		var controllers struct{ Items []object }
		path := "/apis/apps/v1/namespaces/" + cluster.ArgoCDNamespace + "/" + kind.resource +
			"?labelSelector=app.kubernetes.io%2Fpart-of%3Dargocd"
		if _, err := get(path, &controllers); err != nil {
			return err
		}
		if len(controllers.Items) == 0 {
			continue
		}
		title := kind.name + " " + cluster.ArgoCDNamespace + "/" + controllers.Items[0].Metadata.Name
		if of != d.Cluster {
			return fmt.Errorf("%s is part of the Argo CD of the cluster %s, and this stack is of %s; check the kubeconfig and cluster.name",
				title, of, d.Cluster)
		}
		return fmt.Errorf("%s is part of this stack's Argo CD, which runs this cluster, and two engines would apply the same objects; first "+
			"run `up` with gitops.engine: argocd and gitops.enabled: false, and then with gitops.engine: flux and gitops.enabled: true", title)
	}
	return nil
}
