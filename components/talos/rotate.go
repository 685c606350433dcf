package talos

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumix"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/nodes/rotate"
	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

// replaceable is a CA that a higher generation in the stack file replaces.
type replaceable struct {
	of         rotate.Subject
	key        string // of the stack file, in lifecycle.certificateAuthorities
	prefix     string // of the names of resources, after the component's
	generation func(cluster.CertificateAuthorities) int
	effect     string // of a new generation
}

// replaceables lists the CAs in the order in which they are replaced: the later ones have the new credentials of Talos's.
var replaceables = []replaceable{
	{rotate.Talos, "talos", "", func(a cluster.CertificateAuthorities) int { return a.Talos },
		"on all nodes, without a reboot. Former copies of the talosconfig are refused afterwards"},
	{rotate.Kubernetes, "kubernetes", "kubernetes-", func(a cluster.CertificateAuthorities) int { return a.Kubernetes },
		"on all nodes, without a reboot. Every Deployment, DaemonSet and StatefulSet whose pods use the Kubernetes API is restarted, one after " +
			"the other, each by its own strategy. Former copies of the kubeconfig are refused afterwards"},
	{rotate.Etcd, "etcd", "etcd-", func(a cluster.CertificateAuthorities) int { return a.Etcd },
		"on all control planes. Each of them is drained and reboots twice, one after the other"},
}

// ofGeneration returns the name of a resource of which each generation has its own. The first has none in its name.
func ofGeneration(name string, number int) string {
	if number == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, number)
}

// rotateAll replaces the CAs in a running cluster, one after the other. It comes before everything that uses the new credentials. It
// returns the resources to wait for.
func (r *registrar) rotateAll(
	ctx *pulumi.Context, secrets generations, talosconfig pulumi.StringOutput, after []pulumi.Resource,
) ([]pulumi.Resource, error) {
	for _, ca := range replaceables {
		run, err := r.rotate(ctx, ca, secrets[ca.of], talosconfig, after)
		if err != nil {
			return nil, err
		}
		after = append(slices.Clone(after), run...)
	}
	return after, nil
}

// rotate replaces one CA in a running cluster. With the first generation, there is nothing to replace, and no step: it returns no resource.
// It runs once for each generation. A preview shows the generation.
func (r *registrar) rotate(
	ctx *pulumi.Context, ca replaceable, generations []*machine.Secrets, talosconfig pulumi.StringOutput, after []pulumi.Resource,
) ([]pulumi.Resource, error) {
	if len(generations) == 1 {
		return nil, nil
	}
	spec := rotate.Spec{
		Of: ca.of, Target: turn.TargetOf(r.Cluster, r.Machines()), TurnChecks: r.TurnChecks(), Snapshots: snapshot.PlaceOf(r.Cluster),
	}
	switch ca.of {
	case rotate.Talos:
		talosconfig = pulumi.String("").ToStringOutput()
	case rotate.Kubernetes:
		spec.LeaveNamespaces = r.Lifecycle.CertificateAuthorities.LeaveNamespaces
	case rotate.Etcd:
		spec.Limits = &r.Lifecycle.TurnLimits // without generations: a machine that waits for this run to be made anew holds up no turn
	}
	authorities := pulumix.Val([]rotate.Authority(nil))
	for _, generation := range generations {
		authorities = pulumix.Apply2(authorities, authority(ca.of, generation), withAuthority)
	}
	encoded := pulumix.Apply2Err(authorities, talosconfig, func(authorities []rotate.Authority, talosconfig string) (string, error) {
		spec := spec
		spec.Authorities, spec.Talosconfig = authorities, talosconfig
		return probe.Encode(&spec)
	})
	run, err := step.New(ctx, r.NameOf(ca.prefix+"rotate"), step.Args{
		Run: step.Run{
			Subcommand: "rotate", Spec: pulumix.Cast[pulumi.StringOutput](encoded), Timeout: spec.Longest(),
			Provider: r.CommandProvider, DependsOn: after,
		},
		Again: "rotate --done", Triggers: pulumi.Array{pulumi.Map{ca.key: pulumi.Int(len(generations))}},
	}, r.Component)
	return []pulumi.Resource{run}, err
}

// authority returns a CA of a generation of the machine secrets.
func authority(of rotate.Subject, generation *machine.Secrets) pulumix.Output[rotate.Authority] {
	certificates := generation.MachineSecrets.Certs()
	switch of {
	case rotate.Kubernetes:
		ca := certificates.K8s()
		return pulumix.Apply2(ca.Cert(), ca.Key(), withoutClient)
	case rotate.Etcd:
		ca := certificates.Etcd()
		return pulumix.Apply2(ca.Cert(), ca.Key(), withoutClient)
	}
	ca, user := certificates.Os(), clientConfiguration(generation)
	return pulumix.Apply4(ca.Cert(), ca.Key(), user.ClientCertificate(), user.ClientKey(),
		func(certificate, key, clientCertificate, clientKey string) rotate.Authority {
			return rotate.Authority{Certificate: certificate, Key: key, ClientCertificate: clientCertificate, ClientKey: clientKey}
		})
}

func withoutClient(certificate, key string) rotate.Authority {
	return rotate.Authority{Certificate: certificate, Key: key}
}

// withAuthority returns authorities and a later one.
func withAuthority(former []rotate.Authority, later rotate.Authority) []rotate.Authority {
	return append(slices.Clone(former), later)
}
