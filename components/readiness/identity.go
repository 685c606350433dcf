package readiness

import "github.com/pulumi/pulumi/sdk/v3/go/pulumi"

// Identify registers the resource that stands for the Kubernetes cluster that the gate has found, with all objects in it: DeletedWith of
// the other components. It is replaced when etcd was bootstrapped again, after all control planes were rebuilt. Then every object is
// created again, and nothing is deleted: the objects in the state were in the former cluster.
func (g *ReadinessGate) Identify(ctx *pulumi.Context, name, cluster string) (pulumi.Resource, error) {
	options := []pulumi.ResourceOption{pulumi.DependsOn(g.Leaves())}
	// A preview does not know the identity if the gate is to run again, and would announce the replacement of everything.
	if !ctx.DryRun() {
		options = append(options, pulumi.ReplacementTrigger(g.ClusterUID()))
	}
	return pulumi.NewStash(ctx, name, &pulumi.StashArgs{Input: pulumi.String(cluster)}, options...)
}
