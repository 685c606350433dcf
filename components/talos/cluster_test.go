package talos

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/nodes/bootstrap"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestTalosCluster_AppliesOneConfigurationToEachNodeAfterItsVM(t *testing.T) {
	r := up(t)
	require.Len(t, r.OfType(typeApply), len(allMachines(t)))
	for _, node := range allMachines(t) {
		apply, vm := r.Resource(t, "infra-"+node.Name+"-apply"), r.Resource(t, "infra-"+node.Name+"-vm")
		assert.Equal(t, node.Address.String(), apply.Input("node"))
		assert.Equal(t, node.Address.String(), apply.Input("endpoint"))
		assert.Equal(t, "auto", apply.Input("applyMode"))
		assert.Contains(t, apply.Dependencies, vm.URN)
		assert.Equal(t, []string{vm.URN}, apply.RPC.GetReplaceWith(), "a replaced machine needs its configuration again")
	}
}

func TestTalosCluster_AppliesToWorkersInParallel(t *testing.T) {
	r := up(t)
	for _, one := range r.OfType(typeApply) {
		for _, other := range r.OfType(typeApply) {
			if strings.Contains(one.Name, "-worker-") || strings.Contains(other.Name, "-worker-") {
				assert.False(t, r.After(one, other), "%s waits for %s", one.Name, other.Name)
			}
		}
	}
}

func TestTalosCluster_BootstrapsTheFirstControlPlaneOnceAfterEveryApply(t *testing.T) {
	r := up(t)
	boot := r.Resource(t, "infra-bootstrap")
	assert.Equal(t, probe.Program+" bootstrap", boot.Input("create"))
	for _, apply := range r.OfType(typeApply) {
		assert.Contains(t, boot.Dependencies, apply.URN)
	}

	var spec bootstrap.Spec
	require.NoError(t, json.Unmarshal([]byte(boot.Input("stdin").(string)), &spec))
	assert.Equal(t, "[10.25.11.11 10.25.11.12 10.25.11.13]", fmt.Sprint(turn.Addresses(spec.Nodes)), "their own addresses, not the VIP")
	require.NoError(t, spec.Validate())
	assert.Empty(t, r.Find(func(reg mocks.Registration) bool { return strings.Contains(reg.Type, "talos:machine/bootstrap") }))
}

func TestTalosCluster_FetchesTheKubeconfigFromTheFirstControlPlaneAfterTheBootstrap(t *testing.T) {
	r := up(t)
	kubeconfig := r.Only(t, typeKubeconfig)
	assert.Contains(t, kubeconfig.Dependencies, r.Resource(t, "infra-bootstrap").URN)
	assert.Equal(t, "10.25.11.11", kubeconfig.Input("node"))
	assert.Equal(t, "10.25.11.11", kubeconfig.Input("endpoint"))
}

// A destroy without a preview would delete the workers, with their disks, before it refuses to delete the control planes.
func TestTalosCluster_ProtectsWhatIsDeletedBeforeTheFirstMachine(t *testing.T) {
	r := up(t)
	turns := r.Resource(t, "infra-turns")
	assert.True(t, turns.Protect)
	for _, machine := range r.OfType(typeVM) {
		assert.True(t, r.After(turns, machine), machine.Name)
	}
}

func TestTalosCluster_ProtectsMachineSecretsAndControlPlanes(t *testing.T) {
	r := up(t)
	secrets := r.Only(t, typeSecrets)
	assert.True(t, secrets.Protect)
	assert.Equal(t, []string{"talosVersion"}, secrets.IgnoreChanges)
	for _, vm := range r.OfType(typeVM) {
		assert.Equal(t, strings.Contains(vm.Name, "-cp-"), vm.Protect, vm.Name)
	}
}

func TestTalosCluster_NamesAProviderForEveryResourceAndCall(t *testing.T) {
	r := up(t)
	require.NotEmpty(t, r.Resources())
	for _, reg := range r.Resources() {
		if !reg.Custom || strings.HasPrefix(reg.Type, "pulumi:") {
			continue
		}
		assert.True(t, strings.HasPrefix(reg.Provider, "urn:"), "%s %s has the default provider", reg.Type, reg.Name)
		kind, _, _ := strings.Cut(reg.Type, ":")
		assert.Contains(t, reg.ProviderURN(), "pulumi:providers:"+kind)
	}
	require.Len(t, r.Calls(), len(allMachines(t))+1)
	for _, call := range r.Calls() {
		assert.Contains(t, call.Provider, "pulumi:providers:talos", call.Token)
	}
}

