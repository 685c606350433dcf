package core_test

import (
	"net/netip"
	"testing"

	"github.com/pulumi/pulumi-command/sdk/go/command"
	"github.com/pulumi/pulumi-command/sdk/go/command/local"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/core"
	"github.com/slipway-platform/slipway/components/core/pins"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const (
	releaseType = "kubernetes:helm.sh/v3:Release"
	commandType = "command:local:Command"
	kubeconfig  = "client-key-data: c2VjcmV0"
)

// chain is a recorded run with stand-ins for what is before the components.
type chain struct {
	mocks.Recorder
	commands, kubernetes pulumi.ProviderResource
	bootstrap, gate      pulumi.Resource
}

// run registers providers, a bootstrap and a gate, and then what build makes of them.
func (c *chain) run(t *testing.T, build func(ctx *pulumi.Context) error) error {
	t.Helper()
	c.OnResource = func(reg mocks.Registration) (resource.PropertyMap, error) {
		if reg.Type != commandType {
			return nil, nil
		}
		return resource.PropertyMap{"stdout": resource.MakeSecret(resource.NewProperty("table\n" + `{"kind":"crds"}` + "\n"))}, nil
	}
	return c.Run(func(ctx *pulumi.Context) error {
		var err error
		if c.commands, err = command.NewProvider(ctx, "command", &command.ProviderArgs{}); err != nil {
			return err
		}
		if c.kubernetes, err = kubernetes.NewProvider(ctx, "kubernetes", &kubernetes.ProviderArgs{}); err != nil {
			return err
		}
		if c.bootstrap, err = local.NewCommand(ctx, "bootstrap", &local.CommandArgs{}, pulumi.Provider(c.commands)); err != nil {
			return err
		}
		if c.gate, err = local.NewCommand(ctx, "gate", &local.CommandArgs{}, pulumi.Provider(c.commands)); err != nil {
			return err
		}
		return build(ctx)
	})
}

func (c *chain) crds() *core.CRDsArgs {
	return &core.CRDsArgs{
		Cluster: "infra", Kubeconfig: pulumi.String(kubeconfig),
		Sources:         []core.CRDSource{{Set: pins.GatewayAPI}, {Set: pins.CloudNativePG, Version: "1.28.1"}},
		CommandProvider: c.commands, DependsOn: []pulumi.Resource{c.gate}, DeletedWith: c.bootstrap,
	}
}

func (c *chain) services() *core.CoreServicesArgs {
	return &core.CoreServicesArgs{
		Cluster: "infra",
		CoreDNS: core.CoreDNS{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.245.0.0/16")}},
		Spegel:  &core.Spegel{}, CertManager: &core.CertManager{},
		Kubeconfig:         pulumi.String(kubeconfig),
		KubernetesProvider: c.kubernetes, CommandProvider: c.commands, DependsOn: []pulumi.Resource{c.gate}, DeletedWith: c.bootstrap,
	}
}
