package tree

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
)

// declared is an object that Flux applies, with its file.
type declared struct {
	object

	file     string
	document *yaml.Node
	layer    layer
}

func (d declared) group() string {
	group, _, _ := strings.Cut(d.APIVersion, "/")
	return group
}

// applies reports whether something comes of a manifest. Nothing comes of a kustomization alone, unless it makes or fetches something.
func (d declared) applies() bool {
	remote := slices.ContainsFunc(slices.Concat(d.allResources(), d.Components), isRemote)
	return d.Kind != "" && (d.group() != kustomizeGroup || remote || len(d.ConfigMapGenerator)+len(d.SecretGenerator)+len(d.HelmCharts) > 0)
}

// component brings the API of objects; has reports whether a stack has the component.
type component struct {
	group, name, key, remedy string
	has                      func(*cluster.Cluster) bool
}

// crds returns the component whose CRDs a stack may leave out: its key is that of the CRDs below crds.
func crds(group, name, key string, source func(*cluster.CRDs) cluster.CRDSource) component {
	return component{group, name, "crds." + key + ".skip", "remove it", func(c *cluster.Cluster) bool { return !source(&c.CRDs).Skip }}
}

var components = []component{
	{"cert-manager.io", "cert-manager", "certManager.enabled", "set it to true",
		func(c *cluster.Cluster) bool { return c.CertManager.Enabled }},
	{"gateway.networking.k8s.io", "gateway", "cilium.gatewayAPI", "set it to true",
		func(c *cluster.Cluster) bool { return c.Cilium.GatewayAPI }},
	{"external-secrets.io", "external-secrets", "secrets.onepassword", "declare it",
		func(c *cluster.Cluster) bool { return c.Providers.OnePassword != nil }},
	{"bitnami.com", "sealed-secrets", "secrets.sealedSecrets", "declare it",
		func(c *cluster.Cluster) bool { return c.Providers.SealedSecrets != nil }},
	{"notification.toolkit.fluxcd.io", "notification", "gitops.flux.components", "add notification-controller",
		func(c *cluster.Cluster) bool {
			return slices.Contains(c.GitOps.Flux.Components, cluster.NotificationController)
		}},
	crds("ceph.rook.io", "rook", "rook", func(c *cluster.CRDs) cluster.CRDSource { return c.Rook }),
	crds("csi.ceph.io", "ceph-csi", "cephCSI", func(c *cluster.CRDs) cluster.CRDSource { return c.CephCSI }),
	crds("operator.victoriametrics.com", "victoria-metrics", "victoriaMetrics",
		func(c *cluster.CRDs) cluster.CRDSource { return c.VictoriaMetrics }),
	crds("monitoring.coreos.com", "prometheus", "prometheusOperator", func(c *cluster.CRDs) cluster.CRDSource { return c.PrometheusOperator }),
	crds("postgresql.cnpg.io", "cloudnative-pg", "cloudnativePG", func(c *cluster.CRDs) cluster.CRDSource { return c.CloudNativePG }),
}

// checkNeeds returns advice about objects whose API nothing brings, neither the stack nor a manifest, and about ExternalSecrets that the
// operator refuses.
func (r *reader) checkNeeds(stack *cluster.Cluster) cluster.Problems {
	var findings cluster.Findings
	for _, one := range components {
		first := slices.IndexFunc(r.declared, func(d declared) bool { return d.group() == one.group })
		if first >= 0 && !one.has(stack) && !r.brings(one) {
			d, remedy := r.declared[first], one.remedy
			if path.Base(path.Dir(path.Dir(d.file))) == "onepassword" { // a folder that the setting has chosen
				remedy += ", or write the setting KEYS: git"
			}
			findings.Found(one.key, remedy+", unless something else brings it", "%s declares the kind %s of %s, which this stack does not have",
				d.file, d.Kind, one.group)
		}
	}
	if vaults := stack.Providers.OnePassword; vaults != nil {
		readers := vaults.Readers()
		for _, d := range r.declared {
			at, store := d.Metadata.Namespace, d.Spec.SecretStoreRef
			if store.Kind == "ClusterSecretStore" && store.Name == "onepassword" && at != "" && !slices.Contains(readers, at) {
				findings.Found("secrets.onepassword.namespaces", "add "+at, "does not have %s, where %s declares the %s %s: the operator refuses it",
					at, d.file, d.Kind, d.Metadata.Name)
			}
		}
	}
	return findings.All()
}

