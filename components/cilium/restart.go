package cilium

import (
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/utilities"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/component"
)

// typeDeploymentPatch is the provider's token for server-side apply to a Deployment that somebody else made. It is
// registered without the SDK's apps/v1 package, as releases are without its helm packages.
const typeDeploymentPatch = "kubernetes:apps/v1:DeploymentPatch"

// annotationCRDs is on the operator's pods, and says which CRDs were there when they started.
const annotationCRDs = "slipway-platform.github.io/gateway-api-crds"

// deploymentPatch is the Deployment as the provider returns it, of which nothing is used.
type deploymentPatch struct{ pulumi.CustomResourceState }

// RestartOperatorForCRDs makes Cilium's operator look for the Gateway API's CRDs again. The operator looks once, when it
// starts, and serves no gateway if they are missing; in mode inline Talos starts it before anything can install them. The
// restart is declared, as an annotation on the operator's pods with the release of the CRDs, so that it happens once. In mode
// helm, where the CRDs come first, and without the Gateway API it registers nothing.
func (c *CiliumCore) RestartOperatorForCRDs(ctx *pulumi.Context, in component.InCluster) error {
	if c.values.Cilium.Mode != cluster.CiliumInline || !c.values.Cilium.GatewayAPI {
		return nil
	}
	if err := in.Validate(); err != nil {
		return component.Failed(typeCiliumCore, c.name, err)
	}
	return ctx.RegisterResource(typeDeploymentPatch, c.name+"-operator", pulumi.Map{
		"apiVersion": pulumi.String("apps/v1"),
		"kind":       pulumi.String("Deployment"),
		"metadata": pulumi.Map{
			"name":      pulumi.String("cilium-operator"),
			"namespace": pulumi.String(ReleaseNamespace),
			// On one node the second operator never starts, so that there is nothing to wait for.
			"annotations": pulumi.StringMap{"pulumi.com/skipAwait": pulumi.String("true")},
		},
		"spec": pulumi.Map{"template": pulumi.Map{"metadata": pulumi.Map{
			"annotations": pulumi.StringMap{annotationCRDs: pulumi.String(c.values.CRDs.GatewayAPI.Version)},
		}}},
	}, &deploymentPatch{}, utilities.PkgResourceDefaultOpts([]pulumi.ResourceOption{in.Child(c)})...)
}
