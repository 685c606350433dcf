package talos

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/slipway-platform/slipway/internal/nodes/rotate"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// generations are the machine secrets by the CAs that they are used for, the oldest generation first, the declared generation last. The
// first ones are the same of all CAs.
type generations map[rotate.Subject][]*machine.Secrets

// first returns the machine secrets from which all comes that is not replaced.
func (g generations) first() *machine.Secrets { return g[rotate.Talos][0] }

// declared returns the machine secrets of the declared generation of a CA.
func (g generations) declared(of rotate.Subject) *machine.Secrets { return g[of][len(g[of])-1] }

// client returns the credentials of Talos's API.
func (g generations) client() machine.ClientConfigurationOutput {
	return clientConfiguration(g.declared(rotate.Talos))
}

// current returns the machine secrets with the CAs of the declared generations.
func (g generations) current() machine.MachineSecretsOutput {
	first := g.first().MachineSecrets
	if !slices.ContainsFunc(replaceables, func(ca replaceable) bool { return g.declared(ca.of) != g.first() }) {
		return first
	}
	return machine.MachineSecretsArgs{
		Certs: machine.CertificatesArgs{
			K8sAggregator: first.Certs().K8sAggregator(), K8sServiceaccount: first.Certs().K8sServiceaccount(),
			Os:   g.declared(rotate.Talos).MachineSecrets.Certs().Os(),
			K8s:  g.declared(rotate.Kubernetes).MachineSecrets.Certs().K8s(),
			Etcd: g.declared(rotate.Etcd).MachineSecrets.Certs().Etcd(),
		},
		Cluster: first.Cluster(), Secrets: first.Secrets(), Trustdinfo: first.Trustdinfo(),
	}.ToMachineSecretsOutput()
}

func clientConfiguration(secrets *machine.Secrets) machine.ClientConfigurationOutput {
	return pulumi.ToSecret(secrets.ClientConfiguration).(machine.ClientConfigurationOutput)
}

// firstSecrets creates the cluster's certificate authorities and keys, once.
//
// Right before, hooks check that the stack file suits a new cluster, in previews too, and in runs that the machines can be created.
// Everything that has an effect on the hypervisor or on the image factory comes after the machine secrets, so that a refused run has none.
func (r *registrar) firstSecrets(ctx *pulumi.Context) (*machine.Secrets, error) {
	check, err := r.args.Hypervisor.CheckNew(ctx, r.Owner)
	if err != nil {
		return nil, err
	}
	hooks, err := r.refuseLaterGeneration(ctx)
	if err != nil {
		return nil, err
	}
	return r.newSecrets(ctx, r.NameOf("secrets"), pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: append(hooks, check)}))
}

// newSecrets creates machine secrets. Changes of the contract are ignored: they would replace all of them, and no client or node could
// authenticate any more.
func (r *registrar) newSecrets(ctx *pulumi.Context, name string, own ...pulumi.ResourceOption) (*machine.Secrets, error) {
	return machine.NewSecrets(ctx, name, &machine.SecretsArgs{
		TalosVersion: pulumi.String(string(r.Talos.Contract)),
	}, r.Child(r.args.TalosProvider, append([]pulumi.ResourceOption{
		pulumi.Protect(true),
		pulumi.IgnoreChanges([]string{"talosVersion"}),
		pulumi.AdditionalSecretOutputs([]string{"machineSecrets", "clientConfiguration"}),
	}, own...)...))
}

// refuseLaterGeneration returns the hook that refuses to create the first machine secrets of a cluster whose stack file declares a later
// generation of a CA, in previews too: there is no cluster in which one CA could replace another.
func (r *registrar) refuseLaterGeneration(ctx *pulumi.Context) ([]*pulumi.ResourceHook, error) {
	var problems []string
	for _, ca := range replaceables {
		if declared := ca.generation(r.Lifecycle.CertificateAuthorities); declared > 1 {
			problems = append(problems, fmt.Sprintf("lifecycle.certificateAuthorities.%s: is %d, and the cluster is new; remove the key: "+
				"a cluster begins with 1", ca.key, declared))
		}
	}
	if len(problems) == 0 {
		return nil, nil
	}
	hook, err := ctx.RegisterResourceHook(r.NameOf("first-generation"), func(*pulumi.ResourceHookArgs) error {
		return fmt.Errorf("%s", strings.Join(problems, "\n"))
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	return []*pulumi.ResourceHook{hook}, err
}

// makeGenerations creates the machine secrets of each later generation of the CAs, after the first ones. Only one CA of each is used, and
// for Talos the client certificate that this CA has signed; everything else always comes from the first machine secrets.
func (r *registrar) makeGenerations(ctx *pulumi.Context, first *machine.Secrets) (generations, error) {
	made := generations{}
	for _, ca := range replaceables {
		all := []*machine.Secrets{first}
		for number := 2; number <= ca.generation(r.Lifecycle.CertificateAuthorities); number++ {
			next, err := r.laterGeneration(ctx, ca, number, all[len(all)-1])
			if err != nil {
				return nil, err
			}
			all = append(all, next)
		}
		made[ca.of] = all
	}
	return made, nil
}

// laterGeneration creates the machine secrets of a generation after the former ones. A preview says what the declared one replaces.
func (r *registrar) laterGeneration(ctx *pulumi.Context, ca replaceable, number int, former pulumi.Resource) (*machine.Secrets, error) {
	name := ofGeneration(r.NameOf(ca.prefix+"secrets"), number)
	hook, err := ctx.RegisterResourceHook(name, func(*pulumi.ResourceHookArgs) error {
		if err := (&rotate.Spec{Of: ca.of, Target: turn.TargetOf(r.Cluster, r.Machines())}).RefuseSkipped(); err != nil {
			return err
		}
		if !ctx.DryRun() || number < ca.generation(r.Lifecycle.CertificateAuthorities) {
			return nil
		}
		return ctx.Log.Info(fmt.Sprintf("generation %d of %s's CA replaces the former one before anything else is changed, in three passes "+
			"%s", number, ca.of, ca.effect), nil)
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, err
	}
	return r.newSecrets(ctx, name, pulumi.DependsOn([]pulumi.Resource{former}),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{hook}}))
}
