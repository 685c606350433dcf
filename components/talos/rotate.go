package talos

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumix"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/nodes/rotate"
	"github.com/slipway-platform/slipway/internal/probe"
)

// replaceable is a CA that a higher generation in the stack file replaces.
type replaceable struct {
	of         rotate.Subject
	key        string // of the stack file, in lifecycle.certificateAuthorities
	suffix     string // of the names of resources
	generation func(cluster.CertificateAuthorities) int
	effect     string // of a new generation, besides that all nodes have it
}

// replaceables lists the CAs in the order in which they are replaced: the run for Kubernetes' has the new credentials of Talos's.
var replaceables = []replaceable{
	{rotate.Talos, "talos", "", func(a cluster.CertificateAuthorities) int { return a.Talos },
		"Former copies of the talosconfig are refused afterwards"},
	{rotate.Kubernetes, "kubernetes", "-kubernetes", func(a cluster.CertificateAuthorities) int { return a.Kubernetes },
		"Every Deployment, DaemonSet and StatefulSet whose pods use the Kubernetes API is restarted, one after the other, each by its own " +
			"strategy. Former copies of the kubeconfig are refused afterwards"},
}

// ofGeneration returns the name of a resource of which each generation has its own. The first has none in its name.
func ofGeneration(name string, number int) string {
	if number == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, number)
}

// makeGenerations creates the machine secrets of each later generation of the CAs, after the first ones. Of these, only one CA is used, and
// of Talos's the client certificate that it has signed: all else comes from the first ones for ever.
func (b *builder) makeGenerations() error {
	b.generations = map[rotate.Subject][]*machine.Secrets{}
	for _, ca := range replaceables {
		all, err := b.laterGenerations(ca)
		if err != nil {
			return err
		}
		b.generations[ca.of] = all
	}
	return nil
}

