package cilium

import (
	"fmt"
	"maps"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/cilium/chart"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/helm"
)

// renderBlank renders the chart before anything is registered. It returns nothing in mode helm.
func renderBlank(ctx *pulumi.Context, v chart.Values, provider pulumi.ProviderResource) (chart.BlankManifests, error) {
	if !v.Cilium.Inline() {
		return nil, nil
	}
	values, err := v.Blank()
	if err != nil {
		return nil, err
	}
	service := v.Cilium.Service()
	args := &helm.TemplateArgs{
		Name: service.Name, Namespace: service.Namespace, Chart: service.Chart, Version: service.Version, Repository: service.Repository,
		KubernetesVersion: v.Kubernetes.Version,
		Values:            values,
	}
	if v.Cilium.GatewayAPI {
		// The CRDs are installed before a pod of these manifests uses them; see RestartOperatorForCRDs.
		args.APIVersions = []string{"gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1/GatewayClass"}
	}
	objects, err := helm.Template(ctx, args, pulumi.Provider(provider))
	if err != nil {
		return nil, err
	}
	blank, err := v.Check(objects)
	if err != nil {
		return nil, fmt.Errorf("chart %s %s: %w", args.Chart, args.Version, err)
	}
	return blank, nil
}

// render sets the manifests, which are complete once the PEM documents are known.
func (c *CiliumCore) render(issuer issuer, blank chart.BlankManifests) error {
	documents, err := c.issue(issuer)
	if err != nil {
		return err
	}
	if c.ofMesh, err = issuer.issueAll(c.values.MeshCertificates()); err != nil {
		return err
	}
	maps.Copy(documents, c.ofMesh)
	c.Version = pulumi.String(c.values.Cilium.Version).ToStringOutput()
	c.InlineManifests = pulumi.ToSecret(documents.ToStringMapOutput().ApplyT(blank.Fill)).(pulumi.StringOutput)
	return nil
}

// HandToEngine gives an engine that owns Cilium in mode inline the values that Slipway sets. Talos has made the objects at the bootstrap,
// with the marks of a Helm release, and changes none; so the engine takes them over as those of a release. The Secrets of a mesh, which the
// chart does not have, become Pulumi's, as in mode helm: nobody else would give them another certificate. In mode helm, and if no engine
// owns Cilium, it registers nothing.
func (c *CiliumCore) HandToEngine(ctx *pulumi.Context, in component.InCluster, kubeconfig pulumi.StringInput) error {
	service := c.values.Cilium.Service()
	if !c.values.Cilium.Inline() || !service.Owner.IsEngine() || in.OwnedValues == nil {
		return nil
	}
	if err := in.Validate(); err != nil {
		return component.Failed(typeCiliumCore, c.name, err)
	}
	own, err := c.values.Own(c.certificates)
	if err != nil {
		return component.Failed(typeCiliumCore, c.name, err)
	}
	secrets, err := c.provideMesh(ctx, in, c.ofMesh)
	if err != nil {
		return err
	}
	args := &helm.ReleaseArgs{Service: service, Own: own, Kubeconfig: kubeconfig, OwnedValues: in.OwnedValues}
	values, err := args.NewValues(ctx, in.Child(c, pulumi.DependsOn(secrets)))
	if err != nil {
		return err
	}
	c.leaves = []pulumi.Resource{values}
	return nil
}
