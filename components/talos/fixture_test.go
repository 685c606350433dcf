package talos

import (
	"context"
	"errors"
	"testing"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve"
	"github.com/pulumi/pulumi-command/sdk/go/command"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/machines/proxmox"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// Type tokens of the children.
const (
	typeSchematic  = "talos:imageFactory/schematic:Schematic"
	typeISO        = "proxmoxve:Download/file:File"
	typeVM         = "proxmoxve:VM/virtualMachine:VirtualMachine"
	typeSecrets    = "talos:machine/secrets:Secrets"
	typeApply      = "talos:machine/configurationApply:ConfigurationApply"
	typeCommand    = "command:local:Command"
	typeKubeconfig = "talos:cluster/kubeconfig:Kubeconfig"

	callConfiguration = "talos:machine/getConfiguration:getConfiguration"
	callTalosconfig   = "talos:client/getConfiguration:getConfiguration"
)

// keyMaterial is in every secret that the mocked providers hand out.
const keyMaterial = "KEY-MATERIAL"

// schematicID is the id that the recorder gives the schematic.
const schematicID = "infra-schematic-id"

// arguments returns the arguments for the committed infra cluster (three control planes and two workers on three hosts), after
// the changes.
func arguments(t *testing.T, changes ...func(*cluster.Cluster)) *TalosClusterArgs {
	t.Helper()
	changes = append([]func(*cluster.Cluster){func(c *cluster.Cluster) { c.Proxmox.Tags = []string{"homelab", "slipway"} }}, changes...)
	return &TalosClusterArgs{
		Cluster: clusters.Infra(t, changes...),
		knock:   func(context.Context, string) error { return nil },
		dial:    func(context.Context) (access, error) { return nil, errors.New("there is no cluster") },
	}
}

// allMachines returns the machines of the infra cluster.
func allMachines(t *testing.T) []cluster.Machine { return arguments(t).Cluster.Machines() }

// workers returns the pool of the cluster's workers.
func workers(c *cluster.Cluster) *cluster.NodePool { return &c.NodePools[1] }

// providers registers explicit providers and puts them into the arguments.
func providers(ctx *pulumi.Context, args *TalosClusterArgs) error {
	provider, err := proxmoxve.NewProvider(ctx, "proxmox", nil)
	if err != nil {
		return err
	}
	talosProvider, err := talos.NewProvider(ctx, "talos", nil)
	if err != nil {
		return err
	}
	commands, err := command.NewProvider(ctx, "command", nil)
	if err != nil {
		return err
	}
	args.Hypervisor, args.TalosProvider, args.CommandProvider = proxmox.Hypervisor{Provider: provider}, talosProvider, commands
	return nil
}

// answers sets what the mocked providers return beside the inputs, for each resource and call.
func answers(recorder *mocks.Recorder) *mocks.Recorder {
	recorder.OnResource = func(r mocks.Registration) (resource.PropertyMap, error) {
		return resource.NewPropertyMapFromMap(map[string]map[string]any{
			typeSecrets: {
				"machineSecrets": machineSecrets(),
				"clientConfiguration": map[string]any{
					"caCertificate": keyMaterial, "clientCertificate": keyMaterial, "clientKey": keyMaterial,
				},
			},
			typeKubeconfig: {"kubeconfigRaw": "kubeconfig " + keyMaterial},
		}[r.Type]), nil
	}
	recorder.OnCall = func(call pulumi.MockCallArgs) (resource.PropertyMap, error) {
		return resource.NewPropertyMapFromMap(map[string]map[string]any{
			callConfiguration: {"machineConfiguration": "configuration " + keyMaterial},
			callTalosconfig:   {"talosConfig": "talosconfig " + keyMaterial},
		}[call.Token]), nil
	}
	return recorder
}

func machineSecrets() map[string]any {
	pair := map[string]any{"cert": keyMaterial, "key": keyMaterial}
	return map[string]any{
		"certs": map[string]any{
			"etcd": pair, "k8s": pair, "k8sAggregator": pair, "k8sServiceaccount": map[string]any{"key": keyMaterial}, "os": pair,
		},
		"cluster":    map[string]any{"id": keyMaterial, "secret": keyMaterial},
		"secrets":    map[string]any{"bootstrapToken": keyMaterial, "secretboxEncryptionSecret": keyMaterial},
		"trustdinfo": map[string]any{"token": keyMaterial},
	}
}

// up records the registration of a cluster, after the changes.
func up(t *testing.T, changes ...func(*cluster.Cluster)) *mocks.Recorder {
	t.Helper()
	recorder := answers(&mocks.Recorder{})
	require.NoError(t, recorder.Run(program(arguments(t, changes...), nil)))
	return recorder
}

// program returns a program that registers a cluster and then calls more, which may be nil.
func program(args *TalosClusterArgs, more func(*pulumi.Context, *TalosCluster) error) pulumi.RunFunc {
	return func(ctx *pulumi.Context) error {
		if err := providers(ctx, args); err != nil {
			return err
		}
		c, err := NewTalosCluster(ctx, "infra", args)
		if err != nil || more == nil {
			return err
		}
		return more(ctx, c)
	}
}
