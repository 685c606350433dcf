package cilium

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/lab/workload"
)

var (
	gatewaysResource   = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"}
	httpRoutesResource = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}
)

// owningGateway is the label of the Service that Cilium makes for a Gateway.
const owningGateway = "io.cilium.gateway/owning-gateway"

// gateway is the part of a Gateway that the lab models.
type gateway struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		GatewayClassName string
		Addresses        []struct{ Type, Value string }
		Listeners        []listener
		Infrastructure   struct{ Labels, Annotations map[string]string }
	}
	Status gatewayStatus
}

type listener struct {
	Name     string
	Port     int32
	Protocol string
	TLS      *struct {
		CertificateRefs []struct{ Name, Namespace string }
	}
	AllowedRoutes struct {
		Namespaces struct {
			From     string
			Selector *metav1.LabelSelector
		}
	}
}

type gatewayStatus struct {
	Addresses  []gatewayAddress   `json:"addresses,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Listeners  []listenerStatus   `json:"listeners,omitempty"`
}

type gatewayAddress struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

type listenerStatus struct {
	Name           string             `json:"name"`
	AttachedRoutes int32              `json:"attachedRoutes"`
	SupportedKinds []routeKind        `json:"supportedKinds"`
	Conditions     []metav1.Condition `json:"conditions"`
}

type routeKind struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
}

// httpRoute is the part of an HTTPRoute that the lab models.
type httpRoute struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ParentRefs []parentRef
		Rules      []struct {
			BackendRefs []struct{ Kind, Name, Namespace string }
		}
	}
	Status struct {
		Parents []parentStatus `json:"parents"`
	}
}

type parentRef struct {
	Group       string `json:"group,omitempty"`
	Kind        string `json:"kind,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name"`
	SectionName string `json:"sectionName,omitempty"`
}

type parentStatus struct {
	ParentRef      parentRef          `json:"parentRef"`
	ControllerName string             `json:"controllerName"`
	Conditions     []metav1.Condition `json:"conditions"`
}

// gateways makes the Services of Gateways with Cilium's class, and reports about Gateways and HTTPRoutes in Cilium's words. Traffic,
// host names, GRPCRoutes, TLSRoutes, ReferenceGrants and the objects for Envoy are not modelled.
func (o *operator) gateways(ctx context.Context) {
	gateways, routes := workload.NewCustomCache(ctx, o.Cluster, gatewaysResource), workload.NewCustomCache(ctx, o.Cluster, httpRoutesResource)
	services := newServiceCache(ctx, o.Cluster)
	tick := time.NewTicker(2 * time.Second) // finds classes, Secrets and namespaces that changed
	defer tick.Stop()
	for {
		if gateways.Synced() && routes.Synced() && o.shared.isLeader(o) {
			if err := o.reconcileGateways(ctx, gateways.List(), routes.List()); err != nil && ctx.Err() == nil {
				fmt.Fprintf(o.Log, "level=error msg=\"Reconciler error\" controller=gateway error=%q subsys=gateway-api\n", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-gateways.Changed:
		case <-routes.Changed:
		case <-services.Changed:
		case <-tick.C:
		}
	}
}

func (o *operator) reconcileGateways(ctx context.Context, gateways, routes []*unstructured.Unstructured) error {
	known := map[types.NamespacedName]gateway{}
	for _, object := range gateways {
		var g gateway
		if err := workload.Decode(object, &g); err != nil {
			return err
		}
		class, err := o.Cluster.Dynamic.Resource(gatewayClasses).Get(ctx, g.Spec.GatewayClassName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if controller, _, _ := unstructured.NestedString(class.Object, "spec", "controllerName"); controller == gatewayController {
			known[types.NamespacedName{Namespace: g.Namespace, Name: g.Name}] = g
		}
	}
	attached := map[types.NamespacedName]map[string]int32{}
	for _, object := range routes {
		var r httpRoute
		if err := workload.Decode(object, &r); err != nil {
			return err
		}
		if err := o.reconcileRoute(ctx, r, known, attached); err != nil {
			return err
		}
	}
	for name, g := range known {
		if err := o.reconcileGateway(ctx, g, attached[name]); err != nil {
			return err
		}
	}
	return nil
}

// reconcileGateway makes the Service of a Gateway and sets its status.
func (o *operator) reconcileGateway(ctx context.Context, g gateway, attached map[string]int32) error {
	status, valid := gatewayStatus{}, false
	condition := func(kind string, is bool, reason, message string) metav1.Condition {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: g.Generation}
		if is {
			c.Status = metav1.ConditionTrue
		}
		return c
	}
	for _, l := range g.Spec.Listeners {
		one := listenerStatus{Name: l.Name, AttachedRoutes: attached[l.Name], SupportedKinds: []routeKind{{gatewaysResource.Group, "HTTPRoute"},
			{gatewaysResource.Group, "GRPCRoute"}}}
		if problem := o.certificateProblem(ctx, g.Namespace, l); problem != "" {
			one.Conditions = []metav1.Condition{condition("ResolvedRefs", false, "InvalidCertificateRef", "Invalid CertificateRef"),
				condition("Accepted", false, "Invalid", "Listener not valid. Invalid CertificateRef, "+problem),
				condition("Programmed", false, "Invalid", "Address not ready yet")}
		} else {
			valid = true
			one.Conditions = []metav1.Condition{condition("ResolvedRefs", true, "ResolvedRefs", "Resolved Refs"),
				condition("Accepted", true, "Accepted", "Listener Accepted"),
				condition("Programmed", false, "Invalid", "Address not ready yet")}
		}
		status.Listeners = append(status.Listeners, one)
	}
	if !valid {
		status.Conditions = []metav1.Condition{condition("Accepted", false, "ListenersNotValid", "No Accepted Listeners"),
			condition("Programmed", false, "ListenersNotValid", "No Accepted Listeners")}
		return o.setGatewayStatus(ctx, g, status)
	}
	service, err := o.gatewayService(ctx, g)
	if err != nil {
		return err
	}
	programmed := condition("Programmed", false, "AddressNotAssigned", "Gateway waiting for address")
	var have []string
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		have = append(have, ingress.IP)
		status.Addresses = append(status.Addresses, gatewayAddress{"IPAddress", ingress.IP})
	}
	if len(have) > 0 {
		programmed = condition("Programmed", true, "Programmed", "Gateway Programmed")
		for _, l := range status.Listeners {
			if meta.IsStatusConditionTrue(l.Conditions, "Accepted") {
				meta.SetStatusCondition(&l.Conditions, condition("Programmed", true, "Programmed", "Listener Programmed"))
			}
		}
		if slices.ContainsFunc(g.Spec.Addresses, func(a struct{ Type, Value string }) bool { return !slices.Contains(have, a.Value) }) {
			programmed = condition("Programmed", false, "AddressNotUsable", "StaticAddress can't be used")
		}
	}
	status.Conditions = []metav1.Condition{condition("Accepted", true, "Accepted", "Gateway successfully scheduled"), programmed}
	return o.setGatewayStatus(ctx, g, status)
}

// certificateProblem says why a listener has no certificate, "" if it has or needs none.
func (o *operator) certificateProblem(ctx context.Context, namespace string, l listener) string {
	if l.TLS == nil {
		return ""
	}
	for _, reference := range l.TLS.CertificateRefs {
		if reference.Namespace != "" && reference.Namespace != namespace {
			return "not permitted."
		}
		secret, err := o.Cluster.Client.CoreV1().Secrets(namespace).Get(ctx, reference.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for key, name := range map[string]string{corev1.TLSCertKey: "Certificate", corev1.TLSPrivateKeyKey: "Key"} {
			if block, _ := pem.Decode(secret.Data[key]); block == nil {
				return "PEM format error in TLS " + name
			}
		}
	}
	return ""
}

// gatewayService creates or changes the Service of a Gateway, which LB-IPAM gives its address.
func (o *operator) gatewayService(ctx context.Context, g gateway) (*corev1.Service, error) {
	annotations := map[string]string{}
	maps.Copy(annotations, g.Spec.Infrastructure.Annotations)
	var addresses []string
	for _, a := range g.Spec.Addresses {
		addresses = append(addresses, a.Value)
	}
	if len(addresses) > 0 {
		annotations["io.cilium/lb-ipam-ips"] = strings.Join(addresses, ",")
	}
	want := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: "cilium-gateway-" + g.Name, Namespace: g.Namespace, Annotations: annotations,
			Labels: map[string]string{owningGateway: g.Name, "gateway.networking.k8s.io/gateway-name": g.Name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "gateway.networking.k8s.io/v1beta1", Kind: "Gateway", Name: g.Name, UID: g.UID,
				Controller: new(true)}},
		},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
	}
	for _, l := range g.Spec.Listeners {
		port := corev1.ServicePort{Name: fmt.Sprintf("port-%d", l.Port), Port: l.Port, Protocol: corev1.ProtocolTCP}
		if !slices.ContainsFunc(want.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == l.Port }) {
			want.Spec.Ports = append(want.Spec.Ports, port)
		}
	}
	client := o.Cluster.Client.CoreV1().Services(g.Namespace)
	have, err := client.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return client.Create(ctx, want, metav1.CreateOptions{FieldManager: "cilium-operator"})
	}
	if err != nil {
		return nil, err
	}
	same := len(have.Spec.Ports) == len(want.Spec.Ports)
	for i := range want.Spec.Ports {
		same = same && have.Spec.Ports[i].Port == want.Spec.Ports[i].Port
	}
	for key, value := range want.Annotations {
		same = same && have.Annotations[key] == value
	}
	if same {
		return have, nil
	}
	changed := have.DeepCopy()
	changed.Spec.Ports = want.Spec.Ports
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, "io.cilium/lb-ipam-ips", strings.Join(addresses, ","))
	return client.Update(ctx, changed, metav1.UpdateOptions{FieldManager: "cilium-operator"})
}

func (o *operator) setGatewayStatus(ctx context.Context, g gateway, want gatewayStatus) error {
	want.Conditions = keepTimes(g.Status.Conditions, want.Conditions)
	for i := range want.Listeners {
		var before []metav1.Condition
		for _, l := range g.Status.Listeners {
			if l.Name == want.Listeners[i].Name {
				before = l.Conditions
			}
		}
		want.Listeners[i].Conditions = keepTimes(before, want.Listeners[i].Conditions)
	}
	return o.setStatus(ctx, gatewaysResource, g.ObjectMeta, g.Status, want)
}

// keepTimes gives conditions that did not change the time of their last transition.
func keepTimes(before, now []metav1.Condition) []metav1.Condition {
	for i := range now {
		now[i].LastTransitionTime = metav1.NewTime(time.Now().Truncate(time.Second))
		if old := meta.FindStatusCondition(before, now[i].Type); old != nil && old.Status == now[i].Status {
			now[i].LastTransitionTime = old.LastTransitionTime
		}
	}
	return now
}

// setStatus writes a status if it differs from the one before.
func (o *operator) setStatus(ctx context.Context, of schema.GroupVersionResource, object metav1.ObjectMeta, before, now any) error {
	old, err := json.Marshal(before)
	if err != nil {
		return err
	}
	text, err := json.Marshal(now)
	if err != nil || string(old) == string(text) {
		return err
	}
	patch, err := json.Marshal(map[string]any{"status": now})
	if err != nil {
		return err
	}
	_, err = o.Cluster.Dynamic.Resource(of).Namespace(object.Namespace).Patch(ctx, object.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: "cilium-operator"}, "status")
	return err
}

// reconcileRoute sets the status of an HTTPRoute for each of its Gateways, and counts it at the listeners that it is attached to.
func (o *operator) reconcileRoute(
	ctx context.Context, r httpRoute, gateways map[types.NamespacedName]gateway, attached map[types.NamespacedName]map[string]int32,
) error {
	status := r.Status
	status.Parents = nil
	for _, parent := range r.Spec.ParentRefs {
		name := types.NamespacedName{Namespace: cmp.Or(parent.Namespace, r.Namespace), Name: parent.Name}
		g, found := gateways[name]
		if !found {
			continue
		}
		accepted, err := o.accepts(ctx, g, parent, r)
		if err != nil {
			return err
		}
		resolved := metav1.Condition{
			Type: "ResolvedRefs", Status: metav1.ConditionTrue, Reason: "ResolvedRefs", Message: "Service reference is valid",
		}
		for _, rule := range r.Spec.Rules {
			for _, backend := range rule.BackendRefs {
				_, err := o.Cluster.Client.CoreV1().Services(r.Namespace).Get(ctx, backend.Name, metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					resolved.Status, resolved.Reason, resolved.Message = metav1.ConditionFalse, "BackendNotFound", err.Error()
				} else if err != nil {
					return err
				}
			}
		}
		accepted.ObservedGeneration, resolved.ObservedGeneration = r.Generation, r.Generation
		var before []metav1.Condition
		for _, p := range r.Status.Parents {
			if p.ParentRef == parent {
				before = p.Conditions
			}
		}
		conditions := keepTimes(before, []metav1.Condition{accepted, resolved})
		status.Parents = append(status.Parents, parentStatus{parent, gatewayController, conditions})
		if accepted.Status != metav1.ConditionTrue {
			continue
		}
		if attached[name] == nil {
			attached[name] = map[string]int32{}
		}
		for _, l := range g.Spec.Listeners {
			if parent.SectionName == "" || parent.SectionName == l.Name {
				attached[name][l.Name]++
			}
		}
	}
	if len(status.Parents) == 0 {
		return nil // of another controller
	}
	return o.setStatus(ctx, httpRoutesResource, r.ObjectMeta, r.Status, status)
}

// accepts tells whether a listener of the Gateway takes the route.
func (o *operator) accepts(ctx context.Context, g gateway, parent parentRef, r httpRoute) (metav1.Condition, error) {
	no := func(reason, message string) (metav1.Condition, error) {
		return metav1.Condition{Type: "Accepted", Status: metav1.ConditionFalse, Reason: reason, Message: message}, nil
	}
	matching := false
	for _, l := range g.Spec.Listeners {
		if parent.SectionName != "" && parent.SectionName != l.Name {
			continue
		}
		matching = true
		allowed := false
		switch from := l.AllowedRoutes.Namespaces.From; from {
		case "All":
			allowed = true
		case "Selector":
			selector, err := metav1.LabelSelectorAsSelector(l.AllowedRoutes.Namespaces.Selector)
			if err != nil {
				return metav1.Condition{}, err
			}
			namespace, err := o.Cluster.Client.CoreV1().Namespaces().Get(ctx, r.Namespace, metav1.GetOptions{})
			if err != nil {
				return metav1.Condition{}, err
			}
			if allowed = selector.Matches(labels.Set(namespace.Labels)); !allowed {
				return no("NotAllowedByListeners", "HTTPRoute is not allowed to attach to this Gateway due to namespace selector restrictions")
			}
		default:
			allowed = r.Namespace == g.Namespace
		}
		if allowed {
			return metav1.Condition{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", Message: "Accepted HTTPRoute"}, nil
		}
	}
	if !matching {
		return no("NoMatchingParent", "No matching listener with sectionName "+parent.SectionName)
	}
	return no("NotAllowedByListeners", "HTTPRoute is not allowed to attach to this Gateway due to namespace restrictions")
}
