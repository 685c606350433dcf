package graph

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestResources_NameTheirProvider(t *testing.T) {
	eachStack(t, func(t *testing.T, _ *cluster.Cluster, rec *mocks.Recorder) {
		managed := rec.Find(func(reg mocks.Registration) bool { return reg.Custom && !isProvider(reg) })
		require.Greater(t, len(managed), 20)
		for _, reg := range managed {
			if reg.Type == typeStash { // the engine's own resource, without a provider
				continue
			}
			assert.NotEmpty(t, reg.ProviderURN(), "%s %s uses a default provider", reg.Type, reg.Name)
		}
		require.NotEmpty(t, rec.Calls())
		for _, call := range rec.Calls() {
			if call.Token == callStackOutputs { // the engine's own function
				continue
			}
			assert.NotEmpty(t, call.Provider, "%s uses a default provider", call.Token)
		}
		kubernetes := rec.Only(t, "pulumi:providers:kubernetes").URN
		for _, reg := range rec.Find(inCluster) {
			assert.Equal(t, kubernetes, reg.ProviderURN(), reg.Name)
		}
	})
}

func TestResources_ThatRunTheProbeShowSentencesAndNoReport(t *testing.T) {
	eachStack(t, func(t *testing.T, _ *cluster.Cluster, rec *mocks.Recorder) {
		commands := rec.OfType(typeCommand)
		require.Greater(t, len(commands), 4)
		for _, command := range commands {
			assert.Equal(t, "stderr", command.Input("logging"), command.Name)
		}
	})
}

// A run for a change that failed must not be left out because the change was taken back. Pulumi forgets the former run first, and would
// delete what has a property of it.
func TestResources_ThatRunTheProbeRunItAgainAfterAFailure(t *testing.T) {
	check := func(t *testing.T, rec *mocks.Recorder) {
		again := map[string]bool{}
		for _, command := range rec.OfType(typeCommand) {
			runs := command.Input("create") != nil && command.Input("update") == nil
			assert.Equal(t, runs, command.RPC.GetDeleteBeforeReplace(), command.Name)
			again[command.URN] = runs
		}
		require.Greater(t, len(again), 4)
		for _, reg := range rec.Find(func(reg mocks.Registration) bool { return reg.Custom }) {
			for property, urns := range reg.PropertyDependencies {
				for _, urn := range urns {
					assert.False(t, again[urn], "%s: %s is a property of %s", reg.Name, property, urn)
				}
			}
		}
	}
	eachStack(t, func(t *testing.T, _ *cluster.Cluster, rec *mocks.Recorder) { check(t, rec) })
	check(t, upFile(t, fixtures.Write(t, "argocd", "infra")))
}

// A run that is killed between the creation of an object and its record leaves the object to a field manager that is nobody any more.
func TestResources_AreWrittenWhoeverWroteThemBefore(t *testing.T) {
	check := func(t *testing.T, rec *mocks.Recorder) {
		written := rec.Find(func(reg mocks.Registration) bool {
			return inCluster(reg) && !strings.HasPrefix(reg.Type, "kubernetes:helm.sh/") && reg.Type != "kubernetes:core/v1:Namespace"
		})
		require.Greater(t, len(written), 2)
		for _, reg := range written {
			assert.Equal(t, "true", reg.Input(`metadata.annotations["pulumi.com/patchForce"]`), "%s %s", reg.Type, reg.Name)
		}
	}
	eachStack(t, func(t *testing.T, _ *cluster.Cluster, rec *mocks.Recorder) { check(t, rec) })
	check(t, upFile(t, fixtures.Write(t, "argocd", "infra")))
}

func TestResources_HaveUniqueNames(t *testing.T) {
	eachStack(t, func(t *testing.T, _ *cluster.Cluster, rec *mocks.Recorder) {
		seen := map[string]bool{}
		for _, reg := range rec.Resources() {
			assert.False(t, seen[reg.URN], "%s is registered twice", reg.URN)
			seen[reg.URN] = true
		}
	})
}

func TestResources_ProtectMachineSecretsAndControlPlanes(t *testing.T) {
	eachStack(t, func(t *testing.T, stack *cluster.Cluster, rec *mocks.Recorder) {
		assert.True(t, rec.Only(t, typeSecrets).Protect)
		controlPlane := map[any]bool{}
		for _, node := range stack.ControlPlanes() {
			controlPlane[node.Name] = true
		}
		machines := rec.OfType(typeVM)
		assert.Len(t, machines, len(stack.Machines()))
		for _, machine := range machines {
			assert.Equal(t, controlPlane[machine.Input("name")], machine.Protect, "%v", machine.Input("name"))
		}
	})
}

func TestResources_InTheClusterAreDeletedWithTheCluster(t *testing.T) {
	eachStack(t, func(t *testing.T, _ *cluster.Cluster, rec *mocks.Recorder) {
		kubernetes := rec.Resource(t, kubernetes).URN
		objects := rec.Find(inCluster)
		require.GreaterOrEqual(t, len(objects), 6)
		for _, reg := range objects {
			assert.Equal(t, kubernetes, reg.DeletedWith, "%s would need an API that answers to be destroyed", reg.Name)
			assert.Contains(t, reg.RPC.GetReplaceWith(), kubernetes, "%s would be missing in a cluster that was bootstrapped again", reg.Name)
		}
	})
}

