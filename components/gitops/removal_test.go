package gitops_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/gitops"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// removal returns the removal that a policy registers.
func removal(t *testing.T, policy cluster.DeletionPolicy) (mocks.Registration, *mocks.Recorder) {
	t.Helper()
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, func(a *gitops.GitOpsHandoverArgs) {
		a.GitOps.DeletionPolicy = policy
		a.GitOps.Timeout = cluster.Duration{Duration: 10 * time.Minute}
	}))
	return rec.Resource(t, "infra-gitops-removal"), rec
}

// A change of the policy must be an update: if the resource went with `orphan`, its deletion would remove everything.
func TestRemoval_IsRegisteredWithEachPolicyAndRunsOnlyWithDelete(t *testing.T) {
	for policy, command := range map[cluster.DeletionPolicy]any{
		cluster.DeletionOrphan: nil, cluster.DeletionDelete: probe.Program + " prune",
	} {
		reg, _ := removal(t, policy)
		assert.Equal(t, commandType, reg.Type)
		assert.Equal(t, command, reg.Input("delete"), policy)
		assert.Nil(t, reg.Input("create"), "%s: it runs when it is deleted, and at no other time", policy)
		assert.Nil(t, reg.Input("update"), policy)
	}
}

func TestRemoval_RunsBeforeFluxIsUninstalledAndNotWithTheEndOfTheCluster(t *testing.T) {
	reg, rec := removal(t, cluster.DeletionDelete)
	for _, name := range []string{"gate", "infra-gitops-instance"} {
		assert.Contains(t, reg.Dependencies, rec.Resource(t, name).URN, name)
	}
	assert.Contains(t, rec.Resource(t, "infra-gitops-probe").Dependencies, reg.URN,
		"the probe has left the state before anything is removed, and is made anew if GitOps comes back")
	assert.Equal(t, rec.Resource(t, "gate").URN, reg.DeletedWith)
	assert.Equal(t, rec.Resource(t, "commands").URN, reg.ProviderURN())
	assert.NotContains(t, rec.Resource(t, "next").Dependencies, reg.URN, "nothing waits for it")
}

// A replacement would delete it.
func TestRemoval_IsNeverReplaced(t *testing.T) {
	for _, policy := range cluster.DeletionPolicy("").Choices() {
		reg, _ := removal(t, cluster.DeletionPolicy(policy))
		assert.Nil(t, reg.Input("triggers"), policy)
		assert.Equal(t, []string{"triggers[*]"}, reg.ReplaceOnChanges, "the SDK's own, and there are no triggers")
		assert.Empty(t, reg.RPC.GetReplaceWith(), policy)
		assert.Nil(t, reg.RPC.GetReplacementTrigger(), policy)
		assert.Empty(t, reg.PropertyDependencies["delete"], policy)
	}
}

func TestRemoval_GetsTheKubeconfigOnStandardInputAlone(t *testing.T) {
	reg, _ := removal(t, cluster.DeletionDelete)
	assert.True(t, reg.SecretInput("stdin"))
	assert.Contains(t, reg.AdditionalSecretOutputs, "stdin")
	assert.Empty(t, reg.PlainPaths(kubeconfig))
	assert.Equal(t, false, reg.Input("addPreviousOutputInEnv"))
	var spec map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(reg.Input("stdin").(string)), &spec))
	assert.Equal(t, map[string]any{
		"cluster": "infra", "kubeconfig": kubeconfig, "timeout": "10m0s", "namespace": "flux-system", "instance": "flux",
		"kustomization": "flux-system",
	}, spec)
	assert.Equal(t, "15m0s", reg.CustomTimeouts.GetDelete(), "the probe ends first, with a report")
	assert.Equal(t, "stderr", reg.Input("logging"))
}
