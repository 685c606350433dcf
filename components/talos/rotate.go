package talos

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumix"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/internal/rotate"
	"github.com/slipway-platform/slipway/internal/step"
)

// laterGenerations creates the machine secrets of each later generation of Talos's CA, after the first ones. Of these, only the CA and the
// client certificate that it has signed are used: all else comes from the first ones for ever.
func (b *builder) laterGenerations() ([]*machine.Secrets, error) {
	declared := b.Lifecycle.CertificateAuthorities.Talos
	all := []*machine.Secrets{b.secrets}
	for generation := 2; generation <= declared; generation++ {
		name := fmt.Sprintf("%s-secrets-%d", b.name, generation)
		hook, err := b.ctx.RegisterResourceHook(name, func(*pulumi.ResourceHookArgs) error {
			if !b.ctx.DryRun() || generation < declared {
				return nil
			}
			return b.ctx.Log.Info(fmt.Sprintf("generation %d of Talos's CA replaces the former one on all nodes before anything else is changed, "+
				"in three passes, without a reboot. Former copies of the talosconfig are refused afterwards", generation), nil)
		}, &pulumi.ResourceHookOptions{OnDryRun: true})
		if err != nil {
			return nil, err
		}
		next, err := b.newSecrets(name, pulumi.DependsOn([]pulumi.Resource{all[len(all)-1]}),
			pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{hook}}))
		if err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	return all, nil
}

// refuseLaterGeneration returns the hook that refuses to create the first machine secrets of a cluster whose stack file declares a later
// generation of a CA, in previews too: there is no cluster in which one CA could replace another.
func (b *builder) refuseLaterGeneration() ([]*pulumi.ResourceHook, error) {
	declared := b.Lifecycle.CertificateAuthorities.Talos
	if declared <= 1 {
		return nil, nil
	}
	hook, err := b.ctx.RegisterResourceHook(b.name+"-first-generation", func(*pulumi.ResourceHookArgs) error {
		return fmt.Errorf("lifecycle.certificateAuthorities.talos: is %d, and the cluster is new; remove the key: a cluster begins with 1",
			declared)
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	return []*pulumi.ResourceHook{hook}, err
}

// currentSecrets returns the machine secrets with the CA of the declared generation.
func (b *builder) currentSecrets() machine.MachineSecretsOutput {
	if len(b.generations) == 1 {
		return b.secrets.MachineSecrets
	}
	first, declared := b.secrets.MachineSecrets, b.generations[len(b.generations)-1].MachineSecrets
	return machine.MachineSecretsArgs{
		Certs: machine.CertificatesArgs{
			Etcd: first.Certs().Etcd(), K8s: first.Certs().K8s(), K8sAggregator: first.Certs().K8sAggregator(),
			K8sServiceaccount: first.Certs().K8sServiceaccount(), Os: declared.Certs().Os(),
		},
		Cluster: first.Cluster(), Secrets: first.Secrets(), Trustdinfo: first.Trustdinfo(),
	}.ToMachineSecretsOutput()
}

// rotate replaces Talos's CA in a running cluster. It comes before everything that uses the Talos API with the new credentials. With the
// first generation, there is nothing to replace, and no step: it returns no resource. It runs once for each generation. A preview shows the
// generation.
func (b *builder) rotate(after []pulumi.Resource) ([]pulumi.Resource, error) {
	if len(b.generations) == 1 {
		return nil, nil
	}
	nodes := turnNodes(b.Machines())
	authorities := pulumix.Val([]rotate.Authority(nil))
	for _, generation := range b.generations {
		ca, user := generation.MachineSecrets.Certs().Os(), clientConfiguration(generation)
		authorities = pulumix.Apply5(authorities, ca.Cert(), ca.Key(), user.ClientCertificate(), user.ClientKey(), withAuthority)
	}
	spec := pulumix.ApplyErr(authorities, func(authorities []rotate.Authority) (string, error) {
		return probe.Encode(&rotate.Spec{Cluster: b.Identity.Name, Nodes: nodes, Authorities: authorities})
	})
	run, err := step.New(b.ctx, b.name+"-rotate", step.Args{
		Subcommand: "rotate", Again: "rotate --done", Spec: pulumix.Cast[pulumi.StringOutput](spec),
		Timeout:  rotate.Longest(len(nodes)),
		Triggers: pulumi.Array{pulumi.Map{"talos": pulumi.Int(len(b.generations))}},
		Provider: b.args.CommandProvider, DependsOn: after,
	}, b.parent)
	return []pulumi.Resource{run}, err
}

// withAuthority returns authorities and a later one.
func withAuthority(former []rotate.Authority, certificate, key, clientCertificate, clientKey string) []rotate.Authority {
	return append(slices.Clone(former), rotate.Authority{
		Certificate: certificate, Key: key, ClientCertificate: clientCertificate, ClientKey: clientKey,
	})
}
