package tree

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// Objects that exist before Flux applies the tree, or that something else makes than a manifest of the tree.
var (
	// namespacesOfOthers are Kubernetes' own and those of the bootstrap, which Pulumi creates.
	namespacesOfOthers = []string{"kube-system", "default", "flux-system", "cert-manager", "external-secrets", "sealed-secrets"}
	// gatewayClassesOfOthers are made by Cilium's chart.
	gatewayClassesOfOthers = []string{"cilium"}
	// rolesOfOthers are ClusterRoles of Kubernetes itself.
	rolesOfOthers = []string{"view", "edit", "admin", "cluster-admin", "system:auth-delegator"}
)

const notificationGroup = "notification.toolkit.fluxcd.io"

// references: an object of the tree that another one names exists.
func references(t *tree) {
	t.each(func(layer Layer, object Object) {
		r := referrer{t, layer, object}
		switch {
		case object.Is(kustomizeGroup, "Kustomization"):
			r.dependencies("Kustomization")
			for _, check := range object.List("spec", "healthChecks") {
				r.healthCheck(check)
			}
		case object.Is(helmGroup, "HelmRelease"):
			r.dependencies("HelmRelease")
			r.chart()
			for _, from := range object.List("spec", "valuesFrom") {
				if from["optional"] != true {
					r.needs("", fmt.Sprint(from["kind"]), object.GetNamespace(), fmt.Sprint(from["name"]))
				}
			}
		case object.Is("gateway.networking.k8s.io", "Gateway"):
			r.gateway()
		case object.Is("gateway.networking.k8s.io", "HTTPRoute"):
			r.route()
		case object.Is("policy", "PodDisruptionBudget"):
			r.selects("spec", "selector", "matchLabels")
		case object.Is("", "Service"): // also in a mesh: what is behind a gateway answers without the other clusters
			r.selects("spec", "selector")
		case object.Is("cert-manager.io", "ClusterIssuer"):
			if secret := object.Text("spec", "ca", "secretName"); secret != "" {
				r.needs("", "Secret", "cert-manager", secret)
			}
			for _, solver := range object.List("spec", "acme", "solvers") {
				for _, key := range [][]string{{"rfc2136", "tsigSecretSecretRef"}, {"cloudflare", "apiTokenSecretRef"}} {
					if secret, _, _ := unstructured.NestedString(solver, "dns01", key[0], key[1], "name"); secret != "" {
						r.needs("", "Secret", "cert-manager", secret)
					}
				}
			}
		case object.Is("cert-manager.io", "Certificate"):
			r.issuer(object.Text("spec", "issuerRef", "kind"), object.Text("spec", "issuerRef", "name"))
		case object.Is(notificationGroup, "Provider"):
			r.needs("", "Secret", object.GetNamespace(), object.Text("spec", "secretRef", "name"))
		case object.Is(notificationGroup, "Alert"):
			r.needs(notificationGroup, "Provider", object.GetNamespace(), object.Text("spec", "providerRef", "name"))
		case object.Is("operator.victoriametrics.com", "VMAlertmanagerConfig"):
			for _, secret := range addresses(object) {
				r.needs("", "Secret", object.GetNamespace(), fmt.Sprint(secret["name"]))
			}
		case object.Is("rbac.authorization.k8s.io", "ClusterRoleBinding"):
			if name := object.Text("roleRef", "name"); !slices.Contains(rolesOfOthers, name) {
				r.needs("rbac.authorization.k8s.io", "ClusterRole", "", name)
			}
		}
		if w, found := read(object); found {
			r.pod(w.pod.Spec)
		}
	})
	cycles(t)
}

// addresses are the fields of Secrets in which the receivers of a VMAlertmanagerConfig find their addresses.
func addresses(config Object) (found []map[string]any) {
	walk(config.Object, nil, func(_ []string, key string, value any) {
		if secret, is := value.(map[string]any); is && (key == "api_url" || strings.HasSuffix(key, "url_secret")) {
			found = append(found, secret)
		}
	})
	return found
}

