package graph

import (
	"encoding/base64"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/stacks/steps"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const workersGate = "workers-probe"

// upFile runs the program with a stack file that is not one of the project's.
func upFile(t *testing.T, file string) *mocks.Recorder {
	t.Helper()
	rec := newRecorderOf(t, file, "infra")
	require.NoError(t, rec.Run(stacks.Deploy))
	return rec
}

func TestShapes_EveryValidStackFileRegistersAWholeChain(t *testing.T) {
	require.Greater(t, len(fixtures.Valid()), 10)
	var known []string
	for _, step := range steps.Chain() {
		known = append(known, step.Components...)
	}
	for _, one := range fixtures.Valid() {
		t.Run(one.Name, func(t *testing.T) {
			file := fixtures.Write(t, one.Name, "infra")
			stack := clusters.Read(t, file)
			t.Chdir(filepath.Dir(file)) // the checkout of the case that Flux owns
			rec := upFile(t, file)
			assert.Len(t, rec.OfType(typeVM), len(stack.Machines()))
			assert.Len(t, rec.OfType(typeApply), len(stack.Machines()))
			for _, reg := range rec.Resources() {
				if !reg.Custom && reg.Parent == rec.Resource(t, kubernetes).Parent {
					assert.Contains(t, known, reg.Name, "no step has the component, so that a preview would not show its changes")
				}
			}
			if !stack.GitOps.Enabled {
				return
			}
			assert.True(t, rec.After(rec.Resource(t, handover), rec.Resource(t, gate)))
			assert.True(t, rec.After(rec.Resource(t, handover), rec.Resource(t, coreDNS)))
		})
	}
}

func TestShapes_WithoutGitOpsNothingOfFluxIsRegisteredButItsNamespace(t *testing.T) {
	rec := upFile(t, fixtures.Write(t, "no-gitops", "infra"))
	for _, name := range rec.Names() {
		assert.NotContains(t, name, " gitops", "Pulumi deletes what an earlier run has made")
		assert.NotContains(t, name, " secrets-git ")
	}
	namespace := rec.Resource(t, "secrets-git-namespace")
	assert.Equal(t, "flux-system", namespace.Input("metadata.name"), "somebody else may have objects in it")
	assert.Empty(t, namespace.BeforeCreate)
}

func TestShapes_LooksForAFluxOfSomebodyElseBeforeTheFirstObjectOfTheHandover(t *testing.T) {
	for _, name := range stackNames(t) {
		rec := up(t, name)
		namespace := rec.Resource(t, "secrets-git-namespace")
		assert.Equal(t, []string{"secrets-flux-foreign"}, namespace.BeforeCreate)
		// Without GitOps, the namespace is there already.
		assert.Equal(t, []string{"secrets-flux-foreign"}, rec.Resource(t, gitSecret).BeforeCreate)
		ours := rec.Resource(t, instance).BeforeCreate
		assert.Equal(t, ours, rec.Resource(t, "gitops-settings").BeforeCreate)
		assert.Subset(t, rec.Resource(t, "gitops-operator").BeforeCreate, ours)
		for _, later := range []string{gitSecret, "gitops-settings", "gitops-operator", instance} {
			assert.True(t, rec.After(rec.Resource(t, later), namespace), later)
		}
	}
}

func TestShapes_FluxOperatorWaitsForTheGateAndNotForSecretsAndCoreServices(t *testing.T) {
	for _, name := range stackNames(t) {
		rec := up(t, name)
		operator := rec.Resource(t, "gitops-operator")
		assert.True(t, rec.After(operator, rec.Resource(t, gate)))
		for _, beside := range []string{gitSecret, coreDNS, onepassword} {
			assert.False(t, rec.After(operator, rec.Resource(t, beside)), beside)
			assert.True(t, rec.After(rec.Resource(t, instance), rec.Resource(t, beside)), beside)
		}
	}
}

func TestShapes_InlineCiliumIsRenderedBeforeTheClusterByAProviderWithoutOne(t *testing.T) {
	rec := upFile(t, fixtures.Write(t, "inline", "infra"))
	charts := rec.Resource(t, "charts")
	assert.Equal(t, `{"apiVersion": "v1", "kind": "Config"}`, charts.Input("kubeconfig"), "neither the user's kubeconfig nor the cluster's")
	rendered := 0
	for _, call := range rec.Calls() {
		if call.Token == mocks.FunctionTemplate {
			rendered++
			assert.Contains(t, call.Provider, charts.URN)
		}
	}
	assert.Equal(t, 1, rendered)
	assert.True(t, rec.After(charts, rec.Resource(t, "cilium-mode")), "a refused mode changes nothing")
	for _, reg := range rec.Find(inCluster) {
		assert.NotEqual(t, charts.URN, reg.ProviderURN(), reg.Name)
	}
	for _, name := range stackNames(t) {
		assert.NotContains(t, up(t, name).Names(), "pulumi:providers:kubernetes charts", "%s needs none", name)
	}
}

func TestShapes_WorkersThatJoinLaterAreCreatedAfterTheGateAndCoveredByASecondOne(t *testing.T) {
	file := fixtures.Write(t, "after-gate", "infra")
	stack := clusters.Read(t, file)
	rec := upFile(t, file)
	first, second := rec.Resource(t, gate), rec.Resource(t, workersGate)
	for _, vm := range rec.OfType(typeVM) {
		isWorker := false
		for _, worker := range stack.WorkerMachines() {
			isWorker = isWorker || vm.Name == "talos-"+worker.Name+"-vm"
		}
		assert.Equal(t, isWorker, rec.After(vm, first), vm.Name)
		assert.True(t, rec.After(second, vm), vm.Name)
	}
	for _, later := range []string{coreDNS, gitSecret, handover} {
		assert.True(t, rec.After(rec.Resource(t, later), second), later)
	}
	assert.Contains(t, first.Dependencies, rec.Resource(t, ciliumRelease).URN)
}

func TestShapes_WorkersThatJoinLaterAreTheSameResourcesAsThoseThatJoinInParallel(t *testing.T) {
	file := fixtures.Write(t, "after-gate", "infra")
	follow := upFile(t, file)
	together := newRecorderOf(t, file, "infra")
	delete(together.Config, "slipway:workers")
	require.NoError(t, together.Run(stacks.Deploy))
	assert.Subset(t, follow.Names(), together.Names(), "a change of workers.join replaces no machine")
}

// A public repository needs no Secret, and every other access one, whose values are nowhere in plain text.
func TestShapes_FluxGetsTheDeclaredAccessAndNoSecretIsInPlainText(t *testing.T) {
	for name, want := range map[string]struct {
		key      string // of the Secret with the secret value; "" means that there is no Secret
		secret   string
		provider any
	}{
		"minimal":                           {"password", gitPassword, nil},
		"git-over-ssh":                      {"identity", secretValues()["slipway:gitIdentity"], nil},
		"git-with-a-github-app":             {"githubAppPrivateKey", secretValues()["slipway:githubAppPrivateKey"], "github"},
		"git-with-a-github-app-of-an-owner": {"githubAppPrivateKey", secretValues()["slipway:githubAppPrivateKey"], "github"},
		"git-without-credentials":           {},
	} {
		t.Run(name, func(t *testing.T) {
			rec := upFile(t, fixtures.Write(t, name, "infra"))
			sync := rec.Resource(t, instance)
			assert.Equal(t, want.provider, sync.Input("spec.sync.provider"))
			namespace := rec.Resource(t, "secrets-git-namespace")
			assert.True(t, rec.After(rec.Resource(t, "gitops-settings"), namespace))
			if want.key == "" {
				assert.Nil(t, sync.Input("spec.sync.pullSecret"))
				assert.NotContains(t, rec.Names(), gitSecret)
				return
			}
			secret, encoded := rec.Resource(t, gitSecret), base64.StdEncoding.EncodeToString([]byte(want.secret))
			assert.Equal(t, secret.Input("metadata.name"), sync.Input("spec.sync.pullSecret"))
			assert.Equal(t, encoded, secret.Input("data."+want.key))
			assert.True(t, rec.After(sync, secret))
			for _, reg := range rec.Resources() {
				assert.Empty(t, reg.PlainPaths(want.secret), reg.Name)
				assert.Empty(t, reg.PlainPaths(encoded), reg.Name)
			}
		})
	}
}

func TestShapes_TheRootKustomizationDecryptsWithTheDeclaredKeyOfAge(t *testing.T) {
	rec := upFile(t, fixtures.Write(t, "everything", "infra"))
	secret, encoded := rec.Resource(t, "secrets-age"), base64.StdEncoding.EncodeToString([]byte(secretValues()["slipway:sopsAgeKey"]))
	assert.Contains(t, rec.Resource(t, instance).Input("spec.kustomize.patches[1].patch"), "name: "+secret.Input("metadata.name").(string))
	assert.Equal(t, map[string]any{"age.agekey": encoded}, secret.Input("data"))
	assert.True(t, rec.After(rec.Resource(t, instance), secret))
	for _, reg := range rec.Resources() {
		assert.Empty(t, reg.PlainPaths(secretValues()["slipway:sopsAgeKey"]), reg.Name)
		assert.Empty(t, reg.PlainPaths(encoded), reg.Name)
	}
}

func TestShapes_NothingOfOneEngineIsRegisteredWithTheOther(t *testing.T) {
	argoCD := upFile(t, fixtures.Write(t, "argocd", "infra"))
	for _, reg := range argoCD.Resources() {
		assert.NotContains(t, reg.Type, "fluxcd", reg.Name)
		assert.NotEqual(t, "flux-system", reg.Input("metadata.namespace"), reg.Name)
		assert.NotEqual(t, "flux-system", reg.Input("metadata.name"), reg.Name)
		assert.NotEqual(t, "flux-operator", reg.Input("name"), reg.Name)
	}
	namespace, repository := argoCD.Resource(t, "secrets-argocd-namespace"), argoCD.Resource(t, "secrets-repository")
	for _, first := range []mocks.Registration{namespace, repository} {
		assert.Equal(t, []string{"secrets-argocd-foreign"}, first.BeforeCreate, "%s: another engine is refused before", first.Name)
	}
	assert.True(t, argoCD.After(argoCD.Resource(t, "gitops-root"), repository), "Argo CD has access when it starts")
	flux := upFile(t, fixtures.Write(t, "minimal", "infra"))
	for _, reg := range flux.Resources() {
		assert.NotContains(t, reg.Name, "argocd")
		assert.NotContains(t, reg.Type, "argoproj", reg.Name)
	}
}
