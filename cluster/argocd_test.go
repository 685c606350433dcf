package cluster

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/envsubst"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// projectVariable is the variable with the project of the Application, which Argo CD gives to a plugin.
const projectVariable = "ARGOCD_APP_PROJECT_NAME"

// rendered runs the plugin's script in a folder with manifests, as its container does.
func rendered(t *testing.T, settings, manifests map[string]string) (string, error) {
	t.Helper()
	return renderedWith(t, settings, nil, manifests)
}

// renderedWith runs it with Secrets of Slipway's values, too.
func renderedWith(t *testing.T, settings, secrets, manifests map[string]string) (string, error) {
	t.Helper()
	at := t.TempDir()
	write := func(folder string, files map[string]string) string {
		for name, text := range files {
			file := filepath.Join(at, folder, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		}
		return filepath.Join(at, folder)
	}
	// A kustomize that tells how it was called, if it was not called for a kustomization that is there.
	// Of a release's objects, it writes them as they are. The helm renders the values of any chart as the only object.
	programs := write("bin", map[string]string{"kustomize": `#!/bin/sh
if [ "$1" = build ] && [ "$2" != . ]; then cat "$2/objects.yaml"; exit; fi
if [ "$1" = create ]; then echo "# kustomize $*" >.calls; elif [ -e .calls ]; then cat .calls; echo "# kustomize $*"; fi
if [ "$1" = build ]; then cat *.yaml *.yml Kustomization 2>/dev/null || true; fi
`, "helm": `#!/bin/sh
for last; do :; done
if [ "$1" = pull ]; then mkdir -p "$last/shop"; fi
if [ "$1" = template ]; then cat "$7"; if [ "$8" = --values ]; then echo "---"; echo "args: $2 $5"; cat "$9"; fi; fi
`})
	for _, name := range []string{"kustomize", "helm"} {
		require.NoError(t, os.Chmod(filepath.Join(programs, name), 0o700))
	}
	run := exec.Command("bash", "-c", `eval "$`+pluginScript+`"`)
	run.Dir = write("manifests", manifests)
	run.Env = append(os.Environ(), "SETTINGS_DIR="+write("settings", settings), pluginScript+"="+substitution,
		projectVariable+"="+cmp.Or(os.Getenv(projectVariable), ArgoCDProject), "TMPDIR="+write("tmp", nil),
		"VALUES_DIR="+write("secrets", secrets), "PATH="+programs+":"+os.Getenv("PATH"))
	require.NoError(t, os.MkdirAll(filepath.Join(at, "tmp"), 0o700))
	var out, problems bytes.Buffer
	run.Stdout, run.Stderr = &out, &problems
	if err := run.Run(); err != nil {
		return "", &exec.Error{Name: strings.TrimSpace(problems.String()), Err: err}
	}
	return out.String(), nil
}

func TestArgoCDPlugin_ReplacesWhatFluxReplaces(t *testing.T) {
	settings := map[string]string{
		"POD_CIDR": "10.244.0.0/16", "EMPTY": "", "LB_POOL_BLOCKS": `[{"start":"10.25.11.100","stop":"10.25.11.150"}]`, "A_1": "x y",
		"LIKE": "${POD_CIDR}",
	}
	for _, text := range []string{
		"${POD_CIDR}", "a/${A_1}/b ${A_1}", "${NONE:=own-ca}", "${NONE:-own-ca}", "${EMPTY:=e}", "[${EMPTY}]", "${LB_POOL_BLOCKS}",
		"$POD_CIDR", "$$POD_CIDR", "$", "100%", "${POD_CIDR:=other}", "${NONE:=a b/c:d}", "${NONE:=}", "${LIKE}", "$${POD_CIDR}", "$${NONE:=a}",
	} {
		want, err := envsubst.Eval(text, func(name string) (string, bool) {
			value, defined := settings[name]
			return value, defined
		})
		require.NoError(t, err, text)
		got, err := rendered(t, settings, map[string]string{"kustomization.yaml": "value: " + text + "\n"})
		require.NoError(t, err, text)
		assert.Equal(t, "value: "+want+"\n", got, text)
	}
}

func TestArgoCDPlugin_NamesWhatItCannotReplace(t *testing.T) {
	for text, want := range map[string]string{
		"${NONE}":          "${NONE} is not a setting of this cluster; add it to gitops.settings of the stack file, or write $${NONE}",
		"${NONE/a/b}":      "${NONE/a/b} is not a form that is replaced; write ${NAME}, ${NAME:=default} or $${NAME}",
		"${../etc/passwd}": "${../etc/passwd} is not a form that is replaced; write ${NAME}, ${NAME:=default} or $${NAME}",
	} {
		_, err := rendered(t, nil, map[string]string{"kustomization.yaml": "value: " + text + "\na: b\n"})
		assert.ErrorContains(t, err, want)
	}
}

func TestArgoCDPlugin_GivesAFolderAKustomizationAsFluxDoes(t *testing.T) {
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		got, err := rendered(t, nil, map[string]string{name: "kind: Kustomization\n"})
		require.NoError(t, err)
		assert.NotContains(t, got, "create", "%s is there", name)
	}
	got, err := rendered(t, nil, map[string]string{"a.yaml": "a: 1\n"})
	require.NoError(t, err)
	assert.Equal(t, "# kustomize create --autodetect --recursive\n# kustomize build .\na: 1\n", got)
}

