package tree

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/engines/flux/release"
)

const shop = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: shop}\nspec: {source: {path: kubernetes/apps/shop}}\n"

// argoCDTree is the tree of this repository, with a cluster's folder for Argo CD and a workload in it.
func argoCDTree(t *testing.T, deployment string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	add := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	repository := os.DirFS(root)
	require.NoError(t, fs.WalkDir(repository, "kubernetes", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(name, "kubernetes/clusters/") {
			return err
		}
		text, err := fs.ReadFile(repository, name)
		add(name, string(text))
		return err
	}))
	add("kubernetes/clusters/infra/kustomization.yaml", "kind: Kustomization\nresources: ["+strings.Join(argoCDAreas, ", ")+
		", shop.yaml]\ncomponents: [../../argocd/application]\n")
	add("kubernetes/clusters/infra/shop.yaml", shop)
	add("kubernetes/apps/shop/deployment.yaml", deployment)
	return files
}

// argoCDAreas are the folders of the tree's Applications, as the folder of a cluster names them.
var argoCDAreas = []string{
	"../../argocd/networking", "../../argocd/security", "../../argocd/scheduling", "../../argocd/storage", "../../argocd/observability",
	"../../argocd/databases", "../../argocd/backup",
}

func byArgoCD(c *cluster.Cluster) {
	c.GitOps.Engine, c.Storage.Vault = cluster.EngineArgoCD, ""
}

func TestCheckStack_ReadsWhatApplicationsApply(t *testing.T) {
	settings := map[string]string{"DOMAIN": "infra.example.com", "KEYS": "git"}
	for text, want := range map[string]string{
		"kind: Deployment\nspec: {x: \"${CLUSTER_NAME}\"}\n": "",
		"kind: Deployment\nspec: {x: \"${NO_SUCH}\"}\n":      "kubernetes/apps/shop/deployment.yaml:2: ${NO_SUCH} is not defined",
	} {
		stack := given(t, settings, byArgoCD)
		advice, problems, err := CheckStack(argoCDTree(t, text), stack)
		require.Empty(t, problems)
		assert.Empty(t, advice)
		if want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, want)
		}
	}
}

func TestCheckStack_WarnsOfObjectsOfFluxThatArgoCDWouldApply(t *testing.T) {
	stack := given(t, map[string]string{"DOMAIN": "infra.example.com", "KEYS": "git"}, byArgoCD)
	const release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop}\n"
	layer := strings.NewReplacer("helm.", "kustomize.", "HelmRelease", "Kustomization").Replace(release)
	withoutPlugin := strings.Replace(shop, "path:", "repoURL: \"${SOURCE_URL}\", path:", 1)
	for _, one := range []struct{ application, applies, named string }{
		{shop, release, ""}, {shop, layer, "Kustomization"}, {withoutPlugin, release, "HelmRelease"},
	} {
		files := argoCDTree(t, one.applies)
		files["kubernetes/clusters/infra/shop.yaml"] = &fstest.MapFile{Data: []byte(one.application)}
		advice, problems, err := CheckStack(files, stack)
		require.NoError(t, err)
		require.Empty(t, problems)
		if one.named == "" {
			assert.Empty(t, advice, "the plugin renders it")
			continue
		}
		require.Len(t, advice, 1)
		assert.EqualError(t, advice[0], "gitops.path: kubernetes/apps/shop/deployment.yaml declares the "+one.named+" shop of Flux, and "+
			"gitops.engine is argocd, so that nothing acts on it; write an Application for what it applies, as docs/argocd.md shows")
	}
}

func TestCheckStack_SaysThatATreeIsForTheOtherEngine(t *testing.T) {
	const layers = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: a}
