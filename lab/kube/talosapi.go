package kube

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	machinery "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// ManageTalosAPI gives pods access to Talos's API as the configuration of a control plane allows it, with nil none any more: the Service
// `talos` of these addresses stays, and Secrets are neither made nor renewed.
func (c *ControlPlane) ManageTalosAPI(cfg machinery.Provider, addresses []netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endAccess != nil {
		c.endAccess()
		c.endAccess = nil
	}
	if cfg == nil || c.stopped {
		return
	}
	ctx, cancel := context.WithCancel(c.life)
	c.endAccess = cancel
	c.work.Go(func() {
		defer cancel()
		select {
		case <-c.ready:
		case <-ctx.Done():
			return
		}
		if err := c.giveAccess(ctx, cfg, addresses); err != nil && ctx.Err() == nil {
			c.log.Error("Talos's API for pods", "err", err)
		}
	})
}

// giveAccess keeps the Service, and Secrets for the accounts, until ctx ends.
func (c *ControlPlane) giveAccess(ctx context.Context, cfg machinery.Provider, addresses []netip.Addr) error {
	kube, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	dyn, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	c.work.Go(func() { c.keepTalosService(ctx, kube, addresses) })
	allowed := cfg.Machine().Features().KubernetesTalosAPIAccess()
	(&talosAccounts{kube: kube, dynamic: dyn, ca: cfg.Machine().Security().IssuingCA(),
		namespaces: allowed.AllowedKubernetesNamespaces(), roles: allowed.AllowedRoles()}).run(ctx)
	return nil
}

// keepTalosService makes the Service with its addresses, as Talos's kubeaccess.EndpointController does: it tries again, later and later,
// until everything exists.
func (c *ControlPlane) keepTalosService(ctx context.Context, kube kubernetes.Interface, addresses []netip.Addr) {
	for backoff := firstBackoff; ; backoff = min(backoff*3/2, maxBackoff) {
		err := makeTalosService(ctx, kube, addresses)
		if err == nil {
			return
		}
		c.log.Warn("Service of Talos's API", "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff):
		}
	}
}

func makeTalosService(ctx context.Context, kube kubernetes.Interface, addresses []netip.Addr) error {
	const name, namespace, port = constants.KubernetesTalosAPIServiceName, constants.KubernetesTalosAPIServiceNamespace, "apid"
	labels := map[string]string{"provider": constants.KubernetesTalosProvider, "component": port}
	_, err := kube.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
			{Name: port, Port: constants.ApidPort, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(constants.ApidPort)},
		}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	var errs []error
	labels[discoveryv1.LabelServiceName] = name
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		want := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: name + "-" + strings.ToLower(string(family)), Labels: labels},
			AddressType: family,
			Ports:       []discoveryv1.EndpointPort{{Name: new(port), Port: new(int32(constants.ApidPort)), Protocol: new(corev1.ProtocolTCP)}},
		}
		for _, a := range addresses {
			if a.Is4() == (family == discoveryv1.AddressTypeIPv4) {
				want.Endpoints = append(want.Endpoints, discoveryv1.Endpoint{Addresses: []string{a.String()},
					Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)}})
			}
		}
		errs = append(errs, setSlice(ctx, kube, namespace, want))
	}
	return errors.Join(errs...)
}

// setSlice makes an EndpointSlice have these endpoints. One without any is deleted.
func setSlice(ctx context.Context, kube kubernetes.Interface, namespace string, want *discoveryv1.EndpointSlice) error {
	all := kube.DiscoveryV1().EndpointSlices(namespace)
	have, err := all.Get(ctx, want.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && len(want.Endpoints) > 0:
		_, err = all.Create(ctx, want, metav1.CreateOptions{})
	case apierrors.IsNotFound(err):
		err = nil
	case err != nil:
	case len(want.Endpoints) == 0:
		err = all.Delete(ctx, want.Name, metav1.DeleteOptions{})
	case !equality.Semantic.DeepEqual(have.Endpoints, want.Endpoints) || !equality.Semantic.DeepEqual(have.Ports, want.Ports):
		have.Endpoints, have.Ports = want.Endpoints, want.Ports
		_, err = all.Update(ctx, have, metav1.UpdateOptions{})
	}
	return err
}
