package handover_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pulumi/pulumi-command/sdk/go/command"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/handover"
	"github.com/slipway-platform/slipway/components/internal/handovertest"
	"github.com/slipway-platform/slipway/components/internal/settings"
	verify "github.com/slipway-platform/slipway/internal/engines/flux/handover"
	"github.com/slipway-platform/slipway/internal/engines/flux/prune"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// run registers a handover to an engine that is one resource.
func run(t *testing.T, change func(*handover.Args)) *mocks.Recorder {
	t.Helper()
	rec := &mocks.Recorder{}
	require.NoError(t, handovertest.Run(rec, func(
		ctx *pulumi.Context, in component.InCluster, steps component.Steps,
	) (*handover.GitOpsHandover, error) {
		args := &handover.Args{
			InCluster: in, Steps: steps, Settings: settings.Settings{"CLUSTER_NAME": "infra"},
			GitOps: cluster.GitOps{Timeout: cluster.Duration{Duration: 10 * time.Minute}},
			Install: func(parent pulumi.Resource) ([]pulumi.Resource, error) {
				engine, err := command.NewProvider(ctx, "engine", nil, pulumi.Parent(parent))
				return []pulumi.Resource{engine}, err
			},
			Verify: "handover", VerifySpec: func(target health.Target) probe.Spec { return &verify.Spec{Target: target} },
			Triggers: pulumi.Array{pulumi.String("flux 2.9.5")},
			Remove:   "prune", RemoveSpec: func(target probe.Target) probe.Spec { return &prune.Spec{Target: target} },
		}
		if change != nil {
			change(args)
		}
		return handover.New(ctx, "slipway:test:GitOpsHandover", "gitops", args)
	}))
	return rec
}

func specOf(t *testing.T, reg mocks.Registration) (spec map[string]any) {
	t.Helper()
	assert.True(t, reg.SecretInput("stdin"))
	assert.Contains(t, reg.AdditionalSecretOutputs, "stdin")
	require.NoError(t, json.Unmarshal([]byte(reg.Input("stdin").(string)), &spec))
	return spec
}

func TestNew_VerifiesAfterTheEngineAndPassesOnTheReport(t *testing.T) {
	rec := run(t, nil)
	verified := rec.Resource(t, "gitops-probe")
	assert.Equal(t, probe.Program+" handover", verified.Input("create"))
	assert.Subset(t, verified.Dependencies, []string{rec.Resource(t, "gate").URN, rec.Resource(t, "engine").URN})
	assert.Equal(t, rec.Resource(t, "commands").URN, verified.ProviderURN())
	assert.Equal(t, map[string]any{"cluster": "infra", "kubeconfig": handovertest.Kubeconfig, "timeout": "10m0s"}, specOf(t, verified))
	assert.Contains(t, rec.Resource(t, "next").Dependencies, verified.URN, "resources that need the engine wait for the probe")
	reader := rec.Resource(t, "reader")
	assert.Equal(t, "refs/heads/main@sha1:abc", reader.Input("context"))
	assert.False(t, reader.SecretInput("context"), "a revision is no secret")
	assert.Contains(t, reader.Input("cluster"), `"outcome":"open"`)
	assert.NotContains(t, reader.Input("cluster"), "has taken over", "the report is the JSON line alone")
	for _, reg := range rec.Resources() {
		assert.Empty(t, reg.PlainPaths(handovertest.Kubeconfig), reg.Name)
	}
}

func TestNew_VerifiesAgainAfterAChangeOfTheEngineTheVMsOrTheSettings(t *testing.T) {
	triggers := func(change func(*handover.Args)) any {
		return run(t, change).Resource(t, "gitops-probe").Input("triggers")
	}
	base := triggers(nil)
	assert.Equal(t, base, triggers(nil))
	for name, change := range map[string]func(*handover.Args){
		"engine":   func(a *handover.Args) { a.Triggers = nil },
		"VMs":      func(a *handover.Args) { a.VMs = pulumi.String("another") },
		"a value":  func(a *handover.Args) { a.Settings["CLUSTER_NAME"] = "apps" },
		"new name": func(a *handover.Args) { a.Settings["POD_CIDR"] = "10.248.0.0/16" },
	} {
		assert.NotEqual(t, base, triggers(change), name)
	}
}

// A change of the policy must be an update: if the resource went with "", its deletion would remove everything.
func TestRemoval_IsRegisteredWithoutACommandTooAndIsNeverReplaced(t *testing.T) {
	for subcommand, command := range map[string]any{"": nil, "prune": probe.Program + " prune"} {
		reg := run(t, func(a *handover.Args) { a.Remove = subcommand }).Resource(t, "gitops-removal")
		assert.Equal(t, handovertest.Command, reg.Type)
		assert.Equal(t, command, reg.Input("delete"))
		assert.Nil(t, reg.Input("create"), "it runs when it is deleted, and at no other time")
		assert.Nil(t, reg.Input("update"))
		assert.Nil(t, reg.Input("triggers"))
		assert.Equal(t, []string{"triggers[*]"}, reg.ReplaceOnChanges, "the SDK's own, and there are no triggers")
		assert.Empty(t, reg.RPC.GetReplaceWith(), "a replacement would delete it")
		assert.Nil(t, reg.RPC.GetReplacementTrigger())
		assert.Empty(t, reg.PropertyDependencies["delete"])
	}
}

func TestRemoval_RunsBeforeTheEngineIsUninstalledAndNotWithTheEndOfTheCluster(t *testing.T) {
	rec := run(t, nil)
	reg := rec.Resource(t, "gitops-removal")
	for _, name := range []string{"gate", "engine"} {
		assert.Contains(t, reg.Dependencies, rec.Resource(t, name).URN, name)
	}
	assert.Contains(t, rec.Resource(t, "gitops-probe").Dependencies, reg.URN,
		"the probe has left the state before anything is removed, and is made anew if GitOps comes back")
	assert.Equal(t, rec.Resource(t, "gate").URN, reg.DeletedWith)
	assert.Equal(t, rec.Resource(t, "commands").URN, reg.ProviderURN())
	assert.NotContains(t, rec.Resource(t, "next").Dependencies, reg.URN, "nothing waits for it")
}

func TestRemoval_GetsTheKubeconfigOnStandardInputAlone(t *testing.T) {
	reg := run(t, nil).Resource(t, "gitops-removal")
	assert.Equal(t, map[string]any{"cluster": "infra", "kubeconfig": handovertest.Kubeconfig, "timeout": "10m0s"}, specOf(t, reg))
	assert.Empty(t, reg.PlainPaths(handovertest.Kubeconfig))
	assert.Equal(t, false, reg.Input("addPreviousOutputInEnv"))
	assert.Equal(t, "15m0s", reg.CustomTimeouts.GetDelete(), "the probe ends first, with a report")
	assert.Equal(t, "stderr", reg.Input("logging"))
}
