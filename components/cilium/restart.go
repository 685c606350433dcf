package cilium

import (
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/utilities"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium/chart"
	"github.com/slipway-platform/slipway/components/internal/component"
)

// typeDeploymentPatch is the provider's token for server-side apply to a Deployment that something else created. It is
// registered without the SDK's apps/v1 package, for the same reason as releases are without its helm packages.
const typeDeploymentPatch = "kubernetes:apps/v1:DeploymentPatch"

// deploymentPatch is the registered patch. Its outputs are not used.
type deploymentPatch struct{ pulumi.CustomResourceState }

// RestartOperatorForCRDs restarts Cilium's operator after the Gateway API's CRDs are installed. The operator looks for them once,
// when it starts, and serves no gateway if they are missing. In mode inline Talos starts it before they can be installed. The
// restart, an annotation on the operator's pods with the version of the CRDs, happens once. In mode helm, where the CRDs are installed
// first, and without the Gateway API it registers nothing.
func (c *CiliumCore) RestartOperatorForCRDs(ctx *pulumi.Context, in component.InCluster) error {
	if !c.values.Cilium.Inline() || !c.values.Cilium.GatewayAPI {
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
			"namespace": pulumi.String(chart.ReleaseNamespace),
			// On one node the second operator never starts, so that the provider would wait until its timeout.
			"annotations": pulumi.StringMap{"pulumi.com/skipAwait": pulumi.String("true")},
		},
		"spec": pulumi.Map{"template": pulumi.Map{"metadata": pulumi.Map{
			"annotations": pulumi.StringMap{cluster.AnnotationGatewayAPI: pulumi.String(c.values.CRDs.GatewayAPI.Version)},
		}}},
	}, &deploymentPatch{}, utilities.PkgResourceDefaultOpts([]pulumi.ResourceOption{in.Child(c)})...)
}