func (b *builder) laterGenerations(ca replaceable) ([]*machine.Secrets, error) {
	declared := ca.generation(b.Lifecycle.CertificateAuthorities)
	all := []*machine.Secrets{b.secrets}
	for generation := 2; generation <= declared; generation++ {
		name := ofGeneration(b.name+ca.suffix+"-secrets", generation)
		hook, err := b.ctx.RegisterResourceHook(name, func(*pulumi.ResourceHookArgs) error {
			if !b.ctx.DryRun() || generation < declared {
				return nil
			}
			return b.ctx.Log.Info(fmt.Sprintf("generation %d of %s's CA replaces the former one on all nodes before anything else is changed, "+
				"in three passes, without a reboot. %s", generation, ca.of, ca.effect), nil)
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

// declared returns the machine secrets of the declared generation of a CA.
func (b *builder) declared(of rotate.Subject) *machine.Secrets {
	all := b.generations[of]
	return all[len(all)-1]
}

// refuseLaterGeneration returns the hook that refuses to create the first machine secrets of a cluster whose stack file declares a later
// generation of a CA, in previews too: there is no cluster in which one CA could replace another.
func (b *builder) refuseLaterGeneration() ([]*pulumi.ResourceHook, error) {
	var problems []string
	for _, ca := range replaceables {
		if declared := ca.generation(b.Lifecycle.CertificateAuthorities); declared > 1 {
			problems = append(problems, fmt.Sprintf("lifecycle.certificateAuthorities.%s: is %d, and the cluster is new; remove the key: "+
				"a cluster begins with 1", ca.key, declared))
		}
	}
	if len(problems) == 0 {
		return nil, nil
	}
	hook, err := b.ctx.RegisterResourceHook(b.name+"-first-generation", func(*pulumi.ResourceHookArgs) error {
		return fmt.Errorf("%s", strings.Join(problems, "\n"))
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	return []*pulumi.ResourceHook{hook}, err
}

// currentSecrets returns the machine secrets with the CAs of the declared generations.
func (b *builder) currentSecrets() machine.MachineSecretsOutput {
	if b.declared(rotate.Talos) == b.secrets && b.declared(rotate.Kubernetes) == b.secrets {
		return b.secrets.MachineSecrets
	}
	first := b.secrets.MachineSecrets
	return machine.MachineSecretsArgs{
		Certs: machine.CertificatesArgs{
			Etcd: first.Certs().Etcd(), K8sAggregator: first.Certs().K8sAggregator(), K8sServiceaccount: first.Certs().K8sServiceaccount(),
			K8s: b.declared(rotate.Kubernetes).MachineSecrets.Certs().K8s(), Os: b.declared(rotate.Talos).MachineSecrets.Certs().Os(),
		},
		Cluster: first.Cluster(), Secrets: first.Secrets(), Trustdinfo: first.Trustdinfo(),
	}.ToMachineSecretsOutput()
}

// rotateAll replaces the CAs in a running cluster, one after the other. It comes before everything that uses the new credentials. It
// returns the resources to wait for.
func (b *builder) rotateAll(talosconfig pulumi.StringOutput, after []pulumi.Resource) ([]pulumi.Resource, error) {
	for _, ca := range replaceables {
		run, err := b.rotate(ca, talosconfig, after)
		if err != nil {
			return nil, err
		}
		after = append(slices.Clone(after), run...)
	}
	return after, nil
}

// rotate replaces one CA in a running cluster. With the first generation, there is nothing to replace, and no step: it returns no resource.
// It runs once for each generation. A preview shows the generation.
func (b *builder) rotate(ca replaceable, talosconfig pulumi.StringOutput, after []pulumi.Resource) ([]pulumi.Resource, error) {
	generations := b.generations[ca.of]
	if len(generations) == 1 {
		return nil, nil
	}
	spec := rotate.Spec{Cluster: b.Identity.Name, Of: ca.of, Nodes: turnNodes(b.Machines())}
	if ca.of == rotate.Kubernetes {
		spec.LeaveNamespaces = b.Lifecycle.CertificateAuthorities.LeaveNamespaces
	} else {
		talosconfig = pulumi.String("").ToStringOutput()
	}
	authorities := pulumix.Val([]rotate.Authority(nil))
	for _, generation := range generations {
		authorities = pulumix.Apply2(authorities, b.authority(ca.of, generation), withAuthority)
	}
	encoded := pulumix.Apply2Err(authorities, talosconfig, func(authorities []rotate.Authority, talosconfig string) (string, error) {
		spec := spec
		spec.Authorities, spec.Talosconfig = authorities, talosconfig
		return probe.Encode(&spec)
	})
	run, err := step.New(b.ctx, b.name+ca.suffix+"-rotate", step.Args{
		Subcommand: "rotate", Again: "rotate --done", Spec: pulumix.Cast[pulumi.StringOutput](encoded),
		Timeout:  rotate.Longest(ca.of, len(spec.Nodes)),
		Triggers: pulumi.Array{pulumi.Map{ca.key: pulumi.Int(len(generations))}},
		Provider: b.args.CommandProvider, DependsOn: after,
	}, b.parent)
	return []pulumi.Resource{run}, err
}

// authority returns a CA of a generation of the machine secrets.
func (b *builder) authority(of rotate.Subject, generation *machine.Secrets) pulumix.Output[rotate.Authority] {
	if of == rotate.Kubernetes {
		ca := generation.MachineSecrets.Certs().K8s()
		return pulumix.Apply2(ca.Cert(), ca.Key(), func(certificate, key string) rotate.Authority {
			return rotate.Authority{Certificate: certificate, Key: key}
		})
	}
	ca, user := generation.MachineSecrets.Certs().Os(), clientConfiguration(generation)
	return pulumix.Apply4(ca.Cert(), ca.Key(), user.ClientCertificate(), user.ClientKey(),
		func(certificate, key, clientCertificate, clientKey string) rotate.Authority {
			return rotate.Authority{Certificate: certificate, Key: key, ClientCertificate: clientCertificate, ClientKey: clientKey}
		})
}

// withAuthority returns authorities and a later one.
func withAuthority(former []rotate.Authority, later rotate.Authority) []rotate.Authority {
	return append(slices.Clone(former), later)
}
