// Package core is what a cluster has before anything that a person would call a workload: the definitions of the kinds
// that all charts use (CRDs), and cluster DNS, image mirror and certificates (CoreServices).
package core

import (
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/core/pins"
	"github.com/slipway-platform/slipway/internal/health/workloads"
	"github.com/slipway-platform/slipway/internal/helm"
)

// typeCoreServices is recorded in state; renaming it takes an alias.
const typeCoreServices = "slipway:core:CoreServices"

// The releases that Slipway installs and Flux can adopt.
const (
	CoreDNSName          = "coredns"
	CoreDNSNamespace     = "kube-system"
	SpegelName           = "spegel"
	SpegelNamespace      = "spegel"
	CertManagerName      = "cert-manager"
	CertManagerNamespace = "cert-manager"
)

// CoreServicesArgs say which core services a cluster gets.
type CoreServicesArgs struct {
	Cluster     string             // the cluster's name, for the report; required
	Kubeconfig  pulumi.StringInput // cluster-admin kubeconfig, YAML; secret; required
	CoreDNS     CoreDNS            // required
	Spegel      *Spegel            // nil means none
	CertManager *CertManager       // nil means none; its definitions must be there before it
	Timeout     time.Duration      // longest wait for what one release has brought to run; 0 means health.DefaultTimeout (10 min)

	KubernetesProvider pulumi.ProviderResource // required
	CommandProvider    pulumi.ProviderResource // required

	// DependsOn must be there before the first release is installed: the gate's probe.
	DependsOn []pulumi.Resource
	// DeletedWith takes the releases along when it is deleted, so that destroy needs no answering API; optional.
	DeletedWith pulumi.Resource
}

// Spegel serves images that one node has to all others. The machine configuration has to let containerd keep the layers
// it has unpacked.
type Spegel struct {
	Version string // of the chart; "" means pins.SpegelVersion
	Chart   string // oci:// reference without a tag; "" means pins.SpegelChart
}

// CertManager issues certificates. Issuers are Flux's affair.
type CertManager struct {
	Version    string // of the chart; "" means pins.CertManagerVersion
	Repository string // https URL of the chart repository; "" means pins.CertManagerRepository
}

// CoreServices are in place once all of their leaves are: their pods have been seen to run.
type CoreServices struct {
	pulumi.ResourceState

	coreDNS pulumi.Resource // the leaf that is there once names resolve in the cluster
	leaves  []pulumi.Resource
}

// NewCoreServices installs CoreDNS, and then Spegel and cert-manager side by side. Helm waits for none of them: behind each
// release stands a run of the probe, which says what it waits for and names the pod that does not run.
func NewCoreServices(ctx *pulumi.Context, name string, args *CoreServicesArgs, opts ...pulumi.ResourceOption) (*CoreServices, error) {
	if err := args.validate(); err != nil {
		return nil, fmt.Errorf("CoreServices %q: %w", name, err)
	}
	s := &CoreServices{}
	if err := ctx.RegisterComponentResource(typeCoreServices, name, s, opts...); err != nil {
		return nil, err
	}
	for _, install := range []func(*pulumi.Context, string, *CoreServicesArgs) error{s.installCoreDNS, s.installSpegel, s.installCertManager} {
		if err := install(ctx, name, args); err != nil {
			return nil, err
		}
	}
	return s, ctx.RegisterResourceOutputs(s, pulumi.Map{})
}

// Leaves are what others wait for: that each release has been seen to run.
func (s *CoreServices) Leaves() []pulumi.Resource { return slices.Clone(s.leaves) }

func (s *CoreServices) installCoreDNS(ctx *pulumi.Context, name string, args *CoreServicesArgs) error {
	var err error
	s.coreDNS, err = s.install(ctx, name+"-coredns", args, coreService{
		release: helm.ReleaseArgs{
			Name: CoreDNSName, Namespace: CoreDNSNamespace, Chart: "coredns",
			Version:    or(args.CoreDNS.Version, pins.CoreDNSVersion),
			Repository: or(args.CoreDNS.Repository, pins.CoreDNSRepository),
		},
		values: args.CoreDNS.values(), after: args.DependsOn,
	})
	return err
}

