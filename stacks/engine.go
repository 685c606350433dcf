package stacks

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/secrets"
)

// engine hands a cluster over to GitOps.
type engine interface {
	// refuseForeign returns an option for a resource, before whose creation an engine of somebody else is refused.
	refuseForeign() (pulumi.ResourceOption, error)
	// prepare adds to the secrets foundation what must exist before the engine starts.
	prepare(*secrets.SecretsFoundationArgs)
	// handOver installs the engine, which has applied the repository at the end.
	handOver() (*handover, error)
}

// handover is a cluster that an engine has taken over.
type handover struct {
	awaited

	report   pulumi.StringOutput // the probe's, one line of JSON
	revision pulumi.StringOutput // of the repository, that the engine has applied
}
