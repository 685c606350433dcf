package live

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
)

// Unmet implements turn.Cluster.
func (c *Cluster) Unmet(ctx context.Context, checks []cluster.Check) (string, error) {
	for _, check := range checks {
		expression, err := check.Compile()
		if err != nil {
			return "", err
		}
		objects, err := c.checked(ctx, check.Objects)
		if err != nil {
			return "", fmt.Errorf("%s: %w", check.Name, err)
		}
		for i := range objects {
			if seen := cluster.Checked(ctx, expression, &objects[i]); !seen.Holds {
				return fmt.Sprintf("not so: %s (%s: %s)", check.Name, seen.Title(check), seen.Reason(check)), nil
			}
		}
	}
	return "", nil
}

// checked returns the objects of a check; none if the API server does not serve their kind yet.
func (c *Cluster) checked(ctx context.Context, of cluster.CheckedObjects) (objects []unstructured.Unstructured, err error) {
	options := metav1.ListOptions{LabelSelector: of.Selector}
	if of.Name != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", of.Name).String()
	}
	err = c.kube.askServer(ctx, func(server *kubeapi.Client) error {
		kind, err := server.Find(ctx, of.APIVersion, of.Kind)
		if err != nil {
			return err
		}
		list, err := server.Objects.Resource(kind.Resource).Namespace(of.Namespace).List(ctx, options)
		if err == nil {
			objects = list.Items
		}
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return objects, err
}
