package gitops_test

import (
	"testing"
	"time"

	"github.com/pulumi/pulumi-command/sdk/go/command"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/components/gitops"
	"github.com/slipway-platform/slipway/internal/step"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const (
	kubeconfig  = "KUBECONFIG-MARKER"
	commandType = "command:local:Command"
)

// run registers one GitOpsHandover behind a resource that stands for the gate's probe.
func run(rec *mocks.Recorder, mutate func(*gitops.GitOpsHandoverArgs)) error {
	if rec.OnResource == nil {
		rec.OnResource = func(reg mocks.Registration) (resource.PropertyMap, error) {
			if reg.Type != commandType {
				return nil, nil
			}
			return resource.PropertyMap{"stdout": resource.MakeSecret(resource.NewProperty(
				"Flux has taken over.\n" + `{"kind":"handover","cluster":"infra","outcome":"open","revision":"refs/heads/main@sha1:abc"}` + "\n"))}, nil
		}
	}
	return rec.Run(func(ctx *pulumi.Context) error {
		kube, err := kubernetes.NewProvider(ctx, "kube", &kubernetes.ProviderArgs{})
		if err != nil {
			return err
		}
		commands, err := command.NewProvider(ctx, "commands", nil)
		if err != nil {
			return err
		}
		gate, err := command.NewProvider(ctx, "gate", nil)
		if err != nil {
			return err
		}
		args := &gitops.GitOpsHandoverArgs{
			Cluster:    "infra",
			Kubeconfig: pulumi.ToSecret(pulumi.String(kubeconfig)).(pulumi.StringOutput),
			Operator:   gitops.Operator{Chart: "oci://ghcr.io/controlplaneio-fluxcd/charts/flux-operator", Version: "0.59.0"},
			Flux:       gitops.Flux{Version: "2.9.x", Registry: "ghcr.io/fluxcd"},
			Sync: gitops.Sync{
				URL: "https://git.home.arpa/platform/slipway.git", Branch: "main", Path: "kubernetes/clusters/infra", PullSecret: "flux-system",
			},
			Settings:           gitops.Settings{"CLUSTER_NAME": "infra", "POD_CIDR": "10.244.0.0/16"},
			KubernetesProvider: kube, CommandProvider: commands,
			DependsOn: []pulumi.Resource{gate}, DeletedWith: gate,
		}
		if mutate != nil {
			mutate(args)
		}
		handover, err := gitops.NewGitOpsHandover(ctx, "infra-gitops", args)
		if err != nil {
			return err
		}
		// A resource's inputs show under mocks what outputs do not.
		_, err = kubernetes.NewProvider(ctx, "reader", &kubernetes.ProviderArgs{
			Context: handover.Revision, Cluster: handover.Report,
		})
		return err
	})
}

func TestGitOpsHandover_InstallsTheOperatorThenTheInstanceThenVerifies(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(rec, nil))
	gate := rec.Resource(t, "gate")
	settings, operator := rec.Resource(t, "infra-gitops-settings"), rec.Resource(t, "infra-gitops-operator")
	instance, probe := rec.Resource(t, "infra-gitops-instance"), rec.Resource(t, "infra-gitops-probe")

	assert.Subset(t, instance.Dependencies, []string{gate.URN, settings.URN, operator.URN})
	assert.Subset(t, probe.Dependencies, []string{gate.URN, instance.URN})
	for _, reg := range []mocks.Registration{settings, operator, instance} {
		assert.Contains(t, reg.Dependencies, gate.URN, reg.Name)
		assert.Equal(t, gate.URN, reg.DeletedWith, reg.Name)
		assert.Equal(t, rec.Resource(t, "kube").URN, reg.ProviderURN(), reg.Name)
	}
	assert.Equal(t, rec.Resource(t, "commands").URN, probe.ProviderURN())
	assert.Equal(t, "flux-operator", operator.Input("name"))
	assert.Equal(t, "flux-system", operator.Input("namespace"))
	assert.Nil(t, operator.Input("repositoryOpts"), "an OCI chart has no repository")
	assert.Equal(t, map[string]any{"CLUSTER_NAME": "infra", "POD_CIDR": "10.244.0.0/16"}, settings.Input("data"))
	assert.Equal(t, "cluster-settings", settings.Input("metadata.name"))
}

func TestGitOpsHandover_SyncsTheClustersFolderWithItsSettings(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(rec, func(a *gitops.GitOpsHandoverArgs) { a.Sync.Interval = 90 * time.Second }))
	instance := rec.Resource(t, "infra-gitops-instance")
	assert.Equal(t, "fluxcd.controlplane.io/v1", instance.Input("apiVersion"))
	assert.Equal(t, "FluxInstance", instance.Input("kind"))
	assert.Equal(t, "flux", instance.Input("metadata.name"))
	assert.Equal(t, map[string]any{
		"kind": "GitRepository", "name": "flux-system", "url": "https://git.home.arpa/platform/slipway.git", "ref": "refs/heads/main",
		"path": "kubernetes/clusters/infra", "pullSecret": "flux-system", "interval": "1m30s",
	}, instance.Input("spec.sync"))
	assert.Equal(t, map[string]any{"version": "2.9.x", "registry": "ghcr.io/fluxcd"}, instance.Input("spec.distribution"))
	assert.Equal(t, []any{"source-controller", "kustomize-controller", "helm-controller"}, instance.Input("spec.components"))

	var patch []map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(instance.Input("spec.kustomize.patches[0].patch").(string)), &patch))
	assert.Equal(t, []map[string]any{{
		"op": "add", "path": "/spec/postBuild",
		"value": map[string]any{"substituteFrom": []any{map[string]any{"kind": "ConfigMap", "name": "cluster-settings"}}},
	}}, patch)
	assert.Contains(t, instance.Input("spec.kustomize.patches[1].patch"), "--requeue-dependency=5s")
	assert.Regexp(t, instance.Input("spec.kustomize.patches[1].target.name"), "kustomize-controller")
}

