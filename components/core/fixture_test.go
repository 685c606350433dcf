package core_test

import (
	"testing"

	"github.com/pulumi/pulumi-command/sdk/go/command"
	"github.com/pulumi/pulumi-command/sdk/go/command/local"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/core"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const (
	releaseType   = "kubernetes:helm.sh/v3:Release"
	namespaceType = "kubernetes:core/v1:Namespace"
	commandType   = "command:local:Command"
	kubeconfig    = "client-key-data: c2VjcmV0"
	report        = `{"kind":"crds"}`
)

// chain is a recorded run. Other resources replace those that the components wait for, and those that wait for the components.
type chain struct {
	mocks.Recorder
	model *cluster.Cluster // the declared cluster; nil means that of Pulumi.infra.yaml

	commands, kubernetes pulumi.ProviderResource
	bootstrap, gate      pulumi.Resource
}

// run registers providers, a bootstrap and a gate, and then calls build.
func (c *chain) run(t *testing.T, build func(ctx *pulumi.Context) error) error {
	t.Helper()
	if c.model == nil {
		c.model = clusters.Infra(t)
	}
	c.OnResource = func(reg mocks.Registration) (resource.PropertyMap, error) {
		if reg.Type != commandType {
			return nil, nil
		}
		return resource.PropertyMap{"stdout": resource.MakeSecret(resource.NewProperty("table\n" + report + "\n"))}, nil
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

// next registers a command with the name next, which waits for the leaves.
func (c *chain) next(ctx *pulumi.Context, leaves []pulumi.Resource) error {
	_, err := local.NewCommand(ctx, "next", &local.CommandArgs{}, pulumi.Provider(c.commands), pulumi.DependsOn(leaves))
	return err
}

func (c *chain) lifetime() component.Lifetime {
	return component.Lifetime{DependsOn: []pulumi.Resource{c.gate}, DeletedWith: c.bootstrap}
}

func (c *chain) steps() component.Steps {
	return component.Steps{Name: c.model.Identity.Name, Kubeconfig: pulumi.String(kubeconfig), CommandProvider: c.commands}
}

func (c *chain) crds() *core.CRDsArgs {
	return &core.CRDsArgs{Lifetime: c.lifetime(), Steps: c.steps(), Sets: c.model.CRDs.Installed()}
}

func (c *chain) services() *core.CoreServicesArgs {
	return &core.CoreServicesArgs{
		InCluster: component.InCluster{Lifetime: c.lifetime(), KubernetesProvider: c.kubernetes}, Steps: c.steps(),
		Services: c.model.Services(), Timeout: c.model.Readiness.Timeout.Duration,
	}
}