// referrer is an object that names others.
type referrer struct {
	*tree
	layer  Layer
	object Object
}

func (r referrer) missing(format string, args ...any) { r.found(r.layer, r.object, format, args...) }

// needs reports an object that is not in the tree, and that nothing in the tree makes.
func (r referrer) needs(group, kind, namespace, name string) {
	if _, _, found := r.find(group, kind, namespace, name); found || kind == "Secret" && r.made(namespace, name) {
		return
	}
	if kind == "ConfigMap" && namespace == fluxNamespace && name == settingsName {
		return
	}
	r.missing("names %s %s, which is not in the tree", kind, strings.TrimPrefix(namespace+"/"+name, "/"))
}

// made reports whether an object of the tree makes a Secret of that name.
func (r referrer) made(namespace, name string) (found bool) {
	r.each(func(_ Layer, object Object) {
		if object.GetNamespace() != namespace {
			return
		}
		switch {
		case object.Is("cert-manager.io", "Certificate"):
			found = found || object.Text("spec", "secretName") == name
		case object.Is("external-secrets.io", "ExternalSecret"):
			found = found || object.GetName() == name || object.Text("spec", "target", "name") == name
		case object.Is("bitnami.com", "SealedSecret"), object.Is("talos.dev", "ServiceAccount"):
			found = found || object.GetName() == name
		case object.Is("gateway.networking.k8s.io", "Gateway") && object.GetAnnotations()[clusterIssuerAnnotation] != "":
			found = found || slices.Contains(certificates(object), name) // cert-manager makes a Certificate for each listener
		case object.Is("postgresql.cnpg.io", "Cluster"):
			found = found || name == object.GetName()+"-app" || name == object.GetName()+"-ca"
		}
	})
	return found
}

const clusterIssuerAnnotation = "cert-manager.io/cluster-issuer"

// certificates lists the Secrets of the listeners of a Gateway.
func certificates(gateway Object) (names []string) {
	for _, listener := range gateway.List("spec", "listeners") {
		for _, reference := range list(listener, "tls", "certificateRefs") {
			names = append(names, fmt.Sprint(reference["name"]))
		}
	}
	return names
}

func (r referrer) dependencies(kind string) {
	group := r.object.GroupVersionKind().Group
	for _, on := range r.object.List("spec", "dependsOn") {
		namespace, _ := on["namespace"].(string)
		if namespace == "" {
			namespace = r.object.GetNamespace()
		}
		r.needs(group, kind, namespace, fmt.Sprint(on["name"]))
	}
}

// chart checks where a HelmRelease has its chart from.
func (r referrer) chart() {
	for _, path := range [][]string{{"spec", "chartRef"}, {"spec", "chart", "spec", "sourceRef"}} {
		if name := r.object.Text(append(path, "name")...); name != "" {
			namespace := r.object.Text(append(path, "namespace")...)
			if namespace == "" {
				namespace = r.object.GetNamespace()
			}
			r.needs(sourceGroup, r.object.Text(append(path, "kind")...), namespace, name)
		}
	}
}

// healthCheck checks that the objects a Kustomization waits for are in its layer, or made by a HelmRelease in it.
func (r referrer) healthCheck(check map[string]any) {
	for _, layer := range r.layers {
		if layer.Name != r.object.GetName() {
			continue
		}
		for _, object := range layer.Objects {
			if object.GetKind() == check["kind"] && object.GetName() == check["name"] || object.Is(helmGroup, "HelmRelease") {
				return
			}
		}
	}
	r.missing("waits for %v %v, which it does not apply", check["kind"], check["name"])
}

