package talos

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/machineconfig"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/internal/nodes/bootstrap"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// TalosClusterArgs are the arguments of a TalosCluster.
type TalosClusterArgs struct {
	// Cluster is the declared cluster: machines, network, Talos, Kubernetes, and the hypervisor. Complete must have found no problem in
	// it; required.
	Cluster *cluster.Cluster

	// Hypervisor makes the machines of the cluster, such as a proxmox.Hypervisor; required.
	Hypervisor machines.Hypervisor

	// InlineManifests are manifests that Talos applies once the API answers; optional. Talos applies them at the bootstrap and at
	// each upgrade of Kubernetes, and deletes nothing. They suit the start of a cluster, not its operation.
	InlineManifests []InlineManifest

	// DependsOn lists the leaves that must exist before a machine configuration is applied or shown; optional.
	DependsOn []pulumi.Resource

	TalosProvider   pulumi.ProviderResource // required
	CommandProvider pulumi.ProviderResource // required

	knock func(ctx context.Context, address string) error // opens a connection to a machine's Talos API; nil means talosapi.Knock
	dial  func(context.Context) (access, error)           // connects to the cluster; nil means with the credentials of the machine secrets
}

// InlineManifest is a YAML text of Kubernetes manifests, part of the control planes' machine configuration.
type InlineManifest struct {
	Name     string             // unique in the cluster; required
	Contents pulumi.StringInput // YAML documents; treated as secret; required
}

// validate returns every problem that the model cannot find. It includes Talos's own validation of the machine configurations.
func (a *TalosClusterArgs) validate() error {
	if a == nil || a.Cluster == nil {
		return errors.New("cluster: is missing; pass the declared cluster")
	}
	var problems []error
	if a.Hypervisor == nil {
		problems = append(problems, errors.New("hypervisor: is missing; pass what makes the machines, such as a proxmox.Hypervisor"))
	} else {
		problems = append(problems, a.Hypervisor.Validate())
	}
	if a.TalosProvider == nil {
		problems = append(problems, errors.New("talosProvider: is missing; pass an explicit provider"))
	}
	if a.CommandProvider == nil {
		problems = append(problems, errors.New("commandProvider: is missing; pass an explicit provider"))
	}
	seen := map[string]bool{}
	for i, manifest := range a.InlineManifests {
		if manifest.Name == "" || manifest.Contents == nil {
			problems = append(problems, fmt.Errorf("inlineManifests[%d]: has no name or no contents; give both", i))
		}
		if seen[manifest.Name] {
			problems = append(problems, fmt.Errorf("inlineManifests[%d]: %s is taken; give each its own name", i, manifest.Name))
		}
		seen[manifest.Name] = true
	}
	if problem := bootstrap.CheckSnapshot(a.Cluster); problem != nil {
		problems = append(problems, problem)
	}
	return errors.Join(append(problems, machineconfig.Validate(a.Cluster))...)
}

// addresses returns the IPv4 addresses of machines, in their order.
func addresses(machines []cluster.Machine) pulumi.StringArray {
	return pulumi.ToStringArray(xslices.Map(turn.Addresses(turn.NodesOf(machines)), netip.Addr.String))
}
