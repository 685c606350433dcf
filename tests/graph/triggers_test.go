package graph

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// gatesWith returns the probe of each gate of a stack whose workers join later, with the given secret patches;
// "" means none.
func gatesWith(t *testing.T, patches string) map[string]mocks.Registration {
	t.Helper()
	rec := newRecorderOf(t, fixtures.Write(t, "after-gate", "infra"), "infra")
	rec.Secrets["slipway:talosSecretPatches"] = patches
	if patches == "" {
		delete(rec.Secrets, "slipway:talosSecretPatches") // an empty value is refused
	}
	require.NoError(t, rec.Run(stacks.Deploy))
	gates := map[string]mocks.Registration{}
	for _, name := range []string{machinesGate, gate, workersGate} {
		gates[name] = rec.Resource(t, name)
	}
	return gates
}

func TestMachines_AreConfiguredWithTheSecretPatches(t *testing.T) {
	rec := newRecorderOf(t, fixtures.Write(t, "after-gate", "infra"), "infra")
	rec.Secrets["slipway:talosSecretPatches"] = secretPatches
	require.NoError(t, rec.Run(stacks.Deploy))
	asked := 0
	for _, call := range rec.Calls() {
		if call.Token == "talos:machine/getConfiguration:getConfiguration" {
			asked++
			assert.Contains(t, fmt.Sprint(call.Args.Mappable()["configPatches"]), "PATCH-MARKER")
		}
	}
	require.NotZero(t, asked)
}

// Every machine is configured again with the changed patch, which may break it.
func TestGates_RunAgainAfterAChangeOfTheSecretPatches(t *testing.T) {
	const changed = "all: [{machine: {registries: {config: {registry.example.com: {auth: {password: OTHER}}}}}}]"
	with, same, other, without := gatesWith(t, secretPatches), gatesWith(t, secretPatches), gatesWith(t, changed), gatesWith(t, "")
	for name := range with {
		assert.Equal(t, with[name].Input("triggers"), same[name].Input("triggers"), name)
		assert.NotEqual(t, with[name].Input("triggers"), other[name].Input("triggers"), name)
		assert.NotEqual(t, with[name].Input("triggers"), without[name].Input("triggers"), name)
	}
}

// A checksum of a short secret is enough to guess the secret.
func TestGates_TheChecksumOfTheSecretPatchesIsASecret(t *testing.T) {
	with, other := gatesWith(t, secretPatches), gatesWith(t, "all: []")
	for name, probe := range with {
		assert.Contains(t, probe.AdditionalSecretOutputs, "triggers", name)
		last := len(probe.Input("triggers").([]any)) - 1
		triggers := probe.Inputs["triggers"].ArrayValue()
		require.True(t, triggers[last].IsSecret(), name)
		assert.Equal(t, triggers[:last], other[name].Inputs["triggers"].ArrayValue()[:last], "%s: only the secret one differs", name)
		text, err := json.Marshal(probe.Input("triggers"))
		require.NoError(t, err)
		assert.NotContains(t, string(text), "PATCH-MARKER", name)
	}
}

func TestGates_WithoutSecretPatchesHaveNoTriggerForThem(t *testing.T) {
	gates := gatesWith(t, "")
	for name, want := range map[string][]string{
		machinesGate: {"machines", "vms"}, gate: {"cilium", "machines", "network", "vms"},
		workersGate: {"cilium", "machines", "network", "vms"},
	} {
		probe := gates[name]
		var keys []string
		for _, trigger := range probe.Input("triggers").([]any) {
			for key := range trigger.(map[string]any) {
				keys = append(keys, key)
			}
		}
		assert.Equal(t, want, keys, name)
		assert.NotContains(t, probe.AdditionalSecretOutputs, "triggers", name)
	}
}

// The engine replaces a gate together with a machine in the run that makes the VM only. If that run ends before the gate, only the gate's
// inputs tell the next run that the gate vouched for other machines.
func TestGates_VouchForAnotherVMInALaterRun(t *testing.T) {
	eachStack(t, func(t *testing.T, stack *cluster.Cluster, rec *mocks.Recorder) {
		for _, name := range []string{machinesGate, gate, handover} {
			var vms map[string]any
			for _, trigger := range rec.Resource(t, name).Input("triggers").([]any) {
				if object, is := trigger.(map[string]any); is && object["vms"] != nil {
					vms = object["vms"].(map[string]any)
				} else if is && object[stack.ControlPlanes()[0].Name] != nil {
					vms = object
				}
			}
			for _, node := range stack.FirstMachines() {
				require.Contains(t, vms, node.Name, name)
			}
		}
	})
}

// Flux reads a changed secret when it fetches or decrypts the next time, which may be long after up.
func TestHandover_FluxTriesAChangedSecretBeforeUpEnds(t *testing.T) {
	const password, other = "correct horse battery", "correct horse staple"
	registered := func(password string) (triggers, patches any) {
		rec := newRecorderOf(t, fixtures.Write(t, "minimal", "infra"), "infra")
		rec.Secrets["slipway:gitPassword"] = password
		require.NoError(t, rec.Run(stacks.Deploy))
		return rec.Resource(t, handover).Input("triggers"), rec.Resource(t, instance).Input("spec.kustomize.patches")
	}
	triggers, patches := registered(password)
	sameTriggers, samePatches := registered(password)
	assert.Equal(t, triggers, sameTriggers)
	assert.Equal(t, patches, samePatches)
	changedTriggers, changedPatches := registered(other)
	assert.NotEqual(t, triggers, changedTriggers)
	assert.NotEqual(t, patches, changedPatches)
}