// checkApprover returns advice if kubelets ask for certificates that nothing approves once `up` has ended: renewed ones, and those of a
// changed address. Without a certificate, a kubelet serves no logs.
func (r *reader) checkApprover(stack *cluster.Cluster) cluster.Problems {
	var findings cluster.Findings
	if stack.Kubernetes.MetricsServer && !slices.ContainsFunc(r.declared, func(d declared) bool {
		return d.Kind == "Deployment" && d.Metadata.Name == cluster.CertificateApprover
	}) {
		findings.Found("kubernetes.metricsServer", "add the folder kubernetes/infrastructure/scheduling of this release, or remove it",
			"true, and no manifest below gitops.path has the Deployment %s", cluster.CertificateApprover)
	}
	return findings.All()
}

// brings reports whether a manifest installs a component: by a HelmRelease, which may leave out CRDs, or with its CRDs.
func (r *reader) brings(one component) bool {
	return slices.ContainsFunc(r.declared, func(d declared) bool {
		leavesOut := strings.HasPrefix(one.key, "crds.") && d.Spec.Install.CRDs == "Skip"
		return d.Kind == "HelmRelease" && strings.Contains(d.Metadata.Name+d.Spec.Chart.Spec.Chart, one.name) && !leavesOut ||
			d.Kind == "CustomResourceDefinition" && d.Spec.Group == one.group
	})
}

// checkTenants returns advice about objects that Flux applies with the rights of the service account default, because they name none.
func (r *reader) checkTenants(stack *cluster.Cluster) cluster.Problems {
	flux := stack.GitOps.Flux
	if !flux.Multitenant || flux.TenantServiceAccount != "" {
		return nil
	}
	var bare []declared
	for _, d := range r.declared {
		isFlux := d.Kind == "Kustomization" && d.group() == layerGroup || d.Kind == "HelmRelease"
		if isFlux && d.Spec.ServiceAccountName == "" {
			bare = append(bare, d)
		}
	}
	if len(bare) == 0 {
		return nil
	}
	others := ""
	if len(bare) > 1 {
		others = fmt.Sprintf(" (and %d more)", len(bare)-1)
	}
	return cluster.Problems{cluster.NewProblem("gitops.flux.multitenant",
		"name an account with enough rights there, or in gitops.flux.tenantServiceAccount",
		"%s declares the %s %s without spec.serviceAccountName%s: Flux applies it with the rights of the account default of its namespace",
		bare[0].file, bare[0].Kind, bare[0].Metadata.Name, others)}
}

// checkPlainSecrets returns advice about Secrets whose values everybody knows who reads the repository.
func (r *reader) checkPlainSecrets() (advice cluster.Problems) {
	for _, d := range r.declared {
		if d.Kind == "Secret" && d.APIVersion == "v1" && d.SOPS == nil && (hasText(d.Data) || hasText(d.StringData)) {
			advice = append(advice, cluster.NewProblem("gitops.path", "encrypt it with SOPS or as a SealedSecret, or write an ExternalSecret",
				"%s has the values of the Secret %s in plain text", d.file, d.Metadata.Name))
		}
	}
	return advice
}

// hasText reports whether the data of a Secret has more than variables, which Flux replaces.
func hasText(data any) bool {
	values, _ := data.(map[string]any)
	for _, value := range values {
		if text, _ := value.(string); strings.TrimSpace(choice.ReplaceAllString(text, "")) != "" {
			return true
		}
	}
	return false
}