func TestArgoCDPlugin_KeepsWhatIsMarkedForFlux(t *testing.T) {
	const mark = "    kustomize.toolkit.fluxcd.io/prune: disabled\n"
	got, err := rendered(t, map[string]string{"A": "1"}, map[string]string{"kustomization.yaml": `script: ${HOME}
metadata:
  annotations:
    kustomize.toolkit.fluxcd.io/substitute: disabled
`})
	require.NoError(t, err)
	assert.Contains(t, got, "script: ${HOME}\n", "a manifest that is not substituted")
	const options = "    argocd.argoproj.io/compare-options: IgnoreExtraneous\n    argocd.argoproj.io/sync-options: Prune=false,Delete=false\n"
	for before, after := range map[string]string{
		"kind: A\nmetadata:\n  annotations:\n    before: \"${A}\"\n" + mark: "kind: A\nmetadata:\n  annotations:\n" + options +
			"    before: \"1\"\n" + mark,
		"kind: A\nmetadata:\n  labels:\n" + mark + "  name: x\nspec: {}\n": "kind: A\nmetadata:\n  labels:\n" + mark +
			"  name: x\n  annotations:\n" + options + "spec: {}\n",
		"metadata:\n  annotations:\n    argocd.argoproj.io/sync-options: ServerSideApply=true\n" + mark: "metadata:\n  annotations:\n" +
			"    argocd.argoproj.io/compare-options: IgnoreExtraneous\n" +
			"    argocd.argoproj.io/sync-options: ServerSideApply=true,Prune=false,Delete=false\n" + mark,
		"metadata:\n  name: x\nspec:\n  template:\n    metadata:\n      annotations:\n    " + mark: "metadata:\n  name: x\nspec:\n  template:\n" +
			"    metadata:\n      annotations:\n    " + mark,
	} {
		got, err := rendered(t, map[string]string{"A": "1"}, map[string]string{"kustomization.yaml": before + "---\nkind: Another\n"})
		require.NoError(t, err)
		assert.Equal(t, after+"---\nkind: Another\n", got)
	}
}

const (
	chartsOfShop = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata:\n  name: charts\n  namespace: shop\nspec:\n" +
		"  url: https://charts.home.arpa\n"
	shopRelease = "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: shop\n  namespace: shop\nspec:\n" +
		"  chart:\n    spec:\n      chart: shop\n      sourceRef:\n        kind: HelmRepository\n        name: charts\n      version: 1.2.3\n"
)