spec: {interval: 10m, prune: true, path: ./kubernetes/apps/shop, sourceRef: {kind: "${SOURCE_KIND}", name: flux-system}}
`
	stack := given(t, map[string]string{"DOMAIN": "infra.example.com", "KEYS": "git"}, byArgoCD)
	files := argoCDTree(t, "kind: ConfigMap\n")
	files["kubernetes/clusters/infra/shop.yaml"] = &fstest.MapFile{
		Data: []byte(layers + "---\n" + strings.Replace(layers, "name: a", "name: b", 1)),
	}
	advice, problems, err := CheckStack(files, stack)
	require.Empty(t, problems)
	require.Len(t, advice, 1)
	assert.ErrorContains(t, advice[0], "declares the Kustomization a (and 1 more) of Flux, and gitops.engine is argocd")
	assert.ErrorContains(t, err, "${SOURCE_KIND} is not defined (also in 1 more places), and Flux would write nothing in its place; "+
		"it is for Flux, and gitops.engine is argocd: name a folder for Argo CD in gitops.path, as docs/argocd.md shows")
}

func TestCheckStack_WarnsOfWhatThePluginRefusesInARelease(t *testing.T) {
	stack := given(t, map[string]string{"DOMAIN": "infra.example.com", "KEYS": "git"}, byArgoCD)
	advice, problems, err := CheckStack(argoCDTree(t, `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop}
