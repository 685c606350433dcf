package owner

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/engines"
)

// argoCD refuses a cluster in which an Argo CD runs that a stack of Slipway has made. An Argo CD that somebody else has made may run
// beside Flux.
func (d Declared) argoCD(in engines.Inspection) error {
	var namespace metav1.PartialObjectMetadata
	if _, err := in.Read("/api/v1/namespaces/"+cluster.ArgoCDNamespace, &namespace); err != nil {
		return err
	}
	of := namespace.Annotations[cluster.AnnotationCluster]
	if of == "" {
		return nil
	}
	for _, kind := range []struct{ name, resource string }{{"Deployment", "deployments"}, {"StatefulSet", "statefulsets"}} {
		controllers, err := in.List("/apis/apps/v1/namespaces/" + cluster.ArgoCDNamespace + "/" + kind.resource + engines.PartOf + "argocd")
		if err != nil {
			return err
		}
		if len(controllers) == 0 {
			continue
		}
		title := kind.name + " " + cluster.ArgoCDNamespace + "/" + controllers[0].Name
		if of != d.Cluster {
			return fmt.Errorf("%s is part of the Argo CD of the cluster %s, and this stack is of %s; check the kubeconfig and cluster.name",
				title, of, d.Cluster)
		}
		return fmt.Errorf("%s is part of this stack's Argo CD, which runs this cluster, and two engines would apply the same objects; first "+
			"run `up` with gitops.engine: argocd and gitops.enabled: false, and then with gitops.engine: flux and gitops.enabled: true; "+
			"if that has left an Argo CD which owned itself: helm uninstall argocd --namespace argocd", title)
	}
	return nil
}
