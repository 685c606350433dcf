package gitops_test

import (
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/gitops"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/handovertest"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// run registers one GitOpsHandover.
func run(t *testing.T, rec *mocks.Recorder, mutate func(*gitops.GitOpsHandoverArgs)) error {
	t.Helper()
	return handovertest.Run(rec, func(ctx *pulumi.Context, in component.InCluster, steps component.Steps) (*gitops.GitOpsHandover, error) {
		args := &gitops.GitOpsHandoverArgs{
			InCluster: in, Steps: steps, GitOps: clusters.Infra(t).GitOps, Secrets: cluster.FluxSecrets{Source: "flux-system"},
			Settings: gitops.Settings{"CLUSTER_NAME": "infra", "POD_CIDR": "10.244.0.0/16"}, OperatorAfter: in.DependsOn,
		}
		if mutate != nil {
			mutate(args)
		}
		return gitops.NewGitOpsHandover(ctx, "infra-gitops", args)
	})
}

func TestGitOpsHandover_InstallsTheOperatorThenTheInstanceThenVerifies(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, nil))
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
	assert.Equal(t, "flux-operator", operator.Input("name"))
	assert.Equal(t, "flux-system", operator.Input("namespace"))
	assert.Equal(t, "oci://ghcr.io/controlplaneio-fluxcd/charts/flux-operator", operator.Input("chart"))
	assert.Nil(t, operator.Input("repositoryOpts"), "an OCI chart has no repository")
	assert.Equal(t, map[string]any{"CLUSTER_NAME": "infra", "POD_CIDR": "10.244.0.0/16"}, settings.Input("data"))
	assert.Equal(t, "cluster-settings", settings.Input("metadata.name"))
	assert.Equal(t, map[string]any{"reconcile.fluxcd.io/watch": "Enabled"}, settings.Input("metadata.labels"), "Flux applies a change at once")
}

func TestGitOpsHandover_TheOperatorHasNoWebPageUnlessTheUserWantsOne(t *testing.T) {
	off := map[string]any{"enabled": false}
	for name, test := range map[string]struct {
		version, given string
		values         any
	}{
		"nothing":       {values: map[string]any{"web": off}},
		"another value": {given: `{"logLevel":"debug"}`, values: map[string]any{"logLevel": "debug", "web": off}},
		"another value of it": {given: `{"web":{"config":{}}}`,
			values: map[string]any{"web": map[string]any{"enabled": false, "config": map[string]any{}}}},
		"the page":               {given: `{"web":{"enabled":true}}`, values: map[string]any{"web": map[string]any{"enabled": true}}},
		"a chart that has none":  {version: "0.35.0"},
		"a chart with the value": {version: "0.36.0", values: map[string]any{"web": off}},
	} {
		rec := &mocks.Recorder{}
		require.NoError(t, run(t, rec, func(a *gitops.GitOpsHandoverArgs) {
			a.GitOps.Operator.Values = cluster.ChartValues(test.given)
			if test.version != "" {
				a.GitOps.Operator.Version = test.version
			}
		}), name)
		assert.Equal(t, test.values, rec.Resource(t, "infra-gitops-operator").Input("values"), name)
	}
}

func TestGitOpsHandover_SyncsTheClustersFolderWithItsSettings(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, func(a *gitops.GitOpsHandoverArgs) {
		a.GitOps.Interval = cluster.Duration{Duration: 90 * time.Second}
		a.GitOps.Flux.Version = "2.9.x"
	}))
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

func TestGitOpsHandover_GivesFluxTheDeclaredAccess(t *testing.T) {
	app := 78901234
	for name, test := range map[string]struct {
		git                  cluster.GitOps
		pullSecret, provider any
	}{
		"ssh":                      {cluster.GitOps{URL: "ssh://git@git.home.arpa:2222/platform/slipway.git"}, "flux-system", nil},
		"GitHub App":               {cluster.GitOps{GitHubApp: &cluster.GitHubApp{ID: 1, InstallationID: &app}}, "flux-system", "github"},
		"public":                   {cluster.GitOps{Public: true}, nil, nil},
		"public with an own CA":    {cluster.GitOps{Public: true, CA: "CERTIFICATE"}, "flux-system", nil},
		"user name and a password": {cluster.GitOps{}, "flux-system", nil},
	} {
		rec := &mocks.Recorder{}
		require.NoError(t, run(t, rec, func(a *gitops.GitOpsHandoverArgs) {
			a.GitOps.GitHubApp, a.GitOps.Public, a.GitOps.CA = test.git.GitHubApp, test.git.Public, test.git.CA
			a.Secrets.Source, _ = test.pullSecret.(string)
			if test.git.URL != "" {
				a.GitOps.URL = test.git.URL
			}
		}), name)
		instance := rec.Resource(t, "infra-gitops-instance")
		assert.Equal(t, test.pullSecret, instance.Input("spec.sync.pullSecret"), name)
		assert.Equal(t, test.provider, instance.Input("spec.sync.provider"), name)
		if test.git.URL != "" {
			assert.Equal(t, test.git.URL, instance.Input("spec.sync.url"), name)
		}
		assert.Nil(t, instance.Input("spec.kustomize.patches[2]"), "%s: nothing is decrypted", name)
	}
}

