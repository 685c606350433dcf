// Package handovertest runs programs with a handover for the tests of both engines.
package handovertest

import (
	"github.com/pulumi/pulumi-command/sdk/go/command"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/handover"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const (
	// Kubeconfig is the secret kubeconfig.
	Kubeconfig = "KUBECONFIG-MARKER"
	// Command is the type of the probe's runs.
	Command = "command:local:Command"

	stdout = "The engine has taken over.\n" + report + "\n"
	report = `{"kind":"handover","cluster":"infra","outcome":"open","revision":"refs/heads/main@sha1:abc"}`
)

// Run registers a handover after the resource gate, which stands for the gate's probe and for the cluster, and the resource next after it.
// Mocks record inputs and no outputs, so the handover's outputs are inputs of the resource reader.
func Run(
	rec *mocks.Recorder,
	register func(ctx *pulumi.Context, in component.InCluster, steps component.Steps) (*handover.GitOpsHandover, error),
) error {
	rec.OnResource = func(reg mocks.Registration) (resource.PropertyMap, error) {
		if reg.Type != Command {
			return nil, nil
		}
		return resource.PropertyMap{"stdout": resource.MakeSecret(resource.NewProperty(stdout))}, nil
	}
	return rec.Run(func(ctx *pulumi.Context) error {
		kube, err := kubernetes.NewProvider(ctx, "kube", &kubernetes.ProviderArgs{})
		if err != nil {
			return err
		}
		commands, err := command.NewProvider(ctx, "commands", nil)
		if err != nil {
			return err
		}
		gate, err := command.NewProvider(ctx, "gate", nil)
		if err != nil {
			return err
		}
		made, err := register(ctx, component.InCluster{
			Lifetime: component.Lifetime{DependsOn: []pulumi.Resource{gate}, DeletedWith: gate}, KubernetesProvider: kube,
		}, component.Steps{
			Name: "infra", Kubeconfig: pulumi.ToSecret(pulumi.String(Kubeconfig)).(pulumi.StringOutput), CommandProvider: commands,
		})
		if err != nil {
			return err
		}
		made.Leaves()[0] = nil // the slice is the caller's own
		outputs := &kubernetes.ProviderArgs{Context: made.Revision, Cluster: made.Report}
		if _, err = kubernetes.NewProvider(ctx, "reader", outputs); err != nil {
			return err
		}
		_, err = kubernetes.NewProvider(ctx, "next", &kubernetes.ProviderArgs{}, pulumi.DependsOn(made.Leaves()))
		return err
	})
}
