package stacks

import (
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/stacks/contract"
)

// readStackOutputs is a function of Pulumi's engine. A StackReference would end the program if the stack does not exist.
const readStackOutputs = "pulumi:pulumi:readStackOutputs"

// comparePeers compares the stack with its peers in the mesh as they run, before anything is registered. A peer that does not exist, or
// was destroyed, has no outputs: it is compared when it comes up. Its stack file may say what its next up will change, so a difference
// between both is a warning only; what collides with this stack is an error.
func (c *chain) comparePeers() error {
	var problems []error
	for i, peer := range c.Mesh.Clusters {
		path := cluster.ItemPath("mesh.peers", i)
		outputs, err := c.outputsOf(peer.Stack)
		if err != nil {
			if err := c.ctx.Log.Warn(fmt.Sprintf("%s: %s is not compared with this stack as it runs: %v", path, peer.Stack, err), nil); err != nil {
				return err
			}
		}
		if len(outputs) == 0 {
			continue
		}
		runs, err := contract.Read(peer.Stack, outputs)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s %w", path, peer.Stack, err))
			continue
		}
		for _, problem := range cluster.Compare([]*cluster.Cluster{runs, c.Cluster})[1] {
			problems = append(problems, fmt.Errorf("%w (as %s runs)", problem, peer.Stack))
		}
		if runs.Identity.Name != peer.Name || runs.Identity.ID != peer.ID || runs.Network.LoadBalancers.Mesh != peer.Address {
			said := fmt.Sprintf("%s: %s runs as cluster %s with id %d and mesh address %s, and its stack file says %s, %d and %s: run its `pulumi up`, too",
				path, peer.Stack, runs.Identity.Name, runs.Identity.ID, runs.Network.LoadBalancers.Mesh, peer.Name, peer.ID, peer.Address)
			if err := c.ctx.Log.Warn(said, nil); err != nil {
				return err
			}
		}
	}
	return errors.Join(problems...)
}

// outputsOf returns the outputs of another stack of this project, nil if there is no such stack.
func (c *chain) outputsOf(stack string) (map[string]any, error) {
	name := strings.Join([]string{c.ctx.Organization(), c.ctx.Project(), stack}, "/")
	var answer struct {
		Outputs map[string]any `pulumi:"outputs"`
	}
	arguments := struct {
		Name string `pulumi:"name"`
	}{name}
	// The raw form, because some of the outputs are secret. None of those is read.
	_, err := c.ctx.InvokePackageRaw(readStackOutputs, &arguments, &answer, "")
	if err != nil && (strings.Contains(err.Error(), "unknown stack") || strings.Contains(err.Error(), "no stack named")) {
		return nil, nil //nolint:nilnil // there is none
	}
	return answer.Outputs, err
}
