// Package cilium is a cluster's network core: Cilium, replacing kube-proxy, on Talos Linux.
package cilium

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/helm"
)

// typeCiliumCore is recorded in state; renaming it takes an alias.
const typeCiliumCore = "slipway:cilium:CiliumCore"

// The release that Slipway installs and Flux can adopt.
const (
	ReleaseName       = "cilium"
	ReleaseNamespace  = "kube-system"
	DefaultRepository = "https://helm.cilium.io/"
)

// CiliumCoreArgs are the choices and the things a cluster's Cilium is made with.
type CiliumCoreArgs struct {
	Values Values // required

	Version    string // chart version; "" means ChartVersion
	Repository string // https URL of the chart repository; "" means DefaultRepository

	// Authority signs Cilium's certificates; nil means a CA of the cluster's own. Changing it re-issues them.
	Authority *Authority

	KubernetesProvider pulumi.ProviderResource // required
	TLSProvider        pulumi.ProviderResource // required

	// DependsOn must be there before the release is installed: the cluster's API, by leaf.
	DependsOn []pulumi.Resource
	// DeletedWith takes the release along when it is deleted, so that destroy needs no answering API; optional.
	DeletedWith pulumi.Resource
}

// CiliumCore is the installed network core. That it is installed says nothing about its health: the gate judges that.
type CiliumCore struct {
	pulumi.ResourceState

	Version pulumi.StringOutput `pulumi:"version"` // of the chart

	release *helm.Release
}

// NewCiliumCore installs Cilium as the Helm release kube-system/cilium, with certificates that stay the same from one
// `up` to the next. It returns once the objects are applied and waits for no pod: on one node the second operator
// never starts, and that is as it should be.
func NewCiliumCore(ctx *pulumi.Context, name string, args *CiliumCoreArgs, opts ...pulumi.ResourceOption) (*CiliumCore, error) {
	if err := args.validate(); err != nil {
		return nil, fmt.Errorf("CiliumCore %q: %w", name, err)
	}
	c := &CiliumCore{}
	if err := ctx.RegisterComponentResource(typeCiliumCore, name, c, opts...); err != nil {
		return nil, err
	}
	values, err := c.values(ctx, name, args)
	if err != nil {
		return nil, err
	}
	if err := c.install(ctx, name, args, values); err != nil {
		return nil, err
	}
	c.Version = c.release.Version
	return c, ctx.RegisterResourceOutputs(c, pulumi.Map{"version": c.Version})
}

// Release is the leaf that others wait for.
func (c *CiliumCore) Release() pulumi.Resource { return c.release }

// values are the chart's values, with the certificates as outputs in them.
func (c *CiliumCore) values(ctx *pulumi.Context, name string, args *CiliumCoreArgs) (pulumi.Map, error) {
	opts := pulumi.Composite(pulumi.Parent(c), pulumi.Provider(args.TLSProvider))
	authority := args.Authority
	if authority == nil {
		own, err := newAuthority(ctx, name, opts)
		if err != nil {
			return nil, err
		}
		authority = &own
	}
	certs := certificates{ctx: ctx, name: name, authority: *authority, opts: opts}
	server, err := certs.issue("hubble-server", hubbleServerName(args.Values.ClusterName), "server_auth")
	if err != nil {
		return nil, err
	}
	relay, err := certs.issue("hubble-relay", hubbleRelayName, "client_auth")
	if err != nil {
		return nil, err
	}
	tree, err := asTree(args.Values.chart())
	if err != nil {
		return nil, err
	}
	return toMap(merge(tree, certificateTree(
		encoded(authority.Certificate),
		encoded(server.cert), pulumi.ToSecret(encoded(server.key)),
		encoded(relay.cert), pulumi.ToSecret(encoded(relay.key)),
	))), nil
}

func (c *CiliumCore) install(ctx *pulumi.Context, name string, args *CiliumCoreArgs, values pulumi.Map) error {
	opts := []pulumi.ResourceOption{
		pulumi.Parent(c), pulumi.Provider(args.KubernetesProvider), pulumi.DependsOn(args.DependsOn),
	}
	if args.DeletedWith != nil {
		opts = append(opts, pulumi.DeletedWith(args.DeletedWith))
	}
	var err error
	c.release, err = helm.NewRelease(ctx, name+"-release", &helm.ReleaseArgs{
		Name:       ReleaseName,
		Namespace:  ReleaseNamespace,
		Chart:      "cilium",
		Version:    or(args.Version, ChartVersion),
		Repository: or(args.Repository, DefaultRepository),
		Values:     values,
		SkipAwait:  true,
	}, opts...)
	return err
}

func (a *CiliumCoreArgs) validate() error {
	if a == nil {
		return errors.New("args: missing; give CiliumCoreArgs")
	}
	problems := []error{a.Values.validate()}
	if a.KubernetesProvider == nil {
		problems = append(problems, errors.New("kubernetesProvider: missing; give the provider of the cluster"))
	}
	if a.TLSProvider == nil {
		problems = append(problems, errors.New("tlsProvider: missing; give one"))
	}
	if a.Authority != nil && (a.Authority.Certificate == nil || a.Authority.PrivateKey == nil) {
		problems = append(problems, errors.New("authority: half given; give the certificate and its private key, or neither"))
	}
	return errors.Join(problems...)
}

// encoded is a PEM document in base64, as the chart wants it; secret if the document is.
func encoded(pem pulumi.StringInput) pulumi.StringOutput {
	return pem.ToStringOutput().ApplyT(func(pem string) string {
		return base64.StdEncoding.EncodeToString([]byte(pem))
	}).(pulumi.StringOutput)
}

// toMap turns a tree into inputs leaf by leaf, so that only the leaves that are secret or unknown are shown as such.
func toMap(tree map[string]any) pulumi.Map {
	inputs := pulumi.Map{}
	for key, value := range tree {
		inputs[key] = toInput(value)
	}
	return inputs
}

func toInput(value any) pulumi.Input {
	switch value := value.(type) {
	case pulumi.Input:
		return value
	case map[string]any:
		return toMap(value)
	case []any:
		inputs := pulumi.Array{}
		for _, element := range value {
			inputs = append(inputs, toInput(element))
		}
		return inputs
	}
	return pulumi.Any(value)
}

func or(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
