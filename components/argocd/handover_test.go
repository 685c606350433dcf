package argocd_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/argocd"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/handovertest"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// declared returns infra, handed over to Argo CD.
func declared(t *testing.T) *cluster.Cluster {
	t.Helper()
	return clusters.Infra(t, func(c *cluster.Cluster) { c.GitOps.Engine, c.Storage.Vault = cluster.EngineArgoCD, "" })
}

// run registers one GitOpsHandover.
func run(t *testing.T, rec *mocks.Recorder, mutate func(*argocd.GitOpsHandoverArgs)) error {
	t.Helper()
	return handovertest.Run(rec, func(ctx *pulumi.Context, in component.InCluster, steps component.Steps) (*argocd.GitOpsHandover, error) {
		c := declared(t)
		args := &argocd.GitOpsHandoverArgs{
			InCluster: in, Steps: steps, GitOps: c.GitOps, Release: c.ArgoCDService(),
			Settings: argocd.Settings{"CLUSTER_NAME": "infra", "SETTINGS_CHECKSUM": "CHECKSUM-MARKER"},
		}
		var err error
		if args.Before, err = argocd.RefuseForeign(ctx, "infra-foreign", "infra", args.Kubeconfig); err != nil {
			return nil, err
		}
		if mutate != nil {
			mutate(args)
		}
		return argocd.NewGitOpsHandover(ctx, "infra-gitops", args)
	})
}

func TestGitOpsHandover_InstallsArgoCDThenTheRootThenVerifies(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, nil))
	gate := rec.Resource(t, "gate")
	settings, release := rec.Resource(t, "infra-gitops-settings"), rec.Resource(t, "infra-gitops-release")
	root, verify := rec.Resource(t, "infra-gitops-root"), rec.Resource(t, "infra-gitops-probe")
	assert.Contains(t, release.Dependencies, settings.URN, "the repo-server's pods mount the settings")
	assert.Subset(t, root.Dependencies, []string{settings.URN, release.URN})
	assert.Subset(t, verify.Dependencies, []string{gate.URN, root.URN, release.URN})
	for _, reg := range []mocks.Registration{settings, release, root} {
		assert.Contains(t, reg.Dependencies, gate.URN, reg.Name)
		assert.Equal(t, gate.URN, reg.DeletedWith, reg.Name)
		assert.Equal(t, rec.Resource(t, "kube").URN, reg.ProviderURN(), reg.Name)
	}
	assert.Equal(t, []any{"argocd", "argocd", "argo-cd", true}, []any{
		release.Input("name"), release.Input("namespace"), release.Input("chart"), release.Input("skipAwait"),
	})
	assert.Equal(t, map[string]any{"CLUSTER_NAME": "infra", "SETTINGS_CHECKSUM": "CHECKSUM-MARKER"}, settings.Input("data"))
	assert.Equal(t, []any{"cluster-settings", "argocd"}, []any{settings.Input("metadata.name"), settings.Input("metadata.namespace")})
}

func TestGitOpsHandover_DeclaresTheRootApplication(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, nil))
	root := rec.Resource(t, "infra-gitops-root")
	assert.Equal(t, []any{"root", "argocd"}, []any{root.Input("metadata.name"), root.Input("metadata.namespace")})
	assert.Nil(t, root.Input("metadata.finalizers"), "who deletes it by hand removes nothing that it has applied")
	assert.Equal(t, map[string]any{
		"project":     "default",
		"destination": map[string]any{"server": "https://kubernetes.default.svc", "namespace": "argocd"},
		"source": map[string]any{
			"repoURL": "https://git.home.arpa/platform/slipway.git", "targetRevision": "main", "path": "kubernetes/clusters/infra",
			"plugin": map[string]any{
				"name": "cluster-settings", "env": []any{map[string]any{"name": "SETTINGS", "value": "CHECKSUM-MARKER"}},
			},
		},
		"syncPolicy": map[string]any{
			"automated":   map[string]any{"prune": true, "selfHeal": true},
			"syncOptions": []any{"ServerSideApply=true"},
			"retry": map[string]any{
				"limit": float64(-1), "refresh": true, "backoff": map[string]any{"duration": "5s", "factor": float64(2), "maxDuration": "1m"},
			},
		},
	}, root.Input("spec"))
}

func TestGitOpsHandover_LooksForAnotherEngineBeforeItsFirstObject(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, nil))
	assert.Equal(t, []string{"infra-foreign"}, rec.Resource(t, "infra-gitops-settings").BeforeCreate)
	for _, hook := range rec.Hooks() {
		if hook.Name == "infra-foreign" {
			assert.False(t, hook.OnDryRun, "a preview needs no cluster")
			return
		}
	}
	t.Error("there is no hook")
}