// The objects of the tree's charts are compared with those of helm-controller in tests/tree.
func TestArgoCDPlugin_NamesWhatItCannotRender(t *testing.T) {
	for _, one := range []struct{ was, is, want string }{
		{"spec:\n  chart:", "spec:\n  valuesFrom:\n  - kind: Secret\n    name: own\n  chart:",
			"HelmRelease shop/shop: spec: valuesFrom is for Flux; remove it"},
		{"spec:\n  chart:", "spec:\n  driftDetection:\n    ignore:\n    - paths: [/a]\n  chart:",
			"HelmRelease shop/shop: spec.driftDetection: ignore is for Flux"},
		{"      version:", "      verify:\n        provider: cosign\n      version:",
			"HelmRelease shop/shop: spec.chart.spec: verify is for Flux"},
		{"  url:", "  secretRef:\n    name: login\n  url:", "HelmRepository shop/charts: spec: secretRef is for Flux"},
		{"https:", "evil:", "HelmRepository shop/charts: spec.url is evil://charts.home.arpa; write one of https or oci"},
		{"version: 1.2.3", "version: 1.x", "HelmRelease shop/shop: spec.chart.spec.version is 1.x; write one version"},
		{"version: 1.2.3", "version: 1.2.3 || >=1", "spec.chart.spec.version is 1.2.3 || >=1; write one version"},
		{"      version: 1.2.3\n", "", "spec.chart.spec.version is missing; write one version"},
		{"        name: charts", "        name: others", "spec.chart.spec.sourceRef: the folder has no HelmRepository shop/others; add it"},
		{"      chart: shop", "      chart: ../shop", "spec.chart.spec.chart is ../shop; write a name"},
		{"spec:\n  chart:", "spec:\n  releaseName: --output-dir=/tmp\n  chart:", "spec.releaseName is --output-dir=/tmp; write a name"},
		{"HelmRelease\nmetadata:\n  name: shop\n  namespace: shop\n", "HelmRelease\nmetadata:\n  name: shop\n",
			"HelmRelease shop: metadata.namespace is missing; write it"},
		{"spec:\n  chart:", "spec:\n  dependsOn:\n  - name: shop\n  chart:", "HelmRelease shop/shop: spec.dependsOn leads back to itself"},
	} {
		require.Contains(t, chartsOfShop+shopRelease, one.was)
		_, err := rendered(t, nil, map[string]string{"kustomization.yaml": strings.Replace(chartsOfShop+shopRelease, one.was, one.is, 1)})
		assert.ErrorContains(t, err, one.want)
	}
}

const (
	valuesFrom = "  valuesFrom:\n  - kind: Secret\n    name: shop-values\n"
	stays      = "metadata:\n  annotations:\n    kustomize.toolkit.fluxcd.io/prune: disabled\n"
)

// ownedRelease is a release that Argo CD owns.
var ownedRelease = chartsOfShop + strings.Replace(shopRelease, "metadata:\n", stays, 1) + valuesFrom

func TestArgoCDPlugin_RendersWhatArgoCDOwnsWithSlipwaysValues(t *testing.T) {
	const own = "kind: A\nmetadata:\n  name: a\n"
	manifests := ownedRelease + "  targetNamespace: there\n  releaseName: store\n  storageNamespace: x\n  values:\n    b: ${A}\n"
	got, err := renderedWith(t, map[string]string{"A": "1"}, map[string]string{"shop-values": own},
		map[string]string{"kustomization.yaml": manifests})
	require.NoError(t, err)
	assert.Contains(t, got, "args: store there\nb: 1\n", "the user's values come last")
	assert.Contains(t, got, "---\nkind: A\nmetadata:\n  namespace: there\n  name: a\n  annotations:\n"+
		"    meta.helm.sh/release-namespace: \"there\"\n    meta.helm.sh/release-name: \"store\"\n"+
		"    argocd.argoproj.io/compare-options: IgnoreExtraneous\n    argocd.argoproj.io/sync-options: Prune=false,Delete=false\n"+
		"  labels:\n    app.kubernetes.io/managed-by: Helm\n", "Helm could take it back, and nothing removes it")
	sum := sha256.Sum256([]byte(own))
	assert.Contains(t, got, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "+ValuesSecret("shop")+"\n  namespace: "+ArgoCDNamespace+
		"\ndata:\n  checksum: "+hex.EncodeToString(sum[:])+"\n", "the record")
	assert.NotContains(t, strings.SplitN(got, "kind: ConfigMap", 2)[1], "sync-options", "the record goes with the release")
}

