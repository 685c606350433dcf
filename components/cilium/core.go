// Package cilium is a cluster's network core: Cilium, replacing kube-proxy, on Talos Linux.
package cilium

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/helm"
)

// typeCiliumCore is recorded in state; renaming it takes an alias.
const typeCiliumCore = "slipway:cilium:CiliumCore"

// The release that Slipway installs and Flux can adopt.
const (
	ReleaseName       = "cilium"
	ReleaseNamespace  = "kube-system"
	DefaultRepository = "https://helm.cilium.io/"

	chartName = "cilium"
)

// CiliumCoreArgs are the choices and the things a cluster's Cilium is made with.
type CiliumCoreArgs struct {
	Values Values // required
	Mode   Mode   // "" means ModeHelm

	Version    string // chart version; "" means ChartVersion
	Repository string // https URL of the chart repository; "" means DefaultRepository

	// Authority signs Cilium's certificates; nil means a CA of the cluster's own. Changing it re-issues them.
	Authority *Authority

	KubernetesVersion string // that ModeInline renders the chart for, such as v1.35.8; required there, unused in ModeHelm

	// KubernetesProvider is the cluster's; required. ModeInline, which comes before the cluster, has it render the chart
	// and takes one that knows no cluster.
	KubernetesProvider pulumi.ProviderResource
	TLSProvider        pulumi.ProviderResource // required

	// Kubeconfig is the cluster's, YAML; secret. With it a release that an interrupted run left half-installed makes way;
	// optional, and for ModeHelm only.
	Kubeconfig pulumi.StringInput

	// DependsOn must be there before the release is installed: the cluster's API, by leaf, and the Gateway API's CRDs.
	DependsOn []pulumi.Resource
	// DeletedWith takes the release along when it is deleted, so that destroy needs no answering API; optional.
	DeletedWith pulumi.Resource
}

// CiliumCore is the network core, installed or, in ModeInline, ready to be. That says nothing about its health: the gate
// judges that.
type CiliumCore struct {
	pulumi.ResourceState

	Version pulumi.StringOutput `pulumi:"version"` // of the chart

	// InlineManifests are the objects for the control planes' cluster.inlineManifests, one YAML stream; secret, for there
	// are private keys in it. Empty in ModeHelm.
	InlineManifests pulumi.StringOutput

	name    string
	mode    Mode
	values  Values
	release *helm.Release // nil in ModeInline
}

// NewCiliumCore makes Cilium's certificates, which stay the same from one `up` to the next, and with them
//   - in ModeHelm installs the Helm release kube-system/cilium. That returns once the objects are applied and waits for
//     no pod: on one node the second operator never starts, and that is as it should be. It is called after the cluster
//     is there;
//   - in ModeInline renders the same objects for the machine configuration. It is called before the cluster is made.
func NewCiliumCore(ctx *pulumi.Context, name string, args *CiliumCoreArgs, opts ...pulumi.ResourceOption) (*CiliumCore, error) {
	if err := args.validate(); err != nil {
		return nil, fmt.Errorf("CiliumCore %q: %w", name, err)
	}
	c := &CiliumCore{name: name, mode: or(args.Mode, ModeHelm), values: args.Values}
	blank, err := args.renderBlank(ctx)
	if err != nil {
		return nil, fmt.Errorf("CiliumCore %q: %w", name, err)
	}
	if err := ctx.RegisterComponentResource(typeCiliumCore, name, c, opts...); err != nil {
		return nil, err
	}
	documents, err := c.issueCertificates(ctx, args)
	if err != nil {
		return nil, err
	}
	if c.mode == ModeInline {
		c.inline(args, blank, documents)
	} else if err := c.install(ctx, args, documents); err != nil {
		return nil, err
	}
	return c, ctx.RegisterResourceOutputs(c, pulumi.Map{"version": c.Version})
}

// Leaves are what others wait for: the release. In ModeInline there are none, for the machines bring Cilium along.
func (c *CiliumCore) Leaves() []pulumi.Resource {
	if c.release == nil {
		return nil
	}
	return []pulumi.Resource{c.release}
}

// issueCertificates returns the PEM documents by the path where the chart looks for each; private keys are secret.
func (c *CiliumCore) issueCertificates(ctx *pulumi.Context, args *CiliumCoreArgs) (pulumi.StringMap, error) {
	issuer, err := newIssuer(ctx, c.name, args.Authority, pulumi.Composite(pulumi.Parent(c), pulumi.Provider(args.TLSProvider)))
	if err != nil {
		return nil, err
	}
	documents := pulumi.StringMap{pathCA: issuer.authority.Certificate}
	for _, what := range args.Values.certificates() {
		pair, err := issuer.issue(what)
		if err != nil {
			return nil, err
		}
		documents[what.path+".cert"], documents[what.path+".key"] = pair.cert, pulumi.ToSecret(pair.key).(pulumi.StringOutput)
	}
	return documents, nil
}

func (c *CiliumCore) install(ctx *pulumi.Context, args *CiliumCoreArgs, documents pulumi.StringMap) error {
	values, err := asTree(args.Values.chart())
	if err != nil {
		return err
	}
	certificates := map[string]any{}
	for path, document := range documents {
		certificates[path] = encoded(document)
	}
	opts := []pulumi.ResourceOption{
		pulumi.Parent(c), pulumi.Provider(args.KubernetesProvider), pulumi.DependsOn(args.DependsOn),
		// A release that is no longer declared belongs to Flux or to the machines by then: uninstalled, it would take the
		// network of a running cluster along. With the cluster it goes anyway.
		pulumi.RetainOnDelete(true),
	}
	if args.DeletedWith != nil {
		opts = append(opts, pulumi.DeletedWith(args.DeletedWith))
	}
	c.release, err = helm.NewRelease(ctx, c.name+"-release", &helm.ReleaseArgs{
		Name:       ReleaseName,
		Namespace:  ReleaseNamespace,
		Chart:      chartName,
		Version:    or(args.Version, ChartVersion),
		Repository: or(args.Repository, DefaultRepository),
		Values:     toMap(place(values, certificates)),
		Kubeconfig: args.Kubeconfig,
	}, opts...)
	if err != nil {
		return err
	}
	c.Version = c.release.Version
	c.InlineManifests = pulumi.String("").ToStringOutput()
	return nil
}

func (a *CiliumCoreArgs) validate() error {
	if a == nil {
		return errors.New("args: missing; give CiliumCoreArgs")
	}
	problems := []error{a.Values.Validate(), choice("mode", a.Mode, ModeHelm, ModeInline)}
	if a.Mode == ModeInline && a.KubernetesVersion == "" {
		problems = append(problems, errors.New("kubernetesVersion: missing; give the cluster's, which the chart is rendered for"))
	}
	if a.KubernetesProvider == nil {
		problems = append(problems, errors.New("kubernetesProvider: missing; give the cluster's, or for mode inline one without a cluster"))
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

func or[T ~string](value, fallback T) T {
	if value == "" {
		return fallback
	}
	return value
}