func TestGitOpsHandover_VerifiesExactlyWhatItInstalled(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(rec, nil))
	probe := rec.Resource(t, "infra-gitops-probe")
	assert.Equal(t, step.Program+" handover", probe.Input("create"))
	assert.True(t, probe.SecretInput("stdin"))
	assert.Contains(t, probe.AdditionalSecretOutputs, "stdin")
	var spec map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(probe.Input("stdin").(string)), &spec))
	for key, want := range map[string]any{
		"cluster": "infra", "kubeconfig": kubeconfig, "url": "https://git.home.arpa/platform/slipway.git",
		"ref": "refs/heads/main", "path": "kubernetes/clusters/infra",
	} {
		assert.Equal(t, want, spec[key], key)
	}
	for _, reg := range rec.Resources() {
		assert.Empty(t, reg.PlainPaths(kubeconfig), reg.Name)
	}
	reader := rec.Resource(t, "reader")
	assert.Equal(t, "refs/heads/main@sha1:abc", reader.Input("context"))
	assert.False(t, reader.SecretInput("context"), "a revision is no secret")
	assert.Contains(t, reader.Input("cluster"), `"outcome":"open"`)
	assert.NotContains(t, reader.Input("cluster"), "Flux has taken over", "the report is the JSON line alone")
}

func TestGitOpsHandover_RunsTheProbeAgainExactlyWhenFluxHasSomethingToFollow(t *testing.T) {
	triggers := func(mutate func(*gitops.GitOpsHandoverArgs)) any {
		rec := &mocks.Recorder{}
		require.NoError(t, run(rec, mutate))
		return rec.Resource(t, "infra-gitops-probe").Input("triggers")
	}
	base := triggers(nil)
	assert.Equal(t, base, triggers(nil))
	assert.NotEqual(t, base, triggers(func(a *gitops.GitOpsHandoverArgs) { a.Operator.Version = "0.60.0" }))
	assert.NotEqual(t, base, triggers(func(a *gitops.GitOpsHandoverArgs) { a.Flux.Version = "2.10.x" }))
	assert.NotEqual(t, base, triggers(func(a *gitops.GitOpsHandoverArgs) { a.Settings["POD_CIDR"] = "10.248.0.0/16" }))
}

func TestGitOpsHandover_RejectsArgsBeforeAnythingIsRegistered(t *testing.T) {
	for problem, mutate := range map[string]func(*gitops.GitOpsHandoverArgs){
		"cluster: missing":             func(a *gitops.GitOpsHandoverArgs) { a.Cluster = "" },
		"kubeconfig: missing":          func(a *gitops.GitOpsHandoverArgs) { a.Kubeconfig = nil },
		"operator.chart: missing":      func(a *gitops.GitOpsHandoverArgs) { a.Operator.Chart = "" },
		"operator.version: missing":    func(a *gitops.GitOpsHandoverArgs) { a.Operator.Version = "" },
		"flux.version: missing":        func(a *gitops.GitOpsHandoverArgs) { a.Flux.Version = "" },
		"flux.registry: missing":       func(a *gitops.GitOpsHandoverArgs) { a.Flux.Registry = "" },
		"sync.url: is not":             func(a *gitops.GitOpsHandoverArgs) { a.Sync.URL = "git@git.home.arpa:x.git" },
		"sync.url: has credentials":    func(a *gitops.GitOpsHandoverArgs) { a.Sync.URL = "https://flux:hunter2@git.home.arpa/x.git" },
		"sync.branch: missing":         func(a *gitops.GitOpsHandoverArgs) { a.Sync.Branch = "" },
		"sync.branch: refs/heads/main": func(a *gitops.GitOpsHandoverArgs) { a.Sync.Branch = "refs/heads/main" },
		"sync.path: /x is absolute":    func(a *gitops.GitOpsHandoverArgs) { a.Sync.Path = "/x" },
		"sync.pullSecret: missing":     func(a *gitops.GitOpsHandoverArgs) { a.Sync.PullSecret = "" },
		"sync.interval: -1s":           func(a *gitops.GitOpsHandoverArgs) { a.Sync.Interval = -time.Second },
		"timeout: -1s":                 func(a *gitops.GitOpsHandoverArgs) { a.Timeout = -time.Second },
		"settings: missing":            func(a *gitops.GitOpsHandoverArgs) { a.Settings = nil },
		"settings.podCIDR: is not":     func(a *gitops.GitOpsHandoverArgs) { a.Settings["podCIDR"] = "x" },
		"settings.MESH_IP: is empty":   func(a *gitops.GitOpsHandoverArgs) { a.Settings["MESH_IP"] = "" },
		"kubernetesProvider: missing":  func(a *gitops.GitOpsHandoverArgs) { a.KubernetesProvider = nil },
		"commandProvider: missing":     func(a *gitops.GitOpsHandoverArgs) { a.CommandProvider = nil },
	} {
		rec := &mocks.Recorder{}
		err := run(rec, mutate)
		require.ErrorContains(t, err, problem)
		assert.NotContains(t, err.Error(), "hunter2")
		assert.Empty(t, rec.OfType("slipway:gitops:GitOpsHandover"), problem)
	}
}