func TestArgoCDPlugin_LeavesAloneWhatIsSuspended(t *testing.T) {
	files := func(manifests string) map[string]string { return map[string]string{"kustomization.yaml": manifests} }
	got, err := renderedWith(t, nil, nil, files(ownedRelease+"  suspend: true\n"))
	require.NoError(t, err)
	assert.Empty(t, got, "not even Slipway's values are needed")
	_, err = rendered(t, nil, files(chartsOfShop+shopRelease+"  suspend: true\n"))
	assert.ErrorContains(t, err, "HelmRelease shop/shop: spec.suspend would remove its objects; remove it, or add the annotation")
}

// The chart of a release with the same name could show the keys that are among the values.
func TestArgoCDPlugin_GivesSlipwaysValuesToItsOwnProjectAlone(t *testing.T) {
	t.Setenv(projectVariable, "shop")
	got, err := renderedWith(t, nil, map[string]string{"shop-values": "key: secret"}, map[string]string{"kustomization.yaml": ownedRelease})
	require.ErrorContains(t, err, "HelmRelease shop/shop: the values of a component are for Applications of the project default")
	assert.NotContains(t, got+err.Error(), "secret")
}

func TestArgoCDPlugin_WaitsForSlipwaysValues(t *testing.T) {
	_, err := rendered(t, nil, map[string]string{"kustomization.yaml": ownedRelease})
	assert.ErrorContains(t, err, "HelmRelease shop/shop: the Secret argocd/shop-values is not there; pulumi up writes it")
}

// Argo CD would run such hooks when the Application is removed, which happens after the release was handed back.
func TestArgoCDPlugin_RunsNothingThatHelmRunsWhenItUninstalls(t *testing.T) {
	for hook, there := range map[string]bool{"post-delete": false, "pre-delete,post-delete": false, "post-install,post-delete": true} {
		own := "kind: A\nmetadata:\n  annotations:\n    helm.sh/hook: " + hook + "\n"
		got, err := renderedWith(t, nil, map[string]string{"shop-values": own}, map[string]string{"kustomization.yaml": ownedRelease})
		require.NoError(t, err)
		assert.Equal(t, there, strings.Contains(got, "helm.sh/hook"), hook)
		assert.NotContains(t, got, "meta.helm.sh", "Helm does not own its hooks")
	}
}

func TestArgoCD_MountsSlipwaysValuesOfEveryRelease(t *testing.T) {
	c := argoCD(nil)
	volumes, _ := ValueAt(valuesOf(t, c), "repoServer.volumes").([]any)
	text := asJSON(volumes)
	for _, release := range c.Releases() {
		assert.Contains(t, text, `{"secret":{"items":[{"key":"values.yaml","path":"`+release.Name+`-values"}],"name":"`+release.Name+
			`-values","optional":true}}`, "a changed owner does not restart the repo-server")
	}
}

func TestArgoCDPlugin_TellsWhatItKnows(t *testing.T) {
	assert.Equal(t, []string{"interval", "timeout", "type", "url"}, ArgoCDPluginKnows("repository"))
	for _, part := range []string{"spec", "driftDetection", "install", "upgrade", "chart"} {
		assert.NotEmpty(t, ArgoCDPluginKnows(part), part)
	}
	assert.Empty(t, ArgoCDPluginKnows("another"))
}

