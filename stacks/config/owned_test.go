package config

import (
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	fluxrelease "github.com/slipway-platform/slipway/internal/engines/flux/release"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
	"github.com/slipway-platform/slipway/tests/golden"
)

// The files of the tree are those that are written from the stack file of a cluster before it is handed over.
func TestOwned_TheFilesAreWrittenFromTheStackFile(t *testing.T) {
	for _, owner := range []string{"flux", "argocd"} {
		owned := fixtures.Get("owned-by-" + owner).Text
		before := strings.ReplaceAll(owned, "owner: "+owner, "owner: pulumi")
		before = strings.Replace(before, "slipway:certManager: {owner: pulumi}", "slipway:certManager: {values: {replicaCount: 2}}", 1)
		stack, err := loadText(fstest.MapFS{}, "Pulumi.home.yaml", []byte(before))
		require.NoError(t, err)
		require.Len(t, stack.Releases(), strings.Count(owned, "owner: "+owner), "each release can be owned by %s", owner)
		for _, release := range stack.Releases() {
			text, err := fluxrelease.Text(release)
			require.NoError(t, err)
			golden.File(t, filepath.Join(fixturesFolder, "owned", release.Name+".yaml"), text)
		}
	}
}

func TestOwned_ArgoCDReadsTheSameFiles(t *testing.T) {
	stack := loadValid(t, "owned-by-argocd")
	require.Len(t, stack.Git, len(stack.Releases()))
	assert.Equal(t, cluster.OwnerArgoCD, stack.ArgoCDService().Owner, "Argo CD's own release included")
	assert.JSONEq(t, `{"replicaCount":2}`, stack.CertManager.Values.String())
	text := strings.Replace(fixtures.Get("owned-by-argocd").Text, "slipway:cilium: {owner: argocd}", "slipway:cilium: {owner: pulumi}", 1)
	_, err := loadText(fixtures.Tree(), "Pulumi.home.yaml", []byte(text))
	assert.ErrorContains(t, err, "write spec.suspend: true there to take it back from Argo CD, or write argocd here to hand it over")
}

func TestOwned_ChartVersionAndValuesAreThoseOfGit(t *testing.T) {
	stack := loadValid(t, "owned-by-flux")
	require.Len(t, stack.Git, len(stack.Releases()))
	assert.Equal(t, cluster.OwnerFlux, stack.Cilium.Owner)
	assert.JSONEq(t, `{"replicaCount":2}`, stack.CertManager.Values.String())

	tree := changed(t, "cert-manager", "version: v1.21.2", "version: v1.21.3", "replicaCount: 2", "replicaCount: 3")
	stack, err := loadText(tree, "Pulumi.home.yaml", []byte(fixtures.Get("owned-by-flux").Text))
	require.NoError(t, err)
	assert.Equal(t, "v1.21.3", stack.CertManager.Version)
	assert.Equal(t, "v1.21.3", stack.CRDs.CertManager.Version, "the CRDs follow")
	assert.JSONEq(t, `{"replicaCount":3}`, stack.CertManager.Values.String())
}

func TestOwned_ReportsEachFaultOnceWithItsPlace(t *testing.T) {
	const file = "kubernetes/clusters/owned/platform/"
	owned := fixtures.Get("owned-by-flux").Text
	for name, one := range map[string]struct {
		text string
		tree fs.FS
		says string
	}{
		"no file": {owned, without(t, "cilium"), "cilium.owner: flux needs " + file + "cilium.yaml in the repository, which does not exist; " +
			"write it with: slipway handover-file home cilium"},
		"declared twice": {strings.Replace(owned, "slipway:cilium: {owner: flux}", "slipway:cilium: {owner: flux, version: 1.20.2}", 1),
			fixtures.Tree(), "cilium.version: is spec.chart.spec.version in " + file + "cilium.yaml, too, which Flux reads; remove it here"},
		"values of Slipway": {owned, changed(t, "cert-manager", "replicaCount: 2", "crds: {enabled: true}"),
			file + "cert-manager.yaml: spec.values.crds.enabled: is a value of the chart that Slipway sets; remove it"},
		"values of Slipway in Cilium": {owned, changed(t, "cilium", "  valuesFrom:", "  values: {routingMode: native}\n  valuesFrom:"),
			file + "cilium.yaml: spec.values.routingMode: is a value of the chart that Slipway sets; " +
				"remove it; where a key of cilium sets it, use that"},
		"wrong version": {owned, changed(t, "coredns", "version: 1.46.2", "version: latest"),
			file + "coredns.yaml: spec.chart.spec.version: latest is no single version"},
		"suspended": {owned, changed(t, "cilium", "  valuesFrom:", "  suspend: true\n  valuesFrom:"),
			"cilium.owner: flux, and the HelmRelease in " + file + "cilium.yaml is suspended; " +
				"remove spec.suspend there, or write pulumi here to take it back"},
		"both own it": {strings.Replace(owned, "slipway:cilium: {owner: flux}", "slipway:cilium: {owner: pulumi}", 1), fixtures.Tree(),
			"cilium.owner: pulumi, and " + file + "cilium.yaml declares a HelmRelease that is not suspended"},
		"no gitops": {strings.Replace(owned, "    url: https://git.home.arpa/platform/slipway.git\n", "", 1), fixtures.Tree(),
			"gitops.url: is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			stack, err := loadText(one.tree, "Pulumi.home.yaml", []byte(one.text))
			require.Error(t, err)
			assert.Nil(t, stack)
			problems := cluster.ProblemsOf(err)
			require.Len(t, problems, 1, "%v", err)
			assert.Contains(t, problems[0].Error(), one.says)
		})
	}
}

// Pulumi takes back what Flux has let go of.
func TestOwned_ASuspendedFileGoesWithPulumi(t *testing.T) {
	text := strings.Replace(fixtures.Get("owned-by-flux").Text, "slipway:cilium: {owner: flux}", "slipway:cilium: {version: 1.20.2}", 1)
	stack, err := loadText(changed(t, "cilium", "  valuesFrom:", "  suspend: true\n  valuesFrom:"), "Pulumi.home.yaml", []byte(text))
	require.NoError(t, err)
	assert.True(t, stack.InGit("cilium").Suspended)
	assert.Equal(t, cluster.OwnerPulumi, stack.Cilium.Owner)
}

// changed returns the tree with replaced texts in the file of a release.
func changed(t *testing.T, release string, pairs ...string) fs.FS {
	t.Helper()
	tree := maps.Clone(fixtures.Tree().(fstest.MapFS))
	name := "kubernetes/clusters/owned/platform/" + release + ".yaml"
	text := string(tree[name].Data)
	for i := 0; i < len(pairs); i += 2 {
		require.Contains(t, text, pairs[i])
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	tree[name] = &fstest.MapFile{Data: []byte(text)}
	return tree
}

// without returns the tree without the file of a release.
func without(t *testing.T, release string) fs.FS {
	t.Helper()
	tree := maps.Clone(fixtures.Tree().(fstest.MapFS))
	delete(tree, "kubernetes/clusters/owned/platform/"+release+".yaml")
	return tree
}
