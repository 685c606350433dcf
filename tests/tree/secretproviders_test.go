package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
)

// operator is External Secrets Operator as a stack file declares it.
func operator(t *testing.T) cluster.Service {
	t.Helper()
	for _, service := range stacks(t)[0].Providers.Services() {
		if service.Name == "external-secrets" {
			return service
		}
	}
	t.Fatal("the stack file declares no 1Password")
	return cluster.Service{}
}

// operatorSources is the folder of the operator's module, of the newest release that can be had.
func operatorSources(t *testing.T) string {
	t.Helper()
	dir, _, err := module("../../tests/tree/sources", "github.com/external-secrets/external-secrets")
	require.NoError(t, err)
	return dir
}

func objectsIn(t *testing.T, text string) (objects []Object) {
	t.Helper()
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		object := Object{Unstructured: &unstructured.Unstructured{}}
		require.NoError(t, yaml.Unmarshal([]byte(document), &object.Object))
		if object.GetKind() != "" {
			objects = append(objects, object)
		}
	}
	return objects
}

func TestExternalSecrets_TheChartKnowsTheValuesThatSlipwaySets(t *testing.T) {
	chart, err := loader.LoadDir(filepath.Join(operatorSources(t), "deploy", "charts", "external-secrets"))
	require.NoError(t, err)
	chart.Metadata.Dependencies, chart.Lock = nil, nil // it is switched off
	service := operator(t)
	values, err := service.UserValues.MergedInto(service.Values)
	require.NoError(t, err)
	assert.NotEmpty(t, values)
	for key, value := range values {
		require.Contains(t, chart.Values, key)
		assert.IsType(t, chart.Values[key], value, key)
	}
	assert.Equal(t, false, chart.Values["leaderElect"], "config-check asks for it beside replicaCount")
	made, err := objectsOf(chart, values, service.Name, service.Namespace)
	require.NoError(t, err)
	images := map[string]string{}
	for _, object := range made {
		assert.NotEqual(t, "CustomResourceDefinition", object.GetKind(), object.Title())
		for _, container := range object.List("spec", "template", "spec", "containers") {
			images[object.GetName()], _ = container["image"].(string)
		}
	}
	assert.Len(t, images, 3)
	for _, name := range []string{"external-secrets", "external-secrets-webhook", "external-secrets-cert-controller"} {
		assert.Regexp(t, `^ghcr.io/external-secrets/external-secrets:v`, images[name], name)
	}
}

func TestSealedSecrets_TheChartTakesTheImageThatSlipwaySets(t *testing.T) {
	dir, version, err := module("../../tests/tree/sources", "github.com/bitnami/sealed-secrets")
	require.NoError(t, err)
	chart, err := loader.LoadDir(filepath.Join(dir, "helm", "sealed-secrets"))
	require.NoError(t, err)
	sealed := cluster.SealedSecrets{}
	cluster.SetDefaults(&sealed)
	service := sealed.Service()
	assert.Equal(t, service.Version, chart.Metadata.Version)
	assert.Less(t, chart.Metadata.AppVersion, "0.40.0", "a chart with this version needs no image of Slipway's")
	values, err := service.UserValues.MergedInto(service.Values)
	require.NoError(t, err)
	for key := range values {
		assert.Contains(t, chart.Values, key)
	}
	made, err := objectsOf(chart, values, service.Name, service.Namespace)
	require.NoError(t, err)
	var images []string
	for _, object := range made {
		for _, container := range object.List("spec", "template", "spec", "containers") {
			images = append(images, container["image"].(string))
		}
	}
	assert.Equal(t, []string{"docker.io/bitnami/sealed-secrets-controller:" + strings.TrimPrefix(version, "v")}, images)
}

// Since 2.9, the operator sees no other CRDs.
func TestExternalSecrets_EachCRDHasTheLabelOfTheOperator(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(operatorSources(t), "deploy", "crds", "bundle.yaml"))
	require.NoError(t, err)
	crds := objectsIn(t, string(text))
	assert.Greater(t, len(crds), 20)
	for _, crd := range crds {
		assert.Equal(t, "controller", crd.GetLabels()["external-secrets.io/component"], crd.Title())
	}
}

func TestExternalSecrets_TakesWhatSlipwayWrites(t *testing.T) {
	known, err := schemas()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(repository, "components", "secrets", "testdata", "onepassword.yaml"))
	require.NoError(t, err)
	objects := append(objectsIn(t, string(text)), objectsIn(t, string(operator(t).Accepts.Object))...)
	assert.Len(t, objects, 4)
	for _, object := range objects {
		assert.NoError(t, known.Validate(object), object.Title())
	}
}

func TestExternalSecrets_TheLabServesTheVersionThatSlipwayPins(t *testing.T) {
	table, err := os.ReadFile(filepath.Join(repository, "lab", "tools", "table.go"))
	require.NoError(t, err)
	assert.Contains(t, string(table), `Pinned: "`+operator(t).Version+`"`)
}

// The operator refuses objects of namespaces that the store does not name.
func TestExternalSecrets_EveryObjectOfTheTreeMayUseItsStore(t *testing.T) {
	looked := map[string]int{}
	for _, stack := range stacks(t) {
		readers := map[string][]string{"onepassword": stack.Providers.OnePassword.Readers(), "onepassword-storage": stack.Storage.VaultReaders()}
		for _, layer := range clusters(t)[stack.Stack] {
			for _, object := range layer.Objects {
				stores := object.List("spec", "secretStoreRefs")
				if store, found, _ := unstructured.NestedMap(object.Object, "spec", "secretStoreRef"); found {
					stores = append(stores, store)
				}
				for _, store := range stores {
					name, _ := store["name"].(string)
					assert.Contains(t, readers[name], object.GetNamespace(),
						"%s %s of %s in the store %s", object.GetKind(), object.GetName(), stack.Stack, name)
					looked[name]++
				}
			}
		}
	}
	assert.Positive(t, looked["onepassword-storage"])
}
