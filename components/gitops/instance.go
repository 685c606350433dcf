package gitops

import (
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
)

// components are Flux's controllers: those that fetch, apply, and install charts. Add notification-controller for webhooks
// and alerts.
var components = []string{"source-controller", "kustomize-controller", "helm-controller"}

// ref is the branch as FluxInstance names it.
func ref(git cluster.GitOps) string { return "refs/heads/" + git.Branch }

// rootSubstitution lets the root Kustomization, and with it every object of the cluster's own folder, use the cluster
// settings as ${CLUSTER_NAME} and so on. It is a patch, for the operator makes that Kustomization from the sync.
const rootSubstitution = `- op: add
  path: /spec/postBuild
  value:
    substituteFrom:
      - kind: ConfigMap
        name: ` + SettingsName + `
`

// quickDependencies makes a Kustomization that depends on another one look again after 5 s. Flux's default is 30 s, which
// every bootstrap would wait once for each step of the tree.
const quickDependencies = `- op: add
  path: /spec/template/spec/containers/0/args/-
  value: --requeue-dependency=5s
`

// newInstance registers the FluxInstance, from which the operator makes the controllers and the sync.
func newInstance(ctx *pulumi.Context, name string, git cluster.GitOps, pullSecret string, opts ...pulumi.ResourceOption) (*apiextensions.CustomResource, error) {
	return apiextensions.NewCustomResource(ctx, name, &apiextensions.CustomResourceArgs{
		ApiVersion: pulumi.String("fluxcd.controlplane.io/v1"),
		Kind:       pulumi.String("FluxInstance"),
		Metadata: metav1.ObjectMetaArgs{
			Name:      pulumi.String(InstanceName),
			Namespace: pulumi.String(Namespace),
			// The handover judges it, with a report on what is stuck; the provider's own wait could only time out.
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
				"domain":        pulumi.String("cluster.local"),
				"networkPolicy": pulumi.Bool(true),
			},
			"sync": pulumi.Map{
				"kind":       pulumi.String("GitRepository"),
				"name":       pulumi.String(SyncName),
				"url":        pulumi.String(git.URL),
				"ref":        pulumi.String(ref(git)),
				"path":       pulumi.String(git.Path),
				"pullSecret": pulumi.String(pullSecret),
				"interval":   pulumi.String(git.Interval.String()),
			},
			"kustomize": pulumi.Map{"patches": pulumi.Array{
				patch("Kustomization", SyncName, rootSubstitution),
				patch("Deployment", "(kustomize-controller|helm-controller)", quickDependencies),
			}},
		}},
	}, opts...)
}

// patch is a JSON patch for the objects of a kind whose name matches.
func patch(kind, name, operations string) pulumi.Map {
	return pulumi.Map{
		"target": pulumi.Map{"kind": pulumi.String(kind), "name": pulumi.String(name)},
		"patch":  pulumi.String(operations),
	}
}
