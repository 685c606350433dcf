package secrets

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi-tls/sdk/v5/go/tls"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/service"
	"github.com/slipway-platform/slipway/internal/health/workloads"
)

const (
	sealingKey   = "sealed-secrets-key"                           // what the names of the keys' Secrets begin with
	sealingLabel = "sealedsecrets.bitnami.com/sealed-secrets-key" // the controller reads Secrets with this label and the value active

	sealingBits  = 4096          // of a key, as the controller makes its own
	sealingHours = 10 * 365 * 24 // validity of a certificate, likewise; kubeseal refuses an expired one, and the key stays readable
)

// SealedSecrets is the controller of Sealed Secrets, and the keys that it decrypts with.
type SealedSecrets struct {
	Settings    cluster.SealedSecrets   // required
	Keys        cluster.SealingKeys     // the given keys, if any
	TLSProvider pulumi.ProviderResource // required if the stack makes a key
}

// sealingPair is a registered key pair.
type sealingPair struct {
	certificate pulumi.StringOutput // PEM
	secret      pulumi.Resource
	made        pulumi.Resource // the certificate, if the stack has made it
}

func (p *SealedSecrets) validate() error {
	pairs := p.Settings.KeyPairs
	given := p.Keys.Key.IsSet()
	switch {
	case pairs == nil || given && len(p.Keys.Pairs()) == 0 || !given && *pairs == 0:
		return errors.New("sealedSecrets: is incomplete; pass the cluster's section and its keys, which are checked")
	case *pairs > 0 && p.TLSProvider == nil:
		return errors.New("sealedSecrets.tlsProvider: is missing; pass an explicit provider")
	}
	return nil
}

// provide creates the keys, and then installs the controller, which without a key would make its own.
func (p *SealedSecrets) provide(ctx *pulumi.Context, name string, s *SecretsFoundation, args *SecretsFoundationArgs) error {
	var made, given []sealingPair
	for i := range *p.Settings.KeyPairs {
		pair, err := p.makeKey(ctx, name, s, args, i+1, made)
		if err != nil {
			return err
		}
		made = append(made, pair)
	}
	for _, pair := range p.Keys.Pairs() {
		one, err := s.sealingSecret(ctx, name, args, pair.Name(),
			pulumi.String(pair.Certificate).ToStringOutput(), pulumi.String(pair.Key).ToStringOutput())
		if err != nil {
			return err
		}
		given = append(given, one)
	}
	if p.Keys.Key.IsSet() {
		s.SealedSecretsCert = given[0].certificate
	} else {
		s.SealedSecretsCert = made[len(made)-1].certificate
	}
	pairs := slices.Concat(made, given)
	after := slices.Clone(args.Services)
	for _, pair := range pairs {
		after = append(after, pair.secret)
	}
	probe, err := s.install(ctx, name+"-sealed-secrets", args, &service.Args{
		Service: p.Settings.Service(), After: after,
		// The controller reads its keys only when it starts.
		Reads: checksum(pairs), PodAnnotations: "podAnnotations",
	})
	if err != nil {
		return err
	}
	unsealed, err := p.unseal(ctx, name, s, args, checksum(pairs), probe)
	if err != nil {
		return err
	}
	s.leaves = append(s.leaves, unsealed)
	return nil
}

