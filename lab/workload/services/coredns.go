package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/lab/workload"
)

// dnsOffset is the offset of the cluster's DNS address from that of the Service kubernetes, which has the first address
// of the service network.
const dnsOffset = 9

// StartCoreDNS runs a simulated CoreDNS. It becomes ready when a real one would serve the cluster: its Corefile has the
// plugins kubernetes and ready, its account may list what it answers from, and a Service with the address that kubelets
// give to pods selects it. It does not answer queries: the lab's programs use addresses.
func StartCoreDNS(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	i, ctx := workload.NewInstance(ctx)
	fmt.Fprintf(c.Log, "simulated container %s of image %s: it becomes ready and does not answer queries\n", c.Spec.Name, c.Spec.Image)
	i.After(c.Cluster.PodStart, func() {
		workload.RetryUntilOK(ctx, c, func() error { return checkDNS(ctx, c) }, func() { i.SetReady(true) })
	})
	return i, nil
}

func checkDNS(ctx context.Context, c workload.Container) error {
	return errors.Join(checkCorefile(ctx, c), checkPermissions(ctx, c), checkDNSService(ctx, c))
}

// checkCorefile checks the ConfigMap that the pod mounts.
func checkCorefile(ctx context.Context, c workload.Container) error {
	for _, volume := range c.Pod.Spec.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		m, err := c.Cluster.Client.CoreV1().ConfigMaps(c.Pod.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		text, found := m.Data["Corefile"]
		if !found {
			continue
		}
		var missing []string
		for _, plugin := range []string{"kubernetes", "ready"} {
			if !hasLine(text, plugin) {
				missing = append(missing, plugin)
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("the Corefile of ConfigMap %s has no plugin %s", m.Name, strings.Join(missing, " and "))
		}
		return nil
	}
	return errors.New("no ConfigMap with a Corefile is mounted")
}

func hasLine(text, word string) bool {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == word {
			return true
		}
	}
	return false
}

// checkPermissions checks the permissions that the plugin kubernetes needs at start.
func checkPermissions(ctx context.Context, c workload.Container) error {
	user := "system:serviceaccount:" + c.Pod.Namespace + ":" + cmp.Or(c.Pod.Spec.ServiceAccountName, "default")
	var problems []error
	for _, what := range []struct{ group, resource string }{{"", "services"}, {"", "namespaces"}, {"discovery.k8s.io", "endpointslices"}} {
		review, err := c.Cluster.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "list", Group: what.group, Resource: what.resource}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if !review.Status.Allowed {
			problems = append(problems, fmt.Errorf("%s is forbidden: User %q cannot list resource %q in API group %q at the cluster scope",
				what.resource, user, what.resource, what.group))
		}
	}
	return errors.Join(problems...)
}

// checkDNSService checks the Service by which pods find the cluster's DNS.
func checkDNSService(ctx context.Context, c workload.Container) error {
	first, err := c.Cluster.Client.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return err
	}
	want, err := netip.ParseAddr(first.Spec.ClusterIP)
	if err != nil {
		return err
	}
	for range dnsOffset {
		want = want.Next()
	}
	list, err := c.Cluster.Client.CoreV1().Services(c.Pod.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, s := range list.Items {
		if s.Spec.ClusterIP != want.String() {
			continue
		}
		if len(s.Spec.Selector) == 0 || !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(c.Pod.Labels)) {
			return fmt.Errorf("the Service %s has the DNS address %s and does not select this pod", s.Name, want)
		}
		return nil
	}
	return fmt.Errorf("no Service in %s has the address %s, which kubelets tell pods as the cluster's DNS", c.Pod.Namespace, want)
}
