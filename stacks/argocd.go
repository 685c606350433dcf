package stacks

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/components/argocd"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/stacks/steps"
)

// argoCD hands the cluster over to Argo CD.
type argoCD struct {
	*chain

	before pulumi.ResourceOption // of refuseForeign
}

// refuseForeign comes before the first object of the handover: another engine may keep its Secrets there, too.
func (a *argoCD) refuseForeign() (_ pulumi.ResourceOption, err error) {
	a.before, err = argocd.RefuseForeign(a.ctx, steps.Secrets+"-argocd-foreign", a.Identity.Name, a.talos.Kubeconfig)
	return a.before, err
}

func (a *argoCD) prepare(args *secrets.SecretsFoundationArgs) {
	args.ArgoCD = &secrets.ArgoCD{GitOps: a.GitOps, Access: a.Secrets.OfSource(a.GitOps.Access()), Before: a.before}
}

func (a *argoCD) handOver() (*components.GitOpsHandover, error) {
	args := &argocd.GitOpsHandoverArgs{
		GitOps: a.GitOps, Release: a.ArgoCDService(), Git: a.InGit(cluster.ArgoCDRelease), Settings: a.Settings(), Before: a.before,
		InCluster: a.objectsAfter(a.gate, a.core, a.foundation), Steps: a.steps(), VMs: a.talos.VMs(),
		Access: a.talos.Fingerprint(a.AccessToSource()...),
	}
	return argocd.NewGitOpsHandover(a.ctx, steps.GitOps, args, a.afterGate())
}