func TestGitOpsHandover_SyncsFromAnArtifactOrABucket(t *testing.T) {
	for kind, test := range map[string]struct {
		change   func(*gitops.GitOpsHandoverArgs)
		url, ref string
	}{
		"OCIRepository": {func(a *gitops.GitOpsHandoverArgs) {
			a.GitOps.OCI = &cluster.OCIArtifact{URL: "oci://registry.example.com/a", Tag: "production"}
		}, "oci://registry.example.com/a", "production"},
		"Bucket": {func(a *gitops.GitOpsHandoverArgs) {
			a.GitOps.Bucket = &cluster.Bucket{Endpoint: "s3.example.com:9000", Name: "platform"}
		}, "s3.example.com:9000", "platform"},
	} {
		rec := &mocks.Recorder{}
		require.NoError(t, run(t, rec, func(a *gitops.GitOpsHandoverArgs) {
			a.GitOps.URL, a.Secrets.Source, a.Secrets.CA = "", "flux-source", "flux-source-ca"
			test.change(a)
		}), kind)
		instance := rec.Resource(t, "infra-gitops-instance")
		assert.Equal(t, map[string]any{
			"kind": kind, "name": "flux-system", "url": test.url, "ref": test.ref,
			"path": "kubernetes/clusters/infra", "pullSecret": "flux-source", "interval": "1m0s",
		}, instance.Input("spec.sync"))
		assert.Equal(t, map[string]any{"kind": kind, "name": "flux-system"}, instance.Input("spec.kustomize.patches[2].target"))
		assert.Contains(t, instance.Input("spec.kustomize.patches[2].patch"), "path: /spec/certSecretRef\n  value:\n    name: flux-source-ca")
		var spec map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(rec.Resource(t, "infra-gitops-probe").Input("stdin").(string)), &spec))
		assert.Equal(t, []any{kind, test.url, test.ref}, []any{spec["sourceKind"], spec["url"], spec["ref"]},
			"the probe expects what was declared")
	}
}

func TestGitOpsHandover_PassesTheOptionsOfFlux(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, func(a *gitops.GitOpsHandoverArgs) {
		a.Secrets.Images = "flux-images"
		flux := &a.GitOps.Flux
		flux.Registry, flux.Variant = "registry.example.com/fluxcd", "upstream-alpine"
		flux.Components = append(flux.Components, "notification-controller")
		flux.Size, flux.NetworkPolicy, flux.Multitenant, flux.TenantServiceAccount = "small", false, true, "flux"
		flux.Sharding = &cluster.FluxSharding{Key: "sharding.fluxcd.io/key", Shards: []string{"shard1"}, Persistent: true}
		flux.Storage = &cluster.FluxStorage{Class: "ceph-block", Size: 10 * cluster.GiB}
	}))
	instance := rec.Resource(t, "infra-gitops-instance")
	assert.Equal(t, map[string]any{
		"version": "2.9.5", "registry": "registry.example.com/fluxcd", "variant": "upstream-alpine", "imagePullSecret": "flux-images",
	}, instance.Input("spec.distribution"))
	assert.Equal(t, []any{"source-controller", "kustomize-controller", "helm-controller", "notification-controller"},
		instance.Input("spec.components"))
	assert.Equal(t, map[string]any{
		"type": "kubernetes", "domain": "cluster.local", "networkPolicy": false, "size": "small", "multitenant": true,
		"tenantDefaultServiceAccount": "flux",
	}, instance.Input("spec.cluster"))
	assert.Equal(t, map[string]any{"key": "sharding.fluxcd.io/key", "shards": []any{"shard1"}, "storage": "persistent"},
		instance.Input("spec.sharding"))
	assert.Equal(t, map[string]any{"class": "ceph-block", "size": "10Gi"}, instance.Input("spec.storage"))
	assert.Nil(t, instance.Input("spec.kustomize.patches[1]"), "a size brings its own interval for dependencies")
}