func TestArgoCDPlugin_PutsTheObjectsOfAReleaseInItsPlace(t *testing.T) {
	const (
		of    = "  values:\n    kind: A\n    metadata:\n      name: a\n"
		first = "---\nkind: A\nmetadata:\n  namespace: shop\n  name: a\n"
		keep  = "    argocd.argoproj.io/compare-options: IgnoreExtraneous\n    argocd.argoproj.io/sync-options: Prune=false,Delete=false\n"
	)
	after := strings.Replace(shopRelease, "spec:\n", "spec:\n  dependsOn:\n  - name: shop\n    namespace: shop\n", 1)
	after = strings.NewReplacer("name: shop\n  namespace: shop\n", "name: shop\n  namespace: other\n",
		"name: charts\n", "name: charts\n        namespace: shop\n").Replace(after)
	annotated := func(annotation, namespace string) string { // as the values of a release, whose keys kustomize would sort
		return "  values:\n    kind: A\n    metadata:\n      annotations:\n        " + annotation + "\n      namespace: " + namespace + "\n"
	}
	for name, one := range map[string]struct{ manifests, want string }{
		"an object": {chartsOfShop + shopRelease + of, first},
		"one of another namespace, with an empty line in a text": {
			chartsOfShop + shopRelease + annotated("text: |\n          a\n\n          b", "there"),
			"---\nkind: A\nmetadata:\n  annotations:\n    text: |\n      a\n\n      b\n  namespace: there\n",
		},
		"a CRD": {
			chartsOfShop + shopRelease + "  values:\n    kind: CustomResourceDefinition\n    metadata:\n      namespace: x\n",
			"---\nkind: CustomResourceDefinition\nmetadata:\n  namespace: x\n  annotations:\n" + keep,
		},
		"what Helm keeps": {
			chartsOfShop + shopRelease + annotated("helm.sh/resource-policy: keep", "x"),
			"---\nkind: A\nmetadata:\n  annotations:\n" + keep + "    helm.sh/resource-policy: keep\n  namespace: x\n",
		},
		"an object of a release that stays": {
			chartsOfShop + strings.Replace(shopRelease, "metadata:\n",
				"metadata:\n  annotations:\n    kustomize.toolkit.fluxcd.io/prune: disabled\n", 1) + of,
			first + "  annotations:\n" + keep,
		},
		"a release after one of the same name in another namespace": {
			chartsOfShop + shopRelease + of + after + of,
			"---\nkind: A\nmetadata:\n  namespace: other\n  name: a\n  annotations:\n    argocd.argoproj.io/sync-wave: \"1\"\n" +
				first,
		},
		"an object with a wave of its own": {
			chartsOfShop + shopRelease + of + after + annotated(`argocd.argoproj.io/sync-wave: "-3"`, "x"),
			"---\nkind: A\nmetadata:\n  annotations:\n    argocd.argoproj.io/sync-wave: \"-2\"\n  namespace: x\n" + first,
		},
		"a hook": {
			chartsOfShop + shopRelease + of + after + annotated("helm.sh/hook: post-install", "x"),
			"---\nkind: A\nmetadata:\n  annotations:\n    helm.sh/hook: post-install\n  namespace: x\n" + first,
		},
	} {
		got, err := rendered(t, nil, map[string]string{"kustomization.yaml": one.manifests})
		require.NoError(t, err, name)
		assert.Equal(t, one.want, got, name)
	}
}

// argoCD returns a cluster that is handed over to Argo CD.
func argoCD(change func(*Cluster)) *Cluster {
	c := New("infra")
	c.GitOps.Engine, c.GitOps.URL = EngineArgoCD, "https://git.home.arpa:8443/platform/slipway.git"
	if change != nil {
		change(c)
	}
	return c
}

func valuesOf(t *testing.T, c *Cluster) map[string]any {
	t.Helper()
	service := c.ArgoCDService()
	values, err := service.UserValues.MergedInto(service.Values)
	require.NoError(t, err)
	return values
}

func TestArgoCD_IsConfiguredForTheHandover(t *testing.T) {
	values := valuesOf(t, argoCD(nil))
	cm, _ := ValueAt(values, "configs.cm").(map[string]any)
	assert.Equal(t, "annotation", cm["application.resourceTrackingMethod"], "an object that Helm made is adopted by it")
	assert.Equal(t, "60s", cm["timeout.reconciliation"], "gitops.interval")
	params, _ := ValueAt(values, "configs.params").(map[string]any)
	assert.Equal(t, map[string]any{"controller.diff.server.side": true, "controller.resource.health.persist": true,
		"reposerver.plugin.tar.exclusions": ".git"}, params)
	assert.Equal(t, []any{map[string]any{"name": "ARGOCD_PAUSE_GEN_AFTER_FAILED_ATTEMPTS", "value": "0"}}, ValueAt(values, "global.env"))
	assert.Equal(t, false, ValueAt(values, "dex.enabled"))
	assert.Nil(t, ValueAt(values, "redis-ha"))
	container, _ := ValueAt(values, "repoServer.extraContainers").([]any)
	require.Len(t, container, 1)
	assert.Contains(t, container[0].(map[string]any)["volumeMounts"], map[string]any{"name": "cluster-settings", "mountPath": "/settings"})
}

