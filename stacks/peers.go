package stacks

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/stacks/contract"
)

// readStackOutputs is a function of Pulumi's engine. A StackReference would end the program if the stack does not exist.
const readStackOutputs = "pulumi:pulumi:readStackOutputs"

// compareRunning compares the stack with all other stacks of the checkout as they run, before anything is registered. A stack that does
// not exist, or was destroyed, has no outputs: it is compared when it comes up. The stack file may declare what the next run changes, so a
// difference to the outputs is a warning. A collision with this stack is an error, and so is a stack that this one names, if it cannot be
// read.
func (c *chain) compareRunning() error {
	var findings cluster.Findings
	for _, stack := range c.beside {
		if stack == c.Stack {
			continue
		}
		path := c.pathOf(stack)
		outputs, err := c.outputsOf(stack)
		if err != nil {
			if err := c.warn("%s: %s is not compared with this stack as it runs: %v", path, stack, err); err != nil {
				return err
			}
		}
		if len(outputs) == 0 {
			continue
		}
		runs, unread := contract.Read(stack, outputs)
		for _, one := range unread {
			if err := c.reportUnread(&findings, stack, one, runs != nil); err != nil {
				return err
			}
		}
		if runs == nil {
			continue
		}
		for _, problem := range cluster.Compare([]*cluster.Cluster{runs, c.Cluster})[1] {
			findings.Include(problem)
		}
		if err := c.warnOfChange(path, runs); err != nil {
			return err
		}
	}
	return findings.Err()
}

// reportUnread reports what of a stack cannot be read, and whether the rest is compared. Neither an unreadable stack that this one does not
// name, nor an older version, may stop a run: two stacks would wait for each other's run.
func (c *chain) reportUnread(findings *cluster.Findings, stack string, unread contract.Unread, compared bool) error {
	if _, named := c.nameOf(stack); named && !unread.Older {
		findings.Found(c.pathOf(stack), unread.Remedy, "%s %s", stack, unread.Problem)
		return nil
	}
	consequence := "it is not compared with this stack as it runs"
	if compared {
		consequence = "it is compared as far as it can be read"
	}
	return c.warn("%s: %s %s; %s; %s", c.pathOf(stack), stack, unread.Problem, consequence, unread.Remedy)
}

// pathOf returns the key that names another stack, or else the name of its file.
func (c *chain) pathOf(stack string) string {
	if path, named := c.nameOf(stack); named {
		return path
	}
	return "Pulumi." + stack + ".yaml"
}

// nameOf returns the key that names another stack, or false.
func (c *chain) nameOf(stack string) (path string, named bool) {
	for _, one := range c.Named() {
		if one.Stack == stack {
			return one.Path, true
		}
	}
	return "", false
}

// warnOfChange says which values, which this stack assumes already, the next run of a named stack will change.
func (c *chain) warnOfChange(path string, runs *cluster.Cluster) error {
	for _, peer := range c.Mesh.Clusters {
		name, id, address := runs.Identity.Name, runs.Identity.ID, runs.Network.LoadBalancers.Mesh
		if peer.Stack != runs.Stack || name == peer.Name && id == peer.ID && address == peer.Address {
			continue
		}
		if err := c.warn("%s: %s runs as cluster %s with id %d and mesh address %s, and its stack file says %s, %d and %s: "+
			"run its `pulumi up`, too", path, peer.Stack, name, id, orNone(address), peer.Name, peer.ID, orNone(peer.Address)); err != nil {
			return err
		}
	}
	if c.Storage.Provider == runs.Stack && runs.Storage.Role != cluster.StorageProvider {
		return c.warn("storage.provider: %s runs without storage for others, and its stack file says provider: "+
			"run its `pulumi up`, too", runs.Stack)
	}
	return nil
}

// orNone returns an address as text, "none" if it is not set.
func orNone(address netip.Addr) string {
	if !address.IsValid() {
		return "none"
	}
	return address.String()
}

func (c *chain) warn(format string, args ...any) error {
	return c.ctx.Log.Warn(fmt.Sprintf(format, args...), nil)
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
	// The engine's errors are texts, without a type or a code: this one differs between backends.
	if err != nil && (strings.Contains(err.Error(), "unknown stack") || strings.Contains(err.Error(), "no stack named")) {
		return nil, nil //nolint:nilnil // there is none
	}
	return answer.Outputs, err
}
