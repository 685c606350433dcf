package argocd

import (
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
)

// newRoot registers the root Application, which applies the cluster's folder. It has no finalizer: who deletes it by hand removes nothing
// that it has applied.
func newRoot(ctx *pulumi.Context, name string, args *GitOpsHandoverArgs, opts ...pulumi.ResourceOption) (pulumi.Resource, error) {
	return apiextensions.NewCustomResource(ctx, name, &apiextensions.CustomResourceArgs{
		ApiVersion: pulumi.String("argoproj.io/v1alpha1"),
		Kind:       pulumi.String("Application"),
		Metadata: metav1.ObjectMetaArgs{
			Name:      pulumi.String(cluster.ArgoCDRoot),
			Namespace: pulumi.String(cluster.ArgoCDNamespace),
			// The handover probe waits for it and reports objects that are stuck; the provider's own wait could only time out.
			Annotations: component.Owned(pulumi.StringMap{
				"pulumi.com/skipAwait":    pulumi.String("true"),
				cluster.AnnotationCluster: pulumi.String(args.Name),
			}),
		},
		OtherFields: kubernetes.UntypedArgs{"spec": rootSpec(args.GitOps, args.Settings[cluster.ArgoCDChecksum])},
	}, component.KubernetesPlugin(), pulumi.Composite(opts...))
}

// rootSpec returns the root Application's spec. A failed sync is tried again at the newest revision, for ever: a corrected manifest is
// then applied without a command, as Flux does it. Its source changes with a run only, which ends a sync of the former source.
func rootSpec(git cluster.GitOps, checksum string) pulumi.Map {
	return pulumi.Map{
		"project": pulumi.String(cluster.ArgoCDProject),
		"destination": pulumi.Map{
			"server": pulumi.String("https://kubernetes.default.svc"), "namespace": pulumi.String(cluster.ArgoCDNamespace),
		},
		"source": pulumi.Map{
			"repoURL": pulumi.String(git.URL), "targetRevision": pulumi.String(git.Branch), "path": pulumi.String(git.Path),
			"plugin": pulumi.Map{
				"name": pulumi.String(cluster.ArgoCDPlugin),
				"env":  pulumi.MapArray{pulumi.Map{"name": pulumi.String("SETTINGS"), "value": pulumi.String(checksum)}},
			},
		},
		"syncPolicy": pulumi.Map{
			"automated":   pulumi.Map{"prune": pulumi.Bool(true), "selfHeal": pulumi.Bool(true)},
			"syncOptions": pulumi.ToStringArray([]string{"ServerSideApply=true"}),
			"retry": pulumi.Map{
				"limit": pulumi.Int(-1), "refresh": pulumi.Bool(true),
				"backoff": pulumi.Map{"duration": pulumi.String("5s"), "factor": pulumi.Int(2), "maxDuration": pulumi.String("1m")},
			},
		},
	}
}
