package gitops

import (
	"fmt"
	"strings"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
)

// rootSubstitution enables the substitution of the cluster settings (${CLUSTER_NAME} and so on) in the root Kustomization, and so
// in every object of the cluster's folder. It is a patch, because the operator creates that Kustomization from the sync.
const rootSubstitution = `- op: add
  path: /spec/postBuild
  value:
    substituteFrom:
      - kind: ConfigMap
        name: ` + cluster.ClusterSettings + `
`

// quickDependencies makes a Kustomization check its dependencies every 5 s. With Flux's default of 30 s, every bootstrap would
// wait that long for each level of dependencies.
const quickDependencies = `- op: add
  path: /spec/template/spec/containers/0/args/-
  value: --requeue-dependency=5s
`

// decryption makes the root Kustomization decrypt, with the keys of age in a Secret, what SOPS has encrypted in the cluster's folder.
func decryption(secret string) string {
	return `- op: add
  path: /spec/decryption
  value:
    provider: sops
    secretRef:
      name: ` + secret + `
`
}

// sourceCA makes a registry's or a bucket's source trust the certificates in a Secret. The sync has no key for it.
func sourceCA(secret string) string {
	return `- op: add
  path: /spec/certSecretRef
  value:
    name: ` + secret + `
`
}

// reconcileFor makes Flux reconcile an object whenever a fingerprint changes. Flux reads the Secret of a source only when it fetches.
// The handover probe sees what came of it.
func reconcileFor(apiVersion, kind string, fingerprint pulumi.StringInput) pulumi.StringOutput {
	return pulumi.Sprintf(`apiVersion: %s
kind: %s
metadata:
  name: %s
  annotations:
    reconcile.fluxcd.io/requestedAt: %s
`, apiVersion, kind, cluster.FluxSync, fingerprint)
}

// newInstance registers the FluxInstance, from which the operator creates the controllers and the sync.
func newInstance(
	ctx *pulumi.Context, name string, args *GitOpsHandoverArgs, opts ...pulumi.ResourceOption,
) (*apiextensions.CustomResource, error) {
	return apiextensions.NewCustomResource(ctx, name, &apiextensions.CustomResourceArgs{
		ApiVersion: pulumi.String("fluxcd.controlplane.io/v1"),
		Kind:       pulumi.String("FluxInstance"),
		Metadata: metav1.ObjectMetaArgs{
			Name:      pulumi.String(cluster.FluxInstance),
			Namespace: pulumi.String(cluster.FluxNamespace),
			// The handover probe waits for it and reports objects that are stuck; the provider's own wait could only time out.
			Annotations: component.Owned(pulumi.StringMap{
				"pulumi.com/skipAwait":    pulumi.String("true"),
				cluster.AnnotationCluster: pulumi.String(args.Name),
			}),
		},
		OtherFields: kubernetes.UntypedArgs{"spec": instanceSpec(args)},
	}, component.KubernetesPlugin(), pulumi.IgnoreChanges(keptAnnotations), pulumi.Composite(opts...))
}

// keptAnnotations are the annotations that an existing FluxInstance keeps as they are in the state, present or not. So an instance with the
// old key shows no change, and a new instance gets the new key.
var keptAnnotations = []string{
	fmt.Sprintf("metadata.annotations[%q]", cluster.AnnotationCluster), fmt.Sprintf("metadata.annotations[%q]", cluster.OldAnnotationCluster),
}

// instanceSpec returns the FluxInstance's spec. What is not declared is left out.
func instanceSpec(args *GitOpsHandoverArgs) pulumi.Map {
	flux := args.GitOps.Flux
	components := pulumi.StringArray{}
	for _, one := range flux.Components {
		components = append(components, pulumi.String(one))
	}
	spec := pulumi.Map{
		"distribution": distribution(flux, args.Secrets.Images),
		"components":   components,
		"cluster":      tuning(flux),
		"sync":         sync(args.GitOps, args.Secrets.Source),
		"kustomize":    pulumi.Map{"patches": patches(args)},
	}
	if shards := flux.Sharding; shards != nil {
		sharding := pulumi.Map{"key": pulumi.String(shards.Key), "shards": pulumi.ToStringArray(shards.Shards)}
		if shards.Persistent {
			sharding["storage"] = pulumi.String("persistent")
		}
		spec["sharding"] = sharding
	}
	if storage := flux.Storage; storage != nil {
		size := strings.TrimSuffix(storage.Size.String(), "B") // 10GiB is 10Gi to Kubernetes
		spec["storage"] = pulumi.Map{"class": pulumi.String(storage.Class), "size": pulumi.String(size)}
	}
	return spec
}

