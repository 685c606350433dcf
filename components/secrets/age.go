package secrets

import (
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
)

const (
	ageSecret = "sops-age"   // name of the Secret with the keys of age
	ageFile   = "age.agekey" // Flux's kustomize-controller reads keys of age from every name that ends in .agekey
)

// AgeKeys are the keys with which Flux decrypts what SOPS has encrypted.
type AgeKeys struct {
	Keys cluster.Secret // in the form of age-keygen's file; required
}

// provideAge creates the Secret that the decryption of a Kustomization refers to.
func (s *SecretsFoundation) provideAge(
	ctx *pulumi.Context, name string, namespace *v1.Namespace, args *SecretsFoundationArgs, opts pulumi.ResourceOption,
) error {
	if args.Age == nil {
		return nil
	}
	s.AgeSecret = ageSecret
	return s.provide(ctx, name+"-age", namespace, metav1.ObjectMetaArgs{
		Name: pulumi.String(ageSecret),
		// Flux uses a changed key at once, not at the next interval of each Kustomization.
		Labels: pulumi.StringMap{"reconcile.fluxcd.io/watch": pulumi.String("Enabled")},
	}, pulumi.StringMap{
		ageFile: hidden(args.Age.Keys),
	}, opts)
}