func TestGitOpsHandover_VerifiesExactlyWhatItInstalled(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, func(a *argocd.GitOpsHandoverArgs) { a.GitOps.Timeout = cluster.Duration{Duration: 90 * time.Second} }))
	verify := rec.Resource(t, "infra-gitops-probe")
	assert.Equal(t, probe.Program+" argocd", verify.Input("create"))
	var spec map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(verify.Input("stdin").(string)), &spec))
	for key, want := range map[string]any{
		"cluster": "infra", "kubeconfig": handovertest.Kubeconfig, "namespace": "argocd", "root": "root",
		"url": "https://git.home.arpa/platform/slipway.git", "ref": "main", "path": "kubernetes/clusters/infra", "timeout": "1m30s",
	} {
		assert.Equal(t, want, spec[key], key)
	}
}

func TestGitOpsHandover_RunsTheProbeAgainExactlyAfterAChangeThatArgoCDApplies(t *testing.T) {
	triggers := func(mutate func(*argocd.GitOpsHandoverArgs)) any {
		rec := &mocks.Recorder{}
		require.NoError(t, run(t, rec, mutate))
		return rec.Resource(t, "infra-gitops-probe").Input("triggers")
	}
	base := triggers(nil)
	assert.Equal(t, base, triggers(nil))
	for name, mutate := range map[string]func(*argocd.GitOpsHandoverArgs){
		"version": func(a *argocd.GitOpsHandoverArgs) { a.Release.Version = "10.9.0" },
		"values": func(a *argocd.GitOpsHandoverArgs) {
			a.Release.UserValues = cluster.ChartValues(`{"server":{"replicas":2}}`)
		},
		"access":     func(a *argocd.GitOpsHandoverArgs) { a.Access = pulumi.String("aaaa") },
		"VMs":        func(a *argocd.GitOpsHandoverArgs) { a.VMs = pulumi.String("another") },
		"settings":   func(a *argocd.GitOpsHandoverArgs) { a.Settings["POD_CIDR"] = "10.248.0.0/16" },
		"how":        func(a *argocd.GitOpsHandoverArgs) { a.GitOps.Public = true },
		"how many":   func(a *argocd.GitOpsHandoverArgs) { a.GitOps.ArgoCD.HighAvailability = true },
		"path":       func(a *argocd.GitOpsHandoverArgs) { a.GitOps.Path = "kubernetes/other" },
		"branch":     func(a *argocd.GitOpsHandoverArgs) { a.GitOps.Branch = "other" },
		"whose":      func(a *argocd.GitOpsHandoverArgs) { a.GitOps.ArgoCD.CredentialsFor = "https://git.home.arpa/platform" },
		"a new name": func(a *argocd.GitOpsHandoverArgs) { a.Settings["ANOTHER"] = "x" },
	} {
		assert.NotEqual(t, base, triggers(mutate), name)
	}
}

func TestGitOpsHandover_RemovesTheApplicationsBeforeArgoCDGoes(t *testing.T) {
	for policy, deletes := range map[cluster.DeletionPolicy]any{cluster.DeletionOrphan: nil, cluster.DeletionDelete: true} {
		rec := &mocks.Recorder{}
		require.NoError(t, run(t, rec, func(a *argocd.GitOpsHandoverArgs) { a.GitOps.DeletionPolicy = policy }))
		removal := rec.Resource(t, "infra-gitops-removal")
		assert.Equal(t, probe.Program+" argocd-removal", removal.Input("delete"), "with either policy: their finalizers would stay")
		for _, name := range []string{"infra-gitops-release", "infra-gitops-root"} {
			assert.Contains(t, removal.Dependencies, rec.Resource(t, name).URN, name)
		}
		var spec map[string]any
		require.NoError(t, json.Unmarshal([]byte(removal.Input("stdin").(string)), &spec))
		assert.Equal(t, []any{"argocd", "root", deletes}, []any{spec["namespace"], spec["root"], spec["delete"]}, policy)
	}
}

func TestGitOpsHandover_RejectsArgsBeforeAnythingIsRegistered(t *testing.T) {
	for problem, mutate := range map[string]func(*argocd.GitOpsHandoverArgs){
		"name: is missing":               func(a *argocd.GitOpsHandoverArgs) { a.Name = "" },
		"kubernetesProvider: is missing": func(a *argocd.GitOpsHandoverArgs) { a.KubernetesProvider = nil },
		"deletedWith: is missing":        func(a *argocd.GitOpsHandoverArgs) { a.DeletedWith = nil },
		"gitOps.url: is missing":         func(a *argocd.GitOpsHandoverArgs) { a.GitOps = cluster.GitOps{} },
		"release: is missing":            func(a *argocd.GitOpsHandoverArgs) { a.Release = cluster.Service{} },
		"settings: are missing":          func(a *argocd.GitOpsHandoverArgs) { a.Settings = nil },
		"settings.podCIDR: is not":       func(a *argocd.GitOpsHandoverArgs) { a.Settings["podCIDR"] = "x" },
	} {
		rec := &mocks.Recorder{}
		require.ErrorContains(t, run(t, rec, mutate), problem)
		assert.Empty(t, rec.OfType("slipway:argocd:GitOpsHandover"), problem)
	}
}