spec: {suspend: true, values: {a: 1}, install: {crds: Skip, disableHooks: true}, chart: {spec: {chart: shop, verify: {provider: cosign}}}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts}
spec: {url: "https://charts.home.arpa", secretRef: {name: login}}
`), stack)
	require.NoError(t, err)
	require.Empty(t, problems)
	var texts []string
	for _, one := range advice {
		texts = append(texts, one.Error())
	}
	const (
		of  = "gitops.path: kubernetes/apps/shop/deployment.yaml: "
		end = " is for Flux, and gitops.engine is argocd; remove it, or write an Application for the chart"
	)
	assert.Equal(t, []string{
		of + "spec.chart.spec.verify of the HelmRelease shop" + end, of + "spec.install.disableHooks of the HelmRelease shop" + end,
		of + "spec.suspend of the HelmRelease shop" + end, of + "spec.secretRef of the HelmRepository charts" + end,
	}, texts)
}

func TestCheckStack_WarnsOfSettingsThatAnApplicationWithoutThePluginLeaves(t *testing.T) {
	files := argoCDTree(t, "kind: Deployment\nspec: {x: \"${CLUSTER_NAME}\"}\n")
	files["kubernetes/clusters/infra/shop.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: argoproj.io/v1alpha1\nkind: Application\n" +
		"metadata: {name: shop}\nspec: {source: {repoURL: \"${SOURCE_URL}\", path: kubernetes/apps/shop}}\n")}
	advice, problems, err := CheckStack(files, given(t, map[string]string{"DOMAIN": "infra.example.com", "KEYS": "git"}, byArgoCD))
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Len(t, advice, 1)
	assert.ErrorContains(t, advice[0], "${CLUSTER_NAME} stays as it is: the Application shop replaces nothing; if the setting is meant, give "+
		"it spec.source.plugin.name: cluster-settings")
}

// Of a release that Argo CD owns, the plugin knows Slipway's values, and that it is suspended.
func TestCheckStack_WarnsOfAnOwnedReleaseThatNoApplicationApplies(t *testing.T) {
	const file = "kubernetes/clusters/infra/platform/cert-manager.yaml"
	stack := given(t, map[string]string{"DOMAIN": "infra.example.com", "KEYS": "git"}, byArgoCD, func(c *cluster.Cluster) {
		c.CertManager.Owner = cluster.OwnerArgoCD
	})
	stack.Git = map[string]cluster.Git{"cert-manager": {File: file}}
	services := stack.Services()
	at := slices.IndexFunc(services, func(s cluster.Service) bool { return s.Name == "cert-manager" })
	text, err := release.Text(services[at])
	require.NoError(t, err)
	for name, one := range map[string]struct{ resources, text, says string }{
		"applied":   {", platform.yaml", text, ""},
		"suspended": {", platform.yaml", strings.Replace(text, "  valuesFrom:", "  suspend: true\n  valuesFrom:", 1), ""},
		"other values": {", platform.yaml", strings.Replace(text, "name: cert-manager-values", "name: others", 1),
			"spec.valuesFrom of the HelmRelease cert-manager is for Flux"},
		"not applied": {"", text, "certManager.owner: argocd, and no Application below kubernetes/clusters/infra applies " + file +
			"; name platform.yaml in the kustomization of kubernetes/clusters/infra"},
	} {
		files := argoCDTree(t, "kind: Deployment\n")
		kustomization := files["kubernetes/clusters/infra/kustomization.yaml"]
		kustomization.Data = []byte(strings.Replace(string(kustomization.Data), ", shop.yaml", ", shop.yaml"+one.resources, 1))
		files["kubernetes/clusters/infra/platform.yaml"] = &fstest.MapFile{Data: []byte(release.Application(stack.GitOps))}
		files[file] = &fstest.MapFile{Data: []byte(one.text)}
		advice, problems, err := CheckStack(files, stack)
		require.NoError(t, err, name)
		require.Empty(t, problems, name)
		if one.says == "" {
			assert.Empty(t, advice, name)
			continue
		}
		require.Len(t, advice, 1, name)
		assert.ErrorContains(t, advice[0], one.says, name)
	}
}

// A folder with a kustomization applies what the kustomization names, and another Kustomization of Flux may apply the file.
func TestCheckStack_WarnsOfAnOwnedReleaseThatFluxDoesNotApply(t *testing.T) {
	const (
		folder = "kubernetes/clusters/infra"
		file   = folder + "/platform/cert-manager.yaml"
		named  = "resources: [web.yaml, platform/cert-manager.yaml]\n"
		layer  = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: platform, namespace: flux-system}\n" +
			"spec: {interval: 10m, prune: true, path: ./" + folder + "/platform, sourceRef: {kind: GitRepository, name: SOURCE}}\n"
		not    = "certManager.owner: flux, and Flux does not apply " + file + "; "
		beside = not + "name cert-manager.yaml in the resources of " + folder + "/platform/kustomization.yaml"
		says   = not + "name platform/cert-manager.yaml in the resources of " + folder + "/kustomization.yaml"
	)
	stack := given(t, nil, func(c *cluster.Cluster) { c.CertManager.Owner = cluster.OwnerFlux })
	stack.Git = map[string]cluster.Git{"cert-manager": {File: file}}
	const none, web = "kind: ConfigMap\n", "resources: [web.yaml]\n"
	for name, one := range map[string]struct{ kustomization, beside, web, says string }{
		"not named":               {web, "", none, says},
		"named":                   {named, "", none, ""},
		"no kustomization":        {"", "", none, ""},
		"one beside the file":     {"resources: [web.yaml, platform]\n", "resources: []\n", none, beside},
		"named beside the file":   {"resources: [web.yaml, platform]\n", "resources: [cert-manager.yaml]\n", none, ""},
		"one that is not named":   {web, "resources: [cert-manager.yaml]\n", none, says},
		"by another layer":        {web, "", strings.Replace(layer, "SOURCE", "flux-system", 1), ""},
		"by a source of its own":  {web, "", strings.Replace(layer, "SOURCE", "platform", 1), ""},
		"by a layer of elsewhere": {web, "", strings.NewReplacer("/platform,", "/other,", "SOURCE", "other").Replace(layer), says},
		"of another repository":   {"resources: [web.yaml, 'https://git.home.arpa/a//b?ref=v1']\n", "", none, ""},
	} {
		files := fstest.MapFS{
			folder + "/web.yaml": {Data: []byte(one.web)},
			file:                 {Data: []byte("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: cert-manager}\n")},
		}
		for of, kustomization := range map[string]string{folder: one.kustomization, folder + "/platform": one.beside} {
			if kustomization != "" {
				files[of+"/kustomization.yaml"] = &fstest.MapFile{Data: []byte(kustomization)}
			}
		}
		advice, problems, err := CheckStack(files, stack)
		require.NoError(t, err, name)
		require.Empty(t, problems, name)
		if one.says == "" {
			assert.Empty(t, advice, name)
			assert.Empty(t, ToName(files, stack, file), name)
			continue
		}
		require.Len(t, advice, 1, name)
		assert.EqualError(t, advice[0], one.says, name)
		assert.Equal(t, strings.TrimPrefix(one.says, not), ToName(files, stack, file), name)
	}
}
