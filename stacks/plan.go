package stacks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/slipway-platform/slipway/components/cilium"
	"github.com/slipway-platform/slipway/components/gitops"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/stacks/config"
)

// plan is a stack's configuration, turned into what the components want as far as that is known before they exist.
type plan struct {
	stack  *config.Stack
	values cilium.Values
	git    *secrets.GitCredentials

	machinesPrint string // fingerprint of what the machines are made from
	networkPrint  string // fingerprint of Cilium's values, certificates apart
}

// newPlan checks the shapes of what it plans; the rest is checked by the components' constructors.
func newPlan(stack *config.Stack) (*plan, error) {
	p := &plan{
		stack:  stack,
		values: values(stack),
		git: &secrets.GitCredentials{
			Namespace: gitops.Namespace,
			Name:      gitCredentials,
			Username:  stack.GitOps.Username,
			Password:  stack.GitPassword.Reveal(),
		},
	}
	tree, err := p.values.Render(cilium.Keys{})
	if err := errors.Join(p.git.Validate(), err); err != nil {
		return nil, err
	}
	if p.networkPrint, err = fingerprint(tree); err != nil {
		return nil, err
	}
	p.machinesPrint, err = fingerprint(struct {
		Network    config.Network
		NodePools  []config.NodePool
		Talos      config.Talos
		Kubernetes config.Kubernetes
	}{stack.Network, stack.NodePools, stack.Talos, stack.Kubernetes})
	return p, err
}

// fingerprint changes when anything of a value does.
func fingerprint(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}