func (r referrer) gateway() {
	if class := r.object.Text("spec", "gatewayClassName"); !slices.Contains(gatewayClassesOfOthers, class) {
		r.needs("gateway.networking.k8s.io", "GatewayClass", "", class)
	}
	if issuer := r.object.GetAnnotations()[clusterIssuerAnnotation]; issuer != "" {
		r.issuer("ClusterIssuer", issuer)
	}
	for _, name := range certificates(r.object) {
		r.needs("", "Secret", r.object.GetNamespace(), name)
	}
}

func (r referrer) issuer(kind, name string) {
	namespace := ""
	if kind == "Issuer" {
		namespace = r.object.GetNamespace()
	}
	r.needs("cert-manager.io", kind, namespace, name)
}

func (r referrer) route() {
	for _, parent := range r.object.List("spec", "parentRefs") {
		namespace, _ := parent["namespace"].(string)
		if namespace == "" {
			namespace = r.object.GetNamespace()
		}
		_, gateway, found := r.find("gateway.networking.k8s.io", "Gateway", namespace, fmt.Sprint(parent["name"]))
		if !found {
			r.missing("names Gateway %s/%v, which is not in the tree", namespace, parent["name"])
			continue
		}
		if section, named := parent["sectionName"]; named && !slices.ContainsFunc(gateway.List("spec", "listeners"),
			func(listener map[string]any) bool { return listener["name"] == section }) {
			r.missing("names listener %v, which Gateway %s/%v does not have", section, namespace, parent["name"])
		}
	}
	for _, rule := range r.object.List("spec", "rules") {
		for _, backend := range list(rule, "backendRefs") {
			r.backend(backend)
		}
	}
}

// backend checks the Service that a route leads to, and its port. One that a chart makes is not looked at.
func (r referrer) backend(backend map[string]any) {
	name := fmt.Sprint(backend["name"])
	_, service, found := r.find("", "Service", r.object.GetNamespace(), name)
	switch {
	case found && !slices.ContainsFunc(service.List("spec", "ports"),
		func(port map[string]any) bool { return port["port"] == backend["port"] }):
		r.missing("names port %v, which Service %s does not have", backend["port"], name)
	case !found && !slices.ContainsFunc(r.layer.Objects, func(object Object) bool { return object.Is(helmGroup, "HelmRelease") }):
		r.missing("names Service %s, which is not in the tree", name)
	}
}

// selects checks that a selector, unless it is empty, matches the pods of a workload in the tree.
func (r referrer) selects(fields ...string) {
	selector, _, err := unstructured.NestedStringMap(r.object.Object, fields...)
	if err != nil || len(selector) == 0 {
		return
	}
	matched := false
	r.each(func(_ Layer, object Object) {
		if w, found := read(object); found && object.GetNamespace() == r.object.GetNamespace() {
			matched = matched || labels.SelectorFromSet(selector).Matches(labels.Set(w.pod.Labels))
		}
		matched = matched || object.Is(helmGroup, "HelmRelease") && object.GetNamespace() == r.object.GetNamespace()
	})
	if !matched {
		r.missing("selects no pods of the tree")
	}
}

// pod checks what the containers of a pod read.
func (r referrer) pod(pod corev1.PodSpec) {
	namespace := r.object.GetNamespace()
	if account := pod.ServiceAccountName; account != "" && account != "default" {
		r.needs("", "ServiceAccount", namespace, account)
	}
	mandatory := func(optional *bool) bool { return optional == nil || !*optional }
	for _, volume := range pod.Volumes {
		if from := volume.ConfigMap; from != nil && mandatory(from.Optional) {
			r.needs("", "ConfigMap", namespace, from.Name)
		}
		if from := volume.Secret; from != nil && mandatory(from.Optional) {
			r.needs("", "Secret", namespace, from.SecretName)
		}
		if from := volume.PersistentVolumeClaim; from != nil {
			r.needs("", "PersistentVolumeClaim", namespace, from.ClaimName)
		}
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, env := range container.Env {
			if from := env.ValueFrom; from != nil && from.SecretKeyRef != nil && mandatory(from.SecretKeyRef.Optional) {
				r.needs("", "Secret", namespace, from.SecretKeyRef.Name)
			}
			if from := env.ValueFrom; from != nil && from.ConfigMapKeyRef != nil && mandatory(from.ConfigMapKeyRef.Optional) {
				r.needs("", "ConfigMap", namespace, from.ConfigMapKeyRef.Name)
			}
		}
		for _, from := range container.EnvFrom {
			if from.SecretRef != nil && mandatory(from.SecretRef.Optional) {
				r.needs("", "Secret", namespace, from.SecretRef.Name)
			}
			if from.ConfigMapRef != nil && mandatory(from.ConfigMapRef.Optional) {
				r.needs("", "ConfigMap", namespace, from.ConfigMapRef.Name)
			}
		}
	}
}