func TestGitOpsHandover_MakesTheRootKustomizationDecrypt(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, func(a *gitops.GitOpsHandoverArgs) { a.Secrets.Decryption = "sops-age" }))
	instance := rec.Resource(t, "infra-gitops-instance")
	assert.Equal(t, map[string]any{"kind": "Kustomization", "name": "flux-system"}, instance.Input("spec.kustomize.patches[2].target"))
	var patch []map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(instance.Input("spec.kustomize.patches[2].patch").(string)), &patch))
	assert.Equal(t, []map[string]any{{
		"op": "add", "path": "/spec/decryption",
		"value": map[string]any{"provider": "sops", "secretRef": map[string]any{"name": "sops-age"}},
	}}, patch)
}

func TestGitOpsHandover_MakesFluxTryAChangedSecret(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, func(a *gitops.GitOpsHandoverArgs) {
		a.Access, a.Secrets.Decryption, a.Decryption = pulumi.String("aaaa"), "sops-age", pulumi.String("bbbb")
	}))
	patches := rec.Resource(t, "infra-gitops-instance").Input("spec.kustomize.patches").([]any)
	want := map[string]string{"GitRepository": "aaaa", "Kustomization": "bbbb"}
	for _, one := range patches[len(patches)-2:] {
		var object struct {
			APIVersion, Kind string
			Metadata         struct {
				Name        string
				Annotations map[string]string
			}
		}
		require.NoError(t, yaml.UnmarshalStrict([]byte(one.(map[string]any)["patch"].(string)), &object))
		assert.Equal(t, map[string]string{"reconcile.fluxcd.io/requestedAt": want[object.Kind]}, object.Metadata.Annotations)
		assert.Equal(t, map[string]any{"kind": object.Kind, "name": "flux-system"}, one.(map[string]any)["target"])
		delete(want, object.Kind)
	}
	assert.Empty(t, want)
}

// The engine resets each ignored path of the new inputs to what the state has there.
func TestGitOpsHandover_KeepsTheAnnotationsOfAnExistingInstance(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, nil))
	instance := rec.Resource(t, "infra-gitops-instance")
	for _, key := range []string{"slipway/cluster", "slipway-platform.github.io/cluster"} {
		inState := resource.NewPropertyMapFromMap(map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{"pulumi.com/skipAwait": "true", "pulumi.com/patchForce": "true", key: "infra"}}})
		next := instance.Inputs.Copy()
		for _, ignored := range instance.IgnoreChanges {
			path, err := resource.ParsePropertyPath(ignored)
			require.NoError(t, err)
			assert.True(t, path.Reset(inState, next), ignored)
		}
		assert.Equal(t, inState["metadata"].ObjectValue()["annotations"], next["metadata"].ObjectValue()["annotations"])
	}
}

func TestGitOpsHandover_LooksForAFluxOfSomebodyElseBeforeTheInstance(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, nil))
	instance := rec.Resource(t, "infra-gitops-instance")
	assert.Equal(t, []string{"infra-gitops-instance-foreign"}, instance.BeforeCreate)
	assert.Equal(t, "infra", instance.Input("metadata.annotations").(map[string]any)["slipway-platform.github.io/cluster"], "it knows its own")
	looks := 0
	for _, hook := range rec.Hooks() {
		if hook.Name == instance.BeforeCreate[0] {
			looks++
			assert.False(t, hook.OnDryRun, "a preview needs no cluster")
		}
	}
	assert.Equal(t, 1, looks)
}

func TestGitOpsHandover_VerifiesExactlyWhatItInstalled(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(t, rec, func(a *gitops.GitOpsHandoverArgs) {
		a.GitOps.Timeout = cluster.Duration{Duration: 90 * time.Second}
	}))
	run := rec.Resource(t, "infra-gitops-probe")
	assert.Equal(t, probe.Program+" handover", run.Input("create"))
	var spec map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(run.Input("stdin").(string)), &spec))
	for key, want := range map[string]any{
		"cluster": "infra", "kubeconfig": handovertest.Kubeconfig, "url": "https://git.home.arpa/platform/slipway.git",
		"ref": "refs/heads/main", "path": "kubernetes/clusters/infra", "timeout": "1m30s",
	} {
		assert.Equal(t, want, spec[key], key)
	}
}

