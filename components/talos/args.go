package talos

import (
	"errors"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/machineconfig"
)

// TalosClusterArgs say what the cluster is made of.
type TalosClusterArgs struct {
	// Cluster is what is declared: machines, network, Talos, Kubernetes, and the Proxmox VE cluster. Its Check has found
	// nothing wrong; required.
	Cluster *cluster.Cluster

	// InlineManifests are what Talos applies once the API answers; optional. It does so with the bootstrap and with each
	// upgrade of Kubernetes, and deletes nothing: this is to start a cluster, not to keep it.
	InlineManifests []InlineManifest

	// DependsOn must be there before any machine is given its configuration, or shown with it; by leaf; optional.
	DependsOn []pulumi.Resource

	ProxmoxProvider pulumi.ProviderResource // required
	TalosProvider   pulumi.ProviderResource // required
	CommandProvider pulumi.ProviderResource // required
}

// InlineManifest is a text of Kubernetes manifests that comes with the control planes' machine configuration.
type InlineManifest struct {
	Name     string             // unique among the cluster's; required
	Contents pulumi.StringInput // YAML documents; treated as secret; required
}

// validate returns every problem that the model cannot know of, Talos's own judgement of the machine configurations included.
func (a *TalosClusterArgs) validate() error {
	if a == nil || a.Cluster == nil {
		return errors.New("cluster: is missing; pass the declared cluster")
	}
	var problems []error
	for _, provider := range []struct {
		path  string
		given pulumi.ProviderResource
	}{{"proxmoxProvider", a.ProxmoxProvider}, {"talosProvider", a.TalosProvider}, {"commandProvider", a.CommandProvider}} {
		if provider.given == nil {
			problems = append(problems, fmt.Errorf("%s: is missing; pass an explicit provider", provider.path))
		}
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
	return errors.Join(append(problems, machineconfig.Validate(a.Cluster))...)
}

// addresses are the IPv4 addresses of machines, in order.
func addresses(machines []cluster.Machine) []string {
	list := make([]string, len(machines))
	for i, machine := range machines {
		list[i] = machine.Address.String()
	}
	return list
}
