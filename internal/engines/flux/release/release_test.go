package release_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/engines/flux/release"
)

var (
	git = cluster.GitOps{Path: "kubernetes/clusters/infra"}

	certManager = cluster.Service{
		Key: "certManager", Name: "cert-manager", Namespace: "cert-manager", Chart: "cert-manager", Version: "v1.21.2",
		Repository: "https://charts.jetstack.io", UserValues: cluster.ChartValues(`{"podLabels":{"price":"$${5}"},"replicaCount":2}`),
	}
	spegel = cluster.Service{
		Key: "spegel", Name: "spegel", Namespace: "spegel", Chart: "oci://ghcr.io/spegel-org/helm-charts/spegel", Version: "0.7.4",
	}
)

const file = "kubernetes/clusters/infra/platform/cert-manager.yaml"

// read returns what a text declares of a release, and the problems.
func read(t *testing.T, service cluster.Service, text string) (*cluster.Git, []string) {
	t.Helper()
	var findings cluster.Findings
	tree := fstest.MapFS{release.File(git, service.Name): {Data: []byte(text)}}
	declared := release.Read(tree, git, service, map[string]string{"CLUSTER_NAME": "infra", "REPLICAS": "3"}, &findings)
	var problems []string
	for _, problem := range findings.All() {
		problems = append(problems, problem.Error())
	}
	return declared, problems
}

func TestText_IsReadAsWhatItWasWrittenFrom(t *testing.T) {
	for _, service := range []cluster.Service{certManager, spegel} {
		text, err := release.Text(service)
		require.NoError(t, err)
		declared, problems := read(t, service, text)
		require.Empty(t, problems)
		assert.Equal(t, cluster.Git{
			File: release.File(git, service.Name), Version: service.Version, Repository: service.Repository, Chart: service.Chart,
			Values: service.UserValues,
		}, *declared)
	}
}

func TestRead_FindsNothingWithoutAFile(t *testing.T) {
	var findings cluster.Findings
	assert.Nil(t, release.Read(fstest.MapFS{}, git, certManager, nil, &findings))
	assert.Empty(t, findings.All())
}

// The check of the tree says once that the path is a file.
func TestRead_SaysNothingOfEachReleaseIfThePathOfTheTreeIsAFile(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tree"), nil, 0o600))
	findings := &cluster.Findings{}
	assert.Nil(t, release.Read(os.DirFS(folder), cluster.GitOps{Path: "tree"}, cluster.Service{Name: "cilium"}, nil, findings))
	assert.Empty(t, findings.All())
}

func TestRead_SubstitutesSettingsAsFluxDoes(t *testing.T) {
	text, err := release.Text(certManager)
	require.NoError(t, err)
	text = strings.Replace(text, "replicaCount: 2", `replicaCount: "${REPLICAS}"
    name: ${CLUSTER_NAME}-${ZONE:=cellar}
    short: ${CLUSTER_NAME/fra/}
    escaped: $${CLUSTER_NAME} $$ $x`, 1)
	declared, problems := read(t, certManager, text)
	require.Empty(t, problems)
	assert.JSONEq(t, `{"replicaCount": 3, "name": "infra-cellar", "short": "in", "escaped": "${CLUSTER_NAME} $ $x",
    "podLabels": {"price": "$${5}"}}`, declared.Values.String(), "Flux substitutes in the object's own text, where a number has no quotes")
}

func TestRead_NamesTheOneFaultOfAFile(t *testing.T) {
	good, err := release.Text(certManager)
	require.NoError(t, err)
	for name, one := range map[string]struct{ was, is, says string }{
		"prune": {"    kustomize.toolkit.fluxcd.io/prune: disabled\n", "    a: b\n",
			"metadata.annotations[kustomize.toolkit.fluxcd.io/prune]: is missing, which would uninstall"},
		"name": {"  name: cert-manager\n  namespace: flux-system\nspec:\n  chart:", "  name: certs\n  namespace: flux-system\nspec:\n  chart:",
			"HelmRelease metadata.name: certs"},
		"release": {"releaseName: cert-manager", "releaseName: certs",
			"spec.releaseName: certs would uninstall the component when it is changed; write cert-manager"},
		"namespace": {"targetNamespace: cert-manager", "targetNamespace: certs", "spec.targetNamespace: certs"},
		"storage":   {"storageNamespace: flux-system", "storageNamespace: cert-manager", "spec.storageNamespace: cert-manager"},
		"chart":     {"chart: cert-manager", "chart: cert-manager-lts", "spec.chart.spec.chart: cert-manager-lts is another chart"},
		"version":   {"      version: v1.21.2\n", "", "spec.chart.spec.version: nothing is no version"},
		"source": {"kind: HelmRepository\n        name: cert-manager", "kind: HelmRepository\n        name: jetstack",
			"spec.chart.spec.sourceRef.name: jetstack"},
		"repository": {"url: https://charts.jetstack.io", "url: http://charts.jetstack.io",
			"HelmRepository spec.url: http://charts.jetstack.io is no URL"},
		"no values": {"  valuesFrom:\n  - kind: Secret\n    name: cert-manager-values\n", "",
			"spec.valuesFrom: is missing, so that Flux would"},
		"values":      {"name: cert-manager-values", "name: mine", "spec.valuesFrom[0].name: mine is not the source"},
		"optional":    {"name: cert-manager-values", "name: cert-manager-values\n    optional: true", "spec.valuesFrom[0].optional: true"},
		"more values": {"  valuesFrom:\n", "  valuesFrom:\n  - kind: ConfigMap\n    name: mine\n", "spec.valuesFrom: has 2 sources"},
		"remediation": {"  install:\n", "  install:\n    remediation: {retries: 3}\n",
			"spec.install.remediation: is given, which would uninstall"},
		"wait": {"    disableWait: true\n    serverSideApply: false", "    serverSideApply: false",
			"spec.install.disableWait: is missing"},
		"server-side": {"serverSideApply: false", "serverSideApply: true", "spec.install.serverSideApply: true would leave"},
		"setting":     {"replicaCount: 2", "replicaCount: ${REPLICA_COUNT}", "has ${REPLICA_COUNT}, which is no setting of the cluster"},
		"expression":  {"replicaCount: 2", "replicaCount: ${REPLICAS", "has a $ that Flux cannot read"},
		"yaml":        {"spec:", "spec", "is not YAML that can be read"},
		"list":        {"  values:\n    podLabels:", "  values: [1]\n  x:\n    podLabels:", "spec.values: [1] is no mapping"},
		"repeated":    {"---\n", "---\napiVersion: v1\nkind: HelmRelease\n---\n", "has 2 objects of kind HelmRelease; declare one"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, good, one.was)
			declared, problems := read(t, certManager, strings.Replace(good, one.was, one.is, 1))
			assert.Nil(t, declared)
			require.Len(t, problems, 1, "%v", problems)
			assert.Contains(t, problems[0], file+": ")
			assert.Contains(t, problems[0], one.says)
			assert.Contains(t, problems[0], "; ", "a remedy")
		})
	}
}

func TestRead_OfASuspendedReleaseAsksForNothingThatFluxWouldDo(t *testing.T) {
	text, err := release.Text(certManager)
	require.NoError(t, err)
	text = strings.Replace(text, "  valuesFrom:", "  suspend: true\n  valuesFrom:", 1)
	declared, problems := read(t, certManager, strings.Replace(text, "disableWait: true", "disableWait: false", 1))
	require.Empty(t, problems)
	assert.True(t, declared.Suspended)
}
