package stacks

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/components/gitops"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/stacks/steps"
)

// flux hands the cluster over to Flux.
type flux struct {
	*chain

	before pulumi.ResourceOption // of refuseForeign
}

// refuseForeign comes before the first object of the handover: a Flux of somebody else keeps its Secrets, too.
func (f *flux) refuseForeign() (_ pulumi.ResourceOption, err error) {
	f.before, err = gitops.RefuseForeignFlux(f.ctx, steps.Secrets+"-flux-foreign", f.Identity.Name, f.talos.Kubeconfig, f.GitOps)
	return f.before, err
}

func (f *flux) prepare(args *secrets.SecretsFoundationArgs) {
	args.Flux = &secrets.Flux{
		GitOps: f.GitOps, Access: f.Secrets.OfSource(f.GitOps.Access()), Images: f.FluxRegistryConfig, Age: f.SOPSAgeKey, Before: f.before,
	}
}

func (f *flux) handOver() (*components.GitOpsHandover, error) {
	needs := f.foundation.Flux
	args := &gitops.GitOpsHandoverArgs{
		GitOps: f.GitOps, Settings: f.Settings(), Secrets: needs,
		InCluster: f.objectsAfter(f.gate, f.core, f.foundation), Steps: f.steps(), VMs: f.talos.VMs(),
		OperatorGit: f.InGit(f.GitOps.Operator.Service().Name), OperatorAfter: append(f.gate.Leaves(), f.namespace),
	}
	if needs.Source != "" || needs.CA != "" {
		args.Access = f.talos.Fingerprint(f.AccessToSource()...)
	}
	if needs.Decryption != "" {
		args.Decryption = f.talos.Fingerprint(f.SOPSAgeKey.Reveal())
	}
	return gitops.NewGitOpsHandover(f.ctx, steps.GitOps, args, f.afterGate())
}