func TestTalosCluster_IsTheParentOfItsChildren(t *testing.T) {
	r := up(t)
	component := r.Only(t, typeTalosCluster)
	for _, reg := range r.Resources() {
		if !reg.Custom || strings.HasPrefix(reg.Type, "pulumi:") {
			continue
		}
		assert.Equal(t, component.URN, reg.Parent, reg.Name)
		assert.True(t, strings.HasPrefix(reg.Name, "infra-"), reg.Name)
	}
}

func TestTalosCluster_KeepsKeyMaterialSecret(t *testing.T) {
	r := up(t)
	for _, reg := range r.Resources() {
		assert.Empty(t, reg.PlainPaths(keyMaterial), "%s %s", reg.Type, reg.Name)
	}
	for token, outputs := range map[string][]string{
		typeSecrets:    {"machineSecrets", "clientConfiguration"},
		typeApply:      {"machineConfiguration", "machineConfigurationInput", "clientConfiguration"},
		typeKubeconfig: {"kubeconfigRaw", "kubernetesClientConfiguration", "clientConfiguration"},
		typeCommand:    {"stdin"},
	} {
		for _, reg := range r.OfType(token) {
			assert.Subset(t, reg.AdditionalSecretOutputs, outputs, reg.Name)
		}
	}
	for _, apply := range r.OfType(typeApply) {
		assert.True(t, apply.SecretInput("machineConfigurationInput"), apply.Name)
		assert.Nil(t, apply.Input("configPatches"), "a patch may hold credentials, and this input is kept in plain text")
	}
	assert.True(t, r.Resource(t, "infra-bootstrap").SecretInput("stdin"))
}

func TestTalosCluster_OutputsItsCredentialsAsSecrets(t *testing.T) {
	var mu sync.Mutex
	got := map[string]string{}
	recorder := answers(&mocks.Recorder{})
	require.NoError(t, recorder.Run(program(arguments(t), func(ctx *pulumi.Context, c *TalosCluster) error {
		for name, out := range map[string]pulumi.StringOutput{
			"kubeconfig": c.Kubeconfig, "talosconfig": c.Talosconfig, "apiEndpoint": c.APIEndpoint,
		} {
			ctx.Export(name, out.ApplyT(func(value string) string {
				mu.Lock()
				defer mu.Unlock()
				got[name] = value
				return value
			}))
			assert.Equal(t, name != "apiEndpoint", pulumi.IsSecret(out), name)
		}
		return nil
	})))
	assert.Equal(t, map[string]string{
		"kubeconfig": "kubeconfig " + keyMaterial, "talosconfig": "talosconfig " + keyMaterial, "apiEndpoint": "https://10.25.11.10:6443",
	}, got)
}

func TestTalosCluster_LetsOthersWaitForItsLeaves(t *testing.T) {
	recorder := answers(&mocks.Recorder{})
	require.NoError(t, recorder.Run(program(arguments(t), func(ctx *pulumi.Context, c *TalosCluster) error {
		var after struct{ pulumi.ResourceState }
		assert.Equal(t, len(allMachines(t))+3, len(c.Leaves()))
		return ctx.RegisterComponentResource("test:index:After", "after", &after, pulumi.DependsOn(c.Leaves()))
	})))
	after := recorder.Only(t, "test:index:After")
	waits := append(recorder.OfType(typeApply), recorder.Resource(t, "infra-bootstrap"), recorder.Only(t, typeKubeconfig))
	for _, leaf := range waits {
		assert.Contains(t, after.Dependencies, leaf.URN)
	}
}

func TestTalosCluster_ExistsTwiceInOneProgram(t *testing.T) {
	recorder := answers(&mocks.Recorder{})
	require.NoError(t, recorder.Run(program(arguments(t), func(ctx *pulumi.Context, _ *TalosCluster) error {
		args := arguments(t)
		if err := providers(ctx, args); err != nil {
			return err
		}
		_, err := NewTalosCluster(ctx, "apps", args)
		return err
	})))
	names := recorder.Names()
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "pulumi:") })
	assert.Equal(t, len(names), len(slices.Compact(slices.Clone(names))), "names are unique: %v", names)
}