func (s *CoreServices) installSpegel(ctx *pulumi.Context, name string, args *CoreServicesArgs) error {
	if args.Spegel == nil {
		return nil
	}
	// It listens on a port of the node and mounts containerd's folders and socket, which Talos's default, baseline, forbids.
	namespace, err := s.namespace(ctx, name+"-spegel-namespace", SpegelNamespace, args, pulumi.StringMap{
		"pod-security.kubernetes.io/enforce": pulumi.String("privileged"),
		"pod-security.kubernetes.io/audit":   pulumi.String("privileged"),
		"pod-security.kubernetes.io/warn":    pulumi.String("privileged"),
	})
	if err != nil {
		return err
	}
	_, err = s.install(ctx, name+"-spegel", args, coreService{
		release: helm.ReleaseArgs{
			Name: SpegelName, Namespace: SpegelNamespace,
			Chart:   or(args.Spegel.Chart, pins.SpegelChart),
			Version: or(args.Spegel.Version, pins.SpegelVersion),
		},
		values: spegelValues(), after: []pulumi.Resource{namespace, s.coreDNS},
	})
	return err
}

func (s *CoreServices) installCertManager(ctx *pulumi.Context, name string, args *CoreServicesArgs) error {
	if args.CertManager == nil {
		return nil
	}
	namespace, err := s.namespace(ctx, name+"-cert-manager-namespace", CertManagerNamespace, args, nil)
	if err != nil {
		return err
	}
	_, err = s.install(ctx, name+"-cert-manager", args, coreService{
		release: helm.ReleaseArgs{
			Name: CertManagerName, Namespace: CertManagerNamespace, Chart: "cert-manager",
			Version:    or(args.CertManager.Version, pins.CertManagerVersion),
			Repository: or(args.CertManager.Repository, pins.CertManagerRepository),
		},
		values: certManagerValues(), after: []pulumi.Resource{namespace, s.coreDNS}, accepts: []workloads.Sample{anyCertificate()},
	})
	return err
}

func (s *CoreServices) namespace(ctx *pulumi.Context, name, namespace string, args *CoreServicesArgs, labels pulumi.StringMap) (*v1.Namespace, error) {
	return v1.NewNamespace(ctx, name, &v1.NamespaceArgs{
		Metadata: metav1.ObjectMetaArgs{Name: pulumi.String(namespace), Labels: labels},
	}, args.childOptions(s), pulumi.DependsOn(args.DependsOn))
}

func (a *CoreServicesArgs) childOptions(parent pulumi.Resource) pulumi.ResourceOption {
	opts := []pulumi.ResourceOption{pulumi.Parent(parent), pulumi.Provider(a.KubernetesProvider)}
	if a.DeletedWith != nil {
		opts = append(opts, pulumi.DeletedWith(a.DeletedWith))
	}
	return pulumi.Composite(opts...)
}

func (a *CoreServicesArgs) validate() error {
	if a == nil {
		return errors.New("args: missing; give CoreServicesArgs")
	}
	problems := []error{a.CoreDNS.validate()}
	if a.Cluster == "" {
		problems = append(problems, errors.New("cluster: missing; give the cluster's name"))
	}
	if a.Kubeconfig == nil {
		problems = append(problems, errors.New("kubeconfig: missing; give TalosCluster's"))
	}
	if a.Timeout < 0 {
		problems = append(problems, fmt.Errorf("timeout: %s is negative; give a duration such as 10m", a.Timeout))
	}
	if a.KubernetesProvider == nil {
		problems = append(problems, errors.New("kubernetesProvider: missing; give the provider of the cluster"))
	}
	if a.CommandProvider == nil {
		problems = append(problems, errors.New("commandProvider: missing; give one"))
	}
	return errors.Join(problems...)
}
