package cilium

import (
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/cilium/chart"
	"github.com/slipway-platform/slipway/components/internal/component"
)

// provideLocal registers chart.LocalSecret, and returns it. It returns nothing without a mesh.
func (c *CiliumCore) provideLocal(ctx *pulumi.Context, args *CiliumCoreArgs, issuer issuer) ([]pulumi.Resource, error) {
	what, is := c.values.LocalCertificate()
	if !is {
		return nil, nil
	}
	pair, err := issuer.issue(what)
	if err != nil {
		return nil, err
	}
	secret, err := v1.NewSecret(ctx, c.name+"-"+what.Name, &v1.SecretArgs{
		Metadata: metav1.ObjectMetaArgs{
			Name: pulumi.String(chart.LocalSecret), Namespace: pulumi.String(chart.ReleaseNamespace),
			// It may exist already, of mode inline or of a former mesh, with another certificate.
			Annotations: pulumi.StringMap{"pulumi.com/patchForce": pulumi.String("true")},
		},
		Type: pulumi.String(chart.LocalSecretType),
		Data: pulumi.StringMap{
			"ca.crt": component.Base64(issuer.authority.certificate), "tls.crt": component.Base64(pair.cert),
			"tls.key": component.Base64(pulumi.ToSecret(pair.key).(pulumi.StringOutput)),
		},
		// In mode inline the Secret is part of the machine configuration, and Talos makes only what is missing when it looks: a deletion at
		// the end of that run would take it away for long. With the cluster, it is deleted anyway.
	}, args.Child(c, pulumi.RetainOnDelete(true)))
	if err != nil {
		return nil, err
	}
	return []pulumi.Resource{secret}, nil
}
