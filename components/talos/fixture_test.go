package talos

import (
	"net/netip"
	"testing"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve"
	"github.com/pulumi/pulumi-command/sdk/go/command"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/machineconfig"
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

// schematicID is what the recorder gives the schematic for an id.
const schematicID = "infra-schematic-id"

// arguments declare a cluster of three control planes and two workers over three hosts, one of which has two nodes.
func arguments() *TalosClusterArgs {
	node := func(name string, role machineconfig.Role, host string, id int, mac, address string) Node {
		return Node{
			Name: name, Role: role, Host: host, VMID: id, MAC: mac, Address: netip.MustParseAddr(address),
			Cores: 4, MemoryMiB: 8192, DiskGiB: 40,
		}
	}
	return &TalosClusterArgs{
		ClusterName:       "infra",
		TalosVersion:      "v1.12.7",
		KubernetesVersion: "v1.35.8",
		Extensions:        []string{"siderolabs/qemu-guest-agent"},
		Nodes: []Node{
			node("infra-worker-1", machineconfig.Worker, "pve1", 1121, "BC:24:11:00:01:15", "10.25.11.21"),
			node("infra-cp-1", machineconfig.ControlPlane, "pve1", 1111, "bc:24:11:00:01:0b", "10.25.11.11"),
			node("infra-cp-2", machineconfig.ControlPlane, "pve2", 1112, "BC:24:11:00:01:0C", "10.25.11.12"),
			node("infra-cp-3", machineconfig.ControlPlane, "pve3", 1113, "BC:24:11:00:01:0D", "10.25.11.13"),
			node("infra-worker-2", machineconfig.Worker, "pve2", 1122, "BC:24:11:00:01:16", "10.25.11.22"),
		},
		NodeCIDR:    netip.MustParsePrefix("10.25.11.0/24"),
		Gateway:     netip.MustParseAddr("10.25.11.1"),
		VIP:         netip.MustParseAddr("10.25.11.10"),
		PodCIDR:     netip.MustParsePrefix("10.244.0.0/16"),
		ServiceCIDR: netip.MustParsePrefix("10.245.0.0/16"),
		Nameservers: []netip.Addr{netip.MustParseAddr("10.25.11.1")},
		Tags:        []string{"homelab", "slipway"},
	}
}

// providers registers explicit providers and puts them into the arguments.
func providers(ctx *pulumi.Context, args *TalosClusterArgs) error {
	proxmox, err := proxmoxve.NewProvider(ctx, "proxmox", nil)
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
	args.ProxmoxProvider, args.TalosProvider, args.CommandProvider = proxmox, talosProvider, commands
	return nil
}

// answers are those of the providers: what each resource and call returns beside its inputs.
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
		"certs":      map[string]any{"etcd": pair, "k8s": pair, "k8sAggregator": pair, "k8sServiceaccount": map[string]any{"key": keyMaterial}, "os": pair},
		"cluster":    map[string]any{"id": keyMaterial, "secret": keyMaterial},
		"secrets":    map[string]any{"bootstrapToken": keyMaterial, "secretboxEncryptionSecret": keyMaterial},
		"trustdinfo": map[string]any{"token": keyMaterial},
	}
}

// up records the registration of a cluster, after the change to the arguments, if any.
func up(t *testing.T, change func(*TalosClusterArgs)) *mocks.Recorder {
	t.Helper()
	recorder := answers(&mocks.Recorder{})
	require.NoError(t, recorder.Run(program(change, nil)))
	return recorder
}

// program is one that has a cluster and, on top of it, whatever more makes.
func program(change func(*TalosClusterArgs), more func(*pulumi.Context, *TalosCluster) error) pulumi.RunFunc {
	return func(ctx *pulumi.Context) error {
		args := arguments()
		if err := providers(ctx, args); err != nil {
			return err
		}
		if change != nil {
			change(args)
		}
		cluster, err := NewTalosCluster(ctx, "infra", args)
		if err != nil || more == nil {
			return err
		}
		return more(ctx, cluster)
	}
}

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }
