package cilium

import (
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/cilium/chart"
	"github.com/slipway-platform/slipway/components/internal/component"
)

// meshSecretAnnotations let Pulumi take over a Secret that exists already, with another certificate or another owner: of mode
// inline, of an earlier mesh, or of a release that an earlier Slipway installed, which contains some of the Secrets. Helm deletes what a
// release no longer contains, except objects with this annotation in the cluster. So the Secrets must have the annotation before the
// release changes.
var meshSecretAnnotations = component.Owned(pulumi.StringMap{"helm.sh/resource-policy": pulumi.String("keep")})

// provideMesh registers the Secrets with the mesh's certificates, of the documents by their paths, and returns them. It returns none
// without a mesh.
func (c *CiliumCore) provideMesh(
	ctx *pulumi.Context, in component.InCluster, documents pulumi.StringMap,
) (secrets []pulumi.Resource, err error) {
	for _, what := range c.values.MeshCertificates() {
		secret, err := v1.NewSecret(ctx, c.name+"-"+what.Name, &v1.SecretArgs{
			Metadata: metav1.ObjectMetaArgs{
				Name: pulumi.String(what.Secret), Namespace: pulumi.String(chart.ReleaseNamespace), Annotations: meshSecretAnnotations,
			},
			Type: pulumi.String(chart.MeshSecretType),
			Data: pulumi.StringMap{
				"ca.crt": component.Base64(documents[chart.PathCA]), "tls.crt": component.Base64(documents[what.Path+".cert"]),
				"tls.key": component.Base64(documents[what.Path+".key"]),
			},
			// In mode inline the Secret is part of the machine configuration, and Talos makes a missing Secret only when it looks: after a deletion
			// at the end of that run, the Secret would be missing for long. With the cluster, it is deleted anyway.
		}, in.Child(c, pulumi.RetainOnDelete(true)))
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}
