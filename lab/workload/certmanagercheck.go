package workload

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var certificateRequests = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificaterequests"}

// checkLimit is how long cert-manager's check waits, as the chart tells it to by default.
const checkLimit = time.Minute

// StartCertManagerCheck runs what `cmctl check api` does in the chart's last hook: it asks for a CertificateRequest, without
// making it, until the API server and the webhooks behind it take one.
func StartCertManagerCheck(ctx context.Context, c Container) (*Instance, error) {
	return startCheck(ctx, c, checkLimit), nil
}

func startCheck(ctx context.Context, c Container, limit time.Duration) *Instance {
	i := NewInstance()
	i.after(limit, func() {
		fmt.Fprintf(c.Log, "error: timed out after %s\n", limit)
		i.Exit(1)
	})
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest",
		"metadata": map[string]any{"generateName": "cmapichecker-", "namespace": c.Pod.Namespace},
		"spec":     map[string]any{"request": "Y3Ny", "issuerRef": map[string]any{"name": "cmapichecker"}},
	}}
	i.after(c.Cluster.PodStart, func() {
		until(ctx, i, c, func() error {
			_, err := c.Cluster.Dynamic.Resource(certificateRequests).Namespace(c.Pod.Namespace).Create(ctx, request, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}, func() {
			fmt.Fprintln(c.Log, "The cert-manager API is ready")
			i.Exit(0)
		})
	})
	return i
}
