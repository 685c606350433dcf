package tree

import (
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
)

// declared is an object that Flux applies, with its file.
type declared struct {
	object

	file string
}

func (d declared) group() string {
	group, _, _ := strings.Cut(d.APIVersion, "/")
	return group
}

// component is one that brings the API of objects, and how a stack has it.
type component struct {
	group, name, key, remedy string
	has                      func(*cluster.Cluster) bool
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
}

// checkNeeds returns advice about objects whose API nothing brings, neither the stack nor a manifest, and about ExternalSecrets that the
// operator refuses.
func (r *reader) checkNeeds(stack *cluster.Cluster) cluster.Problems {
	var findings cluster.Findings
	for _, one := range components {
		first := slices.IndexFunc(r.declared, func(d declared) bool { return d.group() == one.group })
		if first >= 0 && !one.has(stack) && !r.brings(one) {
			d := r.declared[first]
			findings.Found(one.key, one.remedy+", unless something else brings it", "%s declares a %s of %s, which this stack does not have",
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

// brings reports whether a manifest installs a component: by a HelmRelease, or with its CRDs.
func (r *reader) brings(one component) bool {
	return slices.ContainsFunc(r.declared, func(d declared) bool {
		return d.Kind == "HelmRelease" && strings.Contains(d.Metadata.Name+d.Spec.Chart.Spec.Chart, one.name) ||
			d.Kind == "CustomResourceDefinition" && d.Spec.Group == one.group
	})
}