// cycles reports dependencies that wait for each other for ever.
func cycles(t *tree) {
	t.each(func(layer Layer, object Object) {
		if object.Is(kustomizeGroup, "Kustomization") || object.Is(helmGroup, "HelmRelease") {
			if slices.Contains(t.closure(object), object.GetNamespace()+"/"+object.GetName()) {
				t.found(layer, object, "waits for itself, by way of spec.dependsOn")
			}
		}
	})
}

// closure lists all that an object of Flux waits for, as NAMESPACE/NAME, directly and not.
func (t *tree) closure(object Object) (names []string) {
	for next := []Object{object}; len(next) > 0; next = next[1:] {
		for _, on := range next[0].List("spec", "dependsOn") {
			namespace, _ := on["namespace"].(string)
			if namespace == "" {
				namespace = next[0].GetNamespace()
			}
			name := namespace + "/" + fmt.Sprint(on["name"])
			if slices.Contains(names, name) {
				continue
			}
			names = append(names, name)
			of := object.GroupVersionKind()
			if _, found, exists := t.find(of.Group, of.Kind, namespace, fmt.Sprint(on["name"])); exists {
				next = append(next, found)
			}
		}
	}
	return names
}

// order: the namespace of an object is made by its own layer, by a layer before it, or before Flux. The same holds for the Gateway
// of a route and the issuer of a certificate.
func order(t *tree) {
	t.each(func(layer Layer, object Object) {
		after := func(group, kind, namespace, name string) {
			in, _, found := t.find(group, kind, namespace, name)
			if !found || in.Name == layer.Name || layer.Name == rootName ||
				slices.Contains(t.closure(layer.Declaration), fluxNamespace+"/"+in.Name) {
				return
			}
			t.found(layer, object, "needs %s %s, and its Kustomization does not wait for %s; add it to spec.dependsOn", kind, name, in.Name)
		}
		if namespace := object.GetNamespace(); namespace != "" && !slices.Contains(namespacesOfOthers, namespace) {
			if _, _, found := t.find("", "Namespace", "", namespace); !found {
				t.found(layer, object, "namespace %s is not in the tree", namespace)
			}
			after("", "Namespace", "", namespace)
		}
		switch {
		case object.Is("gateway.networking.k8s.io", "HTTPRoute"):
			for _, parent := range object.List("spec", "parentRefs") {
				namespace, _ := parent["namespace"].(string)
				after("gateway.networking.k8s.io", "Gateway", namespace, fmt.Sprint(parent["name"]))
			}
		case object.Is("gateway.networking.k8s.io", "Gateway"):
			after("cert-manager.io", "ClusterIssuer", "", object.GetAnnotations()[clusterIssuerAnnotation])
		case object.Is("cert-manager.io", "Certificate"):
			after("cert-manager.io", "ClusterIssuer", "", object.Text("spec", "issuerRef", "name"))
		case object.Is(helmGroup, "HelmRelease"):
			if name := object.Text("spec", "chartRef", "name"); name != "" {
				after(sourceGroup, object.Text("spec", "chartRef", "kind"), object.GetNamespace(), name)
			}
		}
	})
}