// unseal registers a SealedSecret for the newest certificate, and the probe that waits until the controller has decrypted it. The probe
// runs again when a key was added: a key that the controller does not use would show only when a Secret is missing.
func (p *SealedSecrets) unseal(
	ctx *pulumi.Context, name string, s *SecretsFoundation, args *SecretsFoundationArgs, keys pulumi.StringInput, controller pulumi.Resource,
) (pulumi.Resource, error) {
	data := s.SealedSecretsCert.ToStringOutput().ApplyT(func(certificate string) (string, error) {
		return seal(certificate, cluster.SealedSecretsNamespace, probeName, "works")
	}).(pulumi.StringOutput)
	sealed, err := custom(ctx, name+"-sealed-secrets-sample", "bitnami.com/v1alpha1", "SealedSecret", metav1.ObjectMetaArgs{
		Name: pulumi.String(probeName), Namespace: pulumi.String(cluster.SealedSecretsNamespace),
	}, pulumi.Map{"encryptedData": pulumi.Map{"value": data}}, args.Child(s, pulumi.DependsOn([]pulumi.Resource{controller})))
	if err != nil {
		return nil, err
	}
	return service.Await(ctx, name+"-sealed-secrets-sample-probe", &service.Args{
		InCluster: args.InCluster, Steps: args.Steps, Service: p.Settings.Service(), Timeout: args.Timeout, Reads: keys,
		After: []pulumi.Resource{sealed},
	}, workloads.Awaited{
		Group: "bitnami.com", Version: "v1alpha1", Resource: "sealedsecrets", Kind: "SealedSecret",
		Namespace: cluster.SealedSecretsNamespace, Name: probeName, Condition: "Synced",
	}, s)
}

// makeKey makes the stack's key pair of a number. The key stays in the state, protected: with the key, everything sealed for it is lost. It
// is made after the earlier pairs, because the controller offers the certificate that is valid from the latest time.
func (p *SealedSecrets) makeKey(
	ctx *pulumi.Context, name string, s *SecretsFoundation, args *SecretsFoundationArgs, number int, before []sealingPair,
) (sealingPair, error) {
	id := fmt.Sprint(number)
	var after []pulumi.Resource
	for _, pair := range before {
		after = append(after, pair.made)
	}
	key, err := tls.NewPrivateKey(ctx, name+"-sealing-key-"+id, &tls.PrivateKeyArgs{
		Algorithm: pulumi.String("RSA"), RsaBits: pulumi.Int(sealingBits),
	}, component.Child(s, p.TLSProvider, pulumi.Protect(true), pulumi.DependsOn(after)))
	if err != nil {
		return sealingPair{}, err
	}
	certificate, err := tls.NewSelfSignedCert(ctx, name+"-sealing-key-"+id, &tls.SelfSignedCertArgs{
		PrivateKeyPem:       key.PrivateKeyPem,
		Subject:             tls.SelfSignedCertSubjectArgs{CommonName: pulumi.String("Sealed Secrets of " + args.Name)},
		ValidityPeriodHours: pulumi.Int(sealingHours),
		AllowedUses:         pulumi.ToStringArray([]string{"data_encipherment", "key_encipherment"}),
	}, component.Child(s, p.TLSProvider))
	if err != nil {
		return sealingPair{}, err
	}
	pair, err := s.sealingSecret(ctx, name, args, id, certificate.CertPem, key.PrivateKeyPem)
	pair.made = certificate
	return pair, err
}

// sealingSecret registers the Secret of a key pair in the controller's namespace.
func (s *SecretsFoundation) sealingSecret(
	ctx *pulumi.Context, name string, args *SecretsFoundationArgs, id string, certificate, key pulumi.StringOutput,
) (sealingPair, error) {
	secret, err := s.secret(ctx, name, pulumi.String(cluster.SealedSecretsNamespace), firstSecret{
		suffix: "-sealing-key-" + id, name: sealingKey + "-" + id, kind: "kubernetes.io/tls",
		labels: pulumi.StringMap{sealingLabel: pulumi.String("active")},
		data: pulumi.StringMap{
			"tls.crt": component.Base64(certificate), "tls.key": component.Base64(pulumi.ToSecret(key).(pulumi.StringOutput)),
		},
	}, args.Child(s))
	return sealingPair{certificate: certificate, secret: secret}, err
}

// checksum returns a checksum of the certificates, in any order.
func checksum(pairs []sealingPair) pulumi.StringOutput {
	var certificates pulumi.StringArray
	for _, pair := range pairs {
		certificates = append(certificates, pair.certificate)
	}
	return certificates.ToStringArrayOutput().ApplyT(func(all []string) string {
		return fingerprint(slices.Sorted(slices.Values(all))...)
	}).(pulumi.StringOutput)
}

// fingerprint returns a part of a checksum of texts.
func fingerprint(texts ...string) string {
	return cluster.Checksum(strings.Join(texts, "\x00"))
}
