package gitops

import (
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/component"
)

// components are Flux's controllers, which fetch sources, apply manifests and install charts. Add notification-controller for
// webhooks and alerts.
var components = []string{"source-controller", "kustomize-controller", "helm-controller"}

// ref returns the Git reference of the branch, as FluxInstance takes it.
func ref(git cluster.GitOps) string { return "refs/heads/" + git.Branch }

// rootSubstitution enables the substitution of the cluster settings (${CLUSTER_NAME} and so on) in the root Kustomization, and so
// in every object of the cluster's folder. It is a patch, because the operator creates that Kustomization from the sync.
const rootSubstitution = `- op: add
  path: /spec/postBuild
  value:
    substituteFrom:
      - kind: ConfigMap
        name: ` + settingsName + `
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

// newInstance registers the FluxInstance, from which the operator creates the controllers and the sync.
func newInstance(
	ctx *pulumi.Context, name string, args *GitOpsHandoverArgs, opts ...pulumi.ResourceOption,
) (*apiextensions.CustomResource, error) {
	git := args.GitOps
	patches := pulumi.Array{
		patch("Kustomization", syncName, rootSubstitution),
		patch("Deployment", "(kustomize-controller|helm-controller)", quickDependencies),
	}
	if args.DecryptionSecret != "" {
		patches = append(patches, patch("Kustomization", syncName, decryption(args.DecryptionSecret)))
	}
	return apiextensions.NewCustomResource(ctx, name, &apiextensions.CustomResourceArgs{
		ApiVersion: pulumi.String("fluxcd.controlplane.io/v1"),
		Kind:       pulumi.String("FluxInstance"),
		Metadata: metav1.ObjectMetaArgs{
			Name:      pulumi.String(instanceName),
			Namespace: pulumi.String(Namespace),
			// The handover probe waits for it and reports objects that are stuck; the provider's own wait could only time out.
			Annotations: pulumi.StringMap{"pulumi.com/skipAwait": pulumi.String("true")},
		},
		OtherFields: kubernetes.UntypedArgs{"spec": pulumi.Map{
			"distribution": pulumi.Map{
				"version":  pulumi.String(git.Flux.Version),
				"registry": pulumi.String(git.Flux.Registry),
			},
			"components": pulumi.ToStringArray(components),
			"cluster": pulumi.Map{
				"type":          pulumi.String("kubernetes"),
				"domain":        pulumi.String(cluster.DNSDomain),
				"networkPolicy": pulumi.Bool(true),
			},
			"sync":      sync(git, args.PullSecret),
			"kustomize": pulumi.Map{"patches": patches},
		}},
	}, component.KubernetesPlugin(), pulumi.Composite(opts...))
}

// sync returns the source from which the operator creates the GitRepository and the root Kustomization.
func sync(git cluster.GitOps, pullSecret string) pulumi.Map {
	sync := pulumi.Map{
		"kind":     pulumi.String("GitRepository"),
		"name":     pulumi.String(syncName),
		"url":      pulumi.String(git.URL),
		"ref":      pulumi.String(ref(git)),
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

// patch returns a JSON patch for the objects of a kind with a name.
func patch(kind, name, operations string) pulumi.Map {
	return pulumi.Map{
		"target": pulumi.Map{"kind": pulumi.String(kind), "name": pulumi.String(name)},
		"patch":  pulumi.String(operations),
	}
}