func TestGitOpsHandover_RunsTheProbeAgainExactlyAfterAChangeThatFluxApplies(t *testing.T) {
	triggers := func(mutate func(*gitops.GitOpsHandoverArgs)) any {
		rec := &mocks.Recorder{}
		require.NoError(t, run(t, rec, mutate))
		return rec.Resource(t, "infra-gitops-probe").Input("triggers")
	}
	base := triggers(nil)
	assert.Equal(t, base, triggers(nil))
	for i, mutate := range []func(*gitops.GitOpsHandoverArgs){
		func(a *gitops.GitOpsHandoverArgs) { a.GitOps.Operator.Version = "0.60.0" },
		func(a *gitops.GitOpsHandoverArgs) { a.GitOps.Flux.Version = "2.10.x" },
		func(a *gitops.GitOpsHandoverArgs) { a.GitOps.GitHubApp = &cluster.GitHubApp{ID: 1} },
		func(a *gitops.GitOpsHandoverArgs) { a.Secrets.Decryption = "sops-age" },
		func(a *gitops.GitOpsHandoverArgs) { a.Access = pulumi.String("aaaa") },
		func(a *gitops.GitOpsHandoverArgs) { a.Decryption = pulumi.String("aaaa") },
		func(a *gitops.GitOpsHandoverArgs) { a.GitOps.Flux.Size = "large" },
		func(a *gitops.GitOpsHandoverArgs) { a.Secrets.Images = "flux-images" },
		func(a *gitops.GitOpsHandoverArgs) { a.GitOps.Path = "kubernetes/other" },
		func(a *gitops.GitOpsHandoverArgs) { a.GitOps.Branch = "other" },
		func(a *gitops.GitOpsHandoverArgs) { a.Settings["POD_CIDR"] = "10.248.0.0/16" },
	} {
		assert.NotEqual(t, base, triggers(mutate), i)
	}
}

func TestGitOpsHandover_RemovesWhatFluxHasAppliedWithThePolicyDeleteAlone(t *testing.T) {
	for policy, command := range map[cluster.DeletionPolicy]any{
		cluster.DeletionOrphan: nil, cluster.DeletionDelete: probe.Program + " prune",
	} {
		rec := &mocks.Recorder{}
		require.NoError(t, run(t, rec, func(a *gitops.GitOpsHandoverArgs) { a.GitOps.DeletionPolicy = policy }))
		removal := rec.Resource(t, "infra-gitops-removal")
		assert.Equal(t, command, removal.Input("delete"), policy)
		assert.Contains(t, removal.Dependencies, rec.Resource(t, "infra-gitops-instance").URN)
		var spec map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(removal.Input("stdin").(string)), &spec))
		assert.Equal(t, []any{"flux-system", "flux", "flux-system"}, []any{spec["namespace"], spec["instance"], spec["kustomization"]})
	}
}

func TestGitOpsHandover_RejectsArgsBeforeAnythingIsRegistered(t *testing.T) {
	for problem, mutate := range map[string]func(*gitops.GitOpsHandoverArgs){
		"name: is missing":               func(a *gitops.GitOpsHandoverArgs) { a.Name = "" },
		"kubeconfig: is missing":         func(a *gitops.GitOpsHandoverArgs) { a.Kubeconfig = nil },
		"kubernetesProvider: is missing": func(a *gitops.GitOpsHandoverArgs) { a.KubernetesProvider = nil },
		"commandProvider: is missing":    func(a *gitops.GitOpsHandoverArgs) { a.CommandProvider = nil },
		"deletedWith: is missing":        func(a *gitops.GitOpsHandoverArgs) { a.DeletedWith = nil },
		"gitOps: is missing":             func(a *gitops.GitOpsHandoverArgs) { a.GitOps = cluster.GitOps{} },
		"secrets.source: is missing":     func(a *gitops.GitOpsHandoverArgs) { a.Secrets.Source = "" },
		"settings: are missing":          func(a *gitops.GitOpsHandoverArgs) { a.Settings = nil },
		"settings.podCIDR: is not":       func(a *gitops.GitOpsHandoverArgs) { a.Settings["podCIDR"] = "x" },
		"settings.MESH_IP: is empty":     func(a *gitops.GitOpsHandoverArgs) { a.Settings["MESH_IP"] = "" },
		`GitOpsHandover "infra-gitops"`:  func(a *gitops.GitOpsHandoverArgs) { *a = gitops.GitOpsHandoverArgs{} },
	} {
		rec := &mocks.Recorder{}
		require.ErrorContains(t, run(t, rec, mutate), problem)
		assert.Empty(t, rec.OfType("slipway:gitops:GitOpsHandover"), problem)
	}
}
