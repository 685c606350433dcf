package cilium

import (
	"errors"
	"fmt"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/utilities"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// typeDeploymentPatch is the provider's token for server-side apply to a Deployment that somebody else made. It is
// registered without the SDK's apps/v1 package, as releases are without its helm packages.
const typeDeploymentPatch = "kubernetes:apps/v1:DeploymentPatch"

// annotationCRDs is on the operator's pods, and says which CRDs were there when they started.
const annotationCRDs = "slipway-platform.github.io/gateway-api-crds"

// CRDsArgs are what RestartOperatorForCRDs needs.
type CRDsArgs struct {
	// CRDs tells what is installed, such as the version of the Gateway API; another value restarts the operator again;
	// required.
	CRDs pulumi.StringInput

	KubernetesProvider pulumi.ProviderResource // required

	// DependsOn must be there before: the CRDs, and the operator's Deployment, which the gate has seen.
	DependsOn []pulumi.Resource
	// DeletedWith takes the patch along when it is deleted, so that destroy needs no answering API; optional.
	DeletedWith pulumi.Resource
}

// deploymentPatch is the Deployment as the provider returns it, of which nothing is used.
type deploymentPatch struct{ pulumi.CustomResourceState }

// RestartOperatorForCRDs has the operator look for the Gateway API's CRDs again. It does that once, when it starts, and
// serves no gateway if they are missing; in ModeInline Talos starts it before anything can install them. The restart is
// declared, as an annotation of the operator's pods, so that it happens once. In ModeHelm, where the CRDs come first, and
// without the Gateway API it registers nothing.
func (c *CiliumCore) RestartOperatorForCRDs(ctx *pulumi.Context, args *CRDsArgs) error {
	if c.mode != ModeInline || !c.values.GatewayAPI {
		return nil
	}
	if args == nil || args.CRDs == nil || args.KubernetesProvider == nil {
		return fmt.Errorf("CiliumCore %q: %w", c.name, errors.New("crds, kubernetesProvider: missing; give both"))
	}
	opts := []pulumi.ResourceOption{
		pulumi.Parent(c), pulumi.Provider(args.KubernetesProvider), pulumi.DependsOn(args.DependsOn),
	}
	if args.DeletedWith != nil {
		opts = append(opts, pulumi.DeletedWith(args.DeletedWith))
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
			"annotations": pulumi.StringMap{annotationCRDs: args.CRDs},
		}}},
	}, &deploymentPatch{}, utilities.PkgResourceDefaultOpts(opts)...)
}