// distribution returns which Flux is installed, and from where.
func distribution(flux cluster.Flux, imagesSecret string) pulumi.Map {
	from := pulumi.Map{"version": pulumi.String(flux.Version), "registry": pulumi.String(flux.Registry)}
	if flux.Variant != "" {
		from["variant"] = pulumi.String(flux.Variant)
	}
	if imagesSecret != "" {
		from["imagePullSecret"] = pulumi.String(imagesSecret)
	}
	return from
}

// tuning returns how the controllers run.
func tuning(flux cluster.Flux) pulumi.Map {
	runs := pulumi.Map{
		"type":          pulumi.String("kubernetes"),
		"domain":        pulumi.String(cluster.DNSDomain),
		"networkPolicy": pulumi.Bool(flux.NetworkPolicy),
	}
	if flux.Size != "" {
		runs["size"] = pulumi.String(flux.Size)
	}
	if flux.Multitenant {
		runs["multitenant"] = pulumi.Bool(true)
	}
	if flux.TenantServiceAccount != "" {
		runs["tenantDefaultServiceAccount"] = pulumi.String(flux.TenantServiceAccount)
	}
	return runs
}

// sync returns the source from which the operator creates Flux's source and the root Kustomization.
func sync(git cluster.GitOps, pullSecret string) pulumi.Map {
	source := git.Source()
	sync := pulumi.Map{
		"kind":     pulumi.String(source.Kind),
		"name":     pulumi.String(cluster.FluxSync),
		"url":      pulumi.String(source.URL),
		"ref":      pulumi.String(source.Ref),
		"path":     pulumi.String(git.Path),
		"interval": pulumi.String(git.Interval.String()),
	}
	if pullSecret != "" {
		sync["pullSecret"] = pulumi.String(pullSecret)
	}
	if git.Access() == cluster.GitByApp {
		sync["provider"] = pulumi.String("github") // without it, Flux refuses a Secret of a GitHub App
	}
	return sync
}

// patches returns what the FluxInstance has no key for.
func patches(args *GitOpsHandoverArgs) pulumi.Array {
	made := pulumi.Array{patch("Kustomization", cluster.FluxSync, pulumi.String(rootSubstitution))}
	if args.GitOps.Flux.Size == "" { // a size brings its own interval
		made = append(made, patch("Deployment", "(kustomize-controller|helm-controller)", pulumi.String(quickDependencies)))
	}
	if args.Secrets.Decryption != "" {
		made = append(made, patch("Kustomization", cluster.FluxSync, pulumi.String(decryption(args.Secrets.Decryption))))
	}
	source := string(args.GitOps.Source().Kind)
	if args.Secrets.CA != "" {
		made = append(made, patch(source, cluster.FluxSync, pulumi.String(sourceCA(args.Secrets.CA))))
	}
	if args.Access != nil {
		made = append(made, patch(source, cluster.FluxSync, reconcileFor("source.toolkit.fluxcd.io/v1", source, args.Access)))
	}
	if args.Decryption != nil {
		made = append(made,
			patch("Kustomization", cluster.FluxSync, reconcileFor("kustomize.toolkit.fluxcd.io/v1", "Kustomization", args.Decryption)))
	}
	return made
}

// patch returns a patch for the objects of a kind with a name: a JSON patch, or a part of the object that is merged.
func patch(kind, name string, changes pulumi.StringInput) pulumi.Map {
	return pulumi.Map{
		"target": pulumi.Map{"kind": pulumi.String(kind), "name": pulumi.String(name)},
		"patch":  changes,
	}
}