func TestArgoCD_RestartsTheRepoServerForAChangedSetting(t *testing.T) {
	before := valuesOf(t, argoCD(nil))
	after := valuesOf(t, argoCD(func(c *Cluster) { c.GitOps.Settings = map[string]string{"DOMAIN": "home.example.com"} }))
	read := func(values map[string]any) any {
		annotations, _ := ValueAt(values, "repoServer.podAnnotations").(map[string]any)
		return annotations[AnnotationReads]
	}
	assert.NotEmpty(t, read(before))
	assert.Equal(t, read(before), read(valuesOf(t, argoCD(nil))))
	assert.NotEqual(t, read(before), read(after))
}

func TestArgoCD_TrustsTheHostOfItsRepository(t *testing.T) {
	values := valuesOf(t, argoCD(func(c *Cluster) { c.GitOps.CA, c.GitOps.KnownHosts = "PEM", "HOSTS" }))
	assert.Equal(t, map[string]any{"git.home.arpa": "PEM"}, ValueAt(values, "configs.tls.certificates"), "by name, without a port")
	assert.Equal(t, "HOSTS", ValueAt(values, "configs.ssh.extraHosts"))
}

func TestArgoCD_RunsTwiceWhatServesRequestsWithHighAvailability(t *testing.T) {
	values := valuesOf(t, argoCD(func(c *Cluster) { c.GitOps.ArgoCD.HighAvailability = true }))
	assert.Equal(t, true, ValueAt(values, "redis-ha.enabled"))
	update, _ := ValueAt(values, "redis-ha.haproxy.deploymentStrategy.rollingUpdate").(map[string]any)
	assert.EqualValues(t, 0, update["maxSurge"], "three nodes have no place for a fourth pod")
	assert.EqualValues(t, 1, update["maxUnavailable"])
	for _, part := range []string{"server", "applicationSet", "repoServer"} {
		assert.EqualValues(t, 2, ValueAt(values, part+".replicas"), part)
	}

	own := valuesOf(t, argoCD(func(c *Cluster) {
		c.GitOps.ArgoCD.HighAvailability = true
		c.GitOps.ArgoCD.Values = ChartValues(`{"redis-ha":{"haproxy":{"deploymentStrategy":{"type":"Recreate"}}}}`)
	}))
	assert.Equal(t, map[string]any{"type": "Recreate"}, ValueAt(own, "redis-ha.haproxy.deploymentStrategy"), "a strategy of one's own stays")
	assert.Equal(t, true, ValueAt(own, "redis-ha.enabled"))
}

func TestArgoCD_GivesItsPluginTheVariablesOfTheRepoServer(t *testing.T) {
	values := valuesOf(t, argoCD(func(c *Cluster) {
		c.GitOps.ArgoCD.Values = ChartValues(`{"repoServer":{"env":[{"name":"HTTPS_PROXY","value":"http://proxy.home.arpa:3128"}]}}`)
	}))
	container, _ := ValueAt(values, "repoServer.extraContainers").([]any)
	require.Len(t, container, 1)
	assert.Contains(t, container[0].(map[string]any)["env"], map[string]any{"name": "HTTPS_PROXY", "value": "http://proxy.home.arpa:3128"})
}

func TestArgoCD_LeavesToTheUserWhatIsOffByDefault(t *testing.T) {
	values := valuesOf(t, argoCD(func(c *Cluster) { c.GitOps.ArgoCD.Values = ChartValues(`{"dex":{"enabled":true}}`) }))
	assert.Equal(t, true, ValueAt(values, "dex.enabled"))
	assert.Equal(t, false, ValueAt(values, "notifications.enabled"))
}

// The chart expands templates in the values of its extra containers, and Kubernetes what is in a variable of a container: it makes one
// dollar of two, and looks for other variables in $(NAME).
func TestArgoCDPlugin_HasNothingThatHelmOrKubernetesWouldExpand(t *testing.T) {
	for _, expanded := range []string{"{{", "$$", "$("} {
		assert.NotContains(t, substitution, expanded)
	}
}
