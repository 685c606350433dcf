// Package cilium installs Cilium, a cluster's CNI and replacement of kube-proxy, on Talos Linux.
package cilium

import (
	"errors"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/machineconfig"
	"github.com/slipway-platform/slipway/components/cilium/chart"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/helm"
)

// typeCiliumCore is part of the state: a rename needs Aliases.
const typeCiliumCore = "slipway:cilium:CiliumCore"

// ManifestName is the name of Cilium's manifest among the inline manifests of Talos.
const ManifestName = machineconfig.CiliumManifest

// CiliumCoreArgs are the arguments of a CiliumCore.
type CiliumCoreArgs struct {
	// InCluster and Kubeconfig tell where the release is installed; required in mode helm. Mode inline does not use them.
	component.InCluster
	Kubeconfig pulumi.StringInput // cluster-admin kubeconfig, YAML; secret

	// Renderer is a Kubernetes provider without a cluster, which renders the chart; required in mode inline. Mode helm does not use it.
	Renderer pulumi.ProviderResource

	Cluster *cluster.Cluster // the declared cluster; required. In a mesh, its CA signs Cilium's certificates

	TLSProvider pulumi.ProviderResource // required
}

// CiliumCore is Cilium, installed or, in mode inline, rendered for the machine configuration. It does not wait for Cilium's
// health: the gate does.
type CiliumCore struct {
	pulumi.ResourceState

	Version pulumi.StringOutput `pulumi:"version"` // version of the chart

	// InlineManifests are the objects for the control planes' cluster.inlineManifests, one YAML stream; secret, because it
	// contains private keys. Empty in mode helm.
	InlineManifests pulumi.StringOutput

	name         string
	values       chart.Values
	certificates map[string]any    // by their paths in the chart's values
	ofMesh       pulumi.StringMap  // PEM documents of the mesh's certificates, by their paths; only in mode inline
	checksum     string            // of the values
	leaves       []pulumi.Resource // what others wait for
}

// NewCiliumCore creates Cilium's certificates, which every later run keeps, and installs or renders Cilium:
//   - in mode helm, it installs the Helm release kube-system/cilium. The release is complete once the objects are applied. It
//     waits for no pod: on one node the second operator never starts, as intended. Call it after the cluster exists.
//   - in mode inline, it renders the same objects for the machine configuration. Call it before the cluster is created.
func NewCiliumCore(ctx *pulumi.Context, name string, args *CiliumCoreArgs, opts ...pulumi.ResourceOption) (*CiliumCore, error) {
	if err := args.validate(); err != nil {
		return nil, component.Failed(typeCiliumCore, name, err)
	}
	c := &CiliumCore{name: name, values: chart.Values{Cluster: args.Cluster}}
	checksum, err := checksumOf(c.values)
	if err != nil {
		return nil, component.Failed(typeCiliumCore, name, err)
	}
	c.checksum = checksum
	blank, err := renderBlank(ctx, c.values, args.Renderer)
	if err := component.Register(ctx, typeCiliumCore, name, err, nil, c, opts...); err != nil {
		return nil, err
	}
	issuer, err := newIssuer(ctx, name, args.authority(), component.Child(c, args.TLSProvider))
	if err != nil {
		return nil, err
	}
	if c.values.Cilium.Inline() {
		err = c.render(issuer, blank)
	} else {
		err = c.install(ctx, args, issuer)
	}
	if err != nil {
		return nil, err
	}
	return c, ctx.RegisterResourceOutputs(c, pulumi.Map{"version": c.Version})
}

// Leaves returns the resources that others wait for: the release and, if an engine owns it, its values. In mode inline there is no release,
// because Cilium is part of the machine configuration.
func (c *CiliumCore) Leaves() []pulumi.Resource { return slices.Clone(c.leaves) }

// issue creates the certificates that the chart takes, and returns their PEM documents.
func (c *CiliumCore) issue(issuer issuer) (pulumi.StringMap, error) {
	documents, err := issuer.issueAll(c.values.Certificates())
	c.certificates = map[string]any{}
	for path, document := range documents {
		c.certificates[path] = component.Base64(document)
	}
	return documents, err
}

func (c *CiliumCore) install(ctx *pulumi.Context, args *CiliumCoreArgs, issuer issuer) error {
	if _, err := c.issue(issuer); err != nil {
		return err
	}
	ofMesh, err := issuer.issueAll(c.values.MeshCertificates())
	if err != nil {
		return err
	}
	secrets, err := c.provideMesh(ctx, args.InCluster, ofMesh)
	if err != nil {
		return err
	}
	values, err := c.values.Tree(c.certificates)
	if err != nil {
		return err
	}
	own, err := c.values.Own(c.certificates)
	if err != nil {
		return err
	}
	release, err := helm.NewRelease(ctx, c.name+"-release", &helm.ReleaseArgs{
		Service: c.values.Cilium.Service(), Values: values, Own: own, Kubeconfig: args.Kubeconfig, OwnedValues: args.OwnedValues,
		Git: args.Cluster.InGit(chart.ReleaseName), Renderer: args.KubernetesProvider,
		// A release that is no longer declared has been adopted by Flux, or its objects are in the machine configuration. An
		// uninstallation would remove the network of a running cluster. With the cluster, the release is deleted anyway.
	}, args.Child(c, pulumi.RetainOnDelete(true), pulumi.DependsOn(secrets)))
	if err != nil {
		return err
	}
	c.Version, c.leaves = release.Version, release.Leaves()
	c.InlineManifests = pulumi.String("").ToStringOutput()
	return nil
}

func (a *CiliumCoreArgs) validate() error {
	if a == nil || a.Cluster == nil {
		return errors.New("cluster: is missing; pass the declared cluster")
	}
	problems := []error{a.validateMode()}
	if a.TLSProvider == nil {
		problems = append(problems, errors.New("tlsProvider: is missing; pass an explicit provider"))
	}
	if a.Cluster.Mesh.IsMember() && !a.Cluster.MeshCA.IsSet() {
		problems = append(problems, errors.New("cluster.meshCA: is missing; the clusters of a mesh share it"))
	}
	return errors.Join(problems...)
}

// validateMode returns the problems of the arguments that only one of the modes requires.
func (a *CiliumCoreArgs) validateMode() error {
	if a.Cluster.Cilium.Inline() {
		if a.Renderer == nil {
			return errors.New("renderer: is missing; pass a Kubernetes provider without a cluster")
		}
		return nil
	}
	problems := []error{a.InCluster.Validate()}
	if a.Kubeconfig == nil {
		problems = append(problems, errors.New("kubeconfig: is missing; pass TalosCluster's"))
	}
	return errors.Join(problems...)
}