func TestResources_VouchForMachinesAgainThatWereReplaced(t *testing.T) {
	eachStack(t, func(t *testing.T, stack *cluster.Cluster, rec *mocks.Recorder) {
		var all []string
		for _, apply := range rec.OfType(typeApply) {
			require.Len(t, apply.RPC.GetReplaceWith(), 1, "it is replaced with its VM")
			all = append(all, apply.URN)
		}
		require.Len(t, all, len(stack.Machines()))
		assert.Empty(t, rec.Resource(t, bootstrapName).RPC.GetReplaceWith(), "an update knows that the cluster existed")
		if stack.Workers.Join != cluster.JoinAfterGate {
			assert.ElementsMatch(t, all, rec.Resource(t, machinesGate).RPC.GetReplaceWith())
		}
		last := gate
		if stack.Workers.Join == cluster.JoinAfterGate {
			last = "workers-probe"
		}
		assert.ElementsMatch(t, all, rec.Resource(t, last).RPC.GetReplaceWith())
		assert.Contains(t, rec.Resource(t, handover).RPC.GetReplaceWith(), rec.Resource(t, kubernetes).URN)
		assert.Contains(t, rec.Resource(t, kubernetes).Dependencies, rec.Resource(t, machinesGate).URN)
	})
}

func TestResources_ContainNoSecretInPlainText(t *testing.T) {
	eachStack(t, func(t *testing.T, _ *cluster.Cluster, rec *mocks.Recorder) {
		for _, reg := range rec.Resources() {
			for _, secret := range []string{gitPassword, proxmoxToken, keyMaterial} {
				for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
					assert.Empty(t, reg.PlainPaths(form), "%s %s", reg.Type, reg.Name)
				}
			}
		}
		for name, path := range map[string]string{
			"proxmox": "apiToken", gitSecret: "data.password", ciliumRelease: "values.hubble.tls.server.key",
			gate: "stdin", machinesGate: "stdin", handover: "stdin", bootstrapName: "stdin",
		} {
			assert.True(t, rec.Resource(t, name).SecretInput(path), "%s %s", name, path)
		}
	})
}

func TestResources_AgreeOnEachSharedValue(t *testing.T) {
	eachStack(t, func(t *testing.T, stack *cluster.Cluster, rec *mocks.Recorder) {
		release, settings := rec.Resource(t, ciliumRelease), rec.Resource(t, "gitops-settings")
		assert.Equal(t, stack.Network.PodCIDR.String(), release.Input("values.ipv4NativeRoutingCIDR"))
		assert.Equal(t, stack.Network.PodCIDR.String(), settings.Input("data.POD_CIDR"))
		assert.Equal(t, float64(stack.Identity.ID), release.Input("values.cluster.id"))
		assert.Equal(t, stack.Network.LoadBalancers.Mesh.String(), settings.Input("data.MESH_IP"))
		assert.Equal(t, stack.Network.LoadBalancers.Gateway.String(), settings.Input("data.GATEWAY_IP"))
		assert.Equal(t, stack.GitOps.Path, rec.Resource(t, instance).Input("spec.sync.path"))
	})
}

func TestResources_ThatDependOnCiliumsModeWaitForItsCheck(t *testing.T) {
	eachStack(t, func(t *testing.T, _ *cluster.Cluster, rec *mocks.Recorder) {
		acting := append(rec.OfType(typeApply), rec.Resource(t, ciliumRelease))
		acting = append(acting, rec.OfType("slipway:talos:MachineConfiguration")...)
		require.Greater(t, len(acting), 4)
		for _, reg := range acting {
			assert.True(t, rec.After(reg, rec.Resource(t, ciliumMode)), reg.Name)
		}
	})
}

func TestResources_CheckForALeftoverBeforeAMachineIsCreated(t *testing.T) {
	eachStack(t, func(t *testing.T, stack *cluster.Cluster, rec *mocks.Recorder) {
		assert.GreaterOrEqual(t, len(rec.Hooks()), len(stack.Machines()))
		for _, hook := range rec.Hooks() {
			comparesWithTheState := hook.Name == "cilium-mode" || hook.Name == "talos-hosts" || hook.Name == retireName ||
				strings.HasSuffix(hook.Name, "-disks") || strings.HasSuffix(hook.Name, "-move") ||
				strings.HasSuffix(hook.Name, "-reboot") || strings.HasSuffix(hook.Name, "-owner") ||
				strings.HasSuffix(hook.Name, "-returning")
			assert.Equal(t, comparesWithTheState, hook.OnDryRun,
				"%s sends requests in a preview, or does not check the state in one", hook.Name)
		}
		for _, machine := range rec.OfType(typeVM) {
			assert.Len(t, machine.BeforeCreate, 1, machine.Name)
		}
	})
}
