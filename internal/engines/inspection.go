package engines

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
)

// Paths of lists.
const (
	FluxInstances   = "/apis/fluxcd.controlplane.io/v1/fluxinstances"
	FluxControllers = "/apis/apps/v1/deployments" + PartOf + "flux"

	PartOf = "?labelSelector=app.kubernetes.io%2Fpart-of%3D" // before the name of an application: the objects that are part of it
)

// Inspection reads a cluster in which a stack is about to install an engine.
type Inspection struct {
	Read func(path string, answer any) (found bool, err error) // as kubeapi.Client.ReadJSON
}

// Inspect returns the obstacle that check finds in the kubeconfig's cluster. An API server that does not answer within a minute is one.
func Inspect(ctx context.Context, kubeconfig string, check func(Inspection) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("gave up after %s", time.Minute))
	defer cancel()
	api, err := kubeapi.New([]byte(kubeconfig), 10*time.Second)
	if err != nil {
		return err
	}
	return check(Inspection{func(path string, answer any) (bool, error) { return api.ReadJSON(ctx, path, answer) }})
}

// List returns the objects of a list; none if the API server does not know their kind.
func (i Inspection) List(path string) ([]metav1.PartialObjectMetadata, error) {
	var list metav1.PartialObjectMetadataList
	_, err := i.Read(path, &list)
	return list.Items, err
}

// ClusterOf returns the name of the cluster whose stack has made an object; "" if no stack has.
func ClusterOf(object metav1.PartialObjectMetadata) string {
	return cmp.Or(object.Annotations[cluster.AnnotationCluster], object.Annotations[cluster.OldAnnotationCluster])
}

// Foreign is the error about an object of another stack's cluster.
func Foreign(title, of, own string) error {
	return fmt.Errorf("%s belongs to the cluster %s, and this stack is of %s; check the kubeconfig and cluster.name", title, of, own)
}
