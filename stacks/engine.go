package stacks

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/components/secrets"
)

// engine hands a cluster over to GitOps.
type engine interface {
	// refuseForeign returns an option for a resource, before whose creation an engine of somebody else is refused.
	refuseForeign() (pulumi.ResourceOption, error)
	// prepare adds to the secrets foundation what must exist before the engine starts.
	prepare(*secrets.SecretsFoundationArgs)
	// handOver installs the engine, which has applied the repository at the end.
	handOver() (*components.GitOpsHandover, error)
}
