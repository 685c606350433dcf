package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

const root = "../../../.."

// ofOneConsumer is what the Kustomization of one consumer substitutes, which docs/gitops.md shows: no setting of the cluster.
const ofOneConsumer = "STORAGE_CONSUMER"

// quote is no setting: its default, which nobody changes, is the quote around a text.
const quote = "QUOTE"

func TestTree_UsesOnlySettingsThatSomebodyDefines(t *testing.T) {
	var keys []string
	for _, setting := range cluster.Settings {
		keys = append(keys, setting.Key)
	}
	keys = append(slices.AppendSeq(keys, maps.Keys(ours(t))), ofOneConsumer)
	require.NoError(t, checkAll(os.DirFS(root), "kubernetes", keys))
}

// checkAll is like Check for all manifests below a folder, whichever of them a cluster applies. keys are the settings that any cluster can
// define. It is an error if there are no manifests.
func checkAll(repository fs.FS, folder string, keys []string) error {
	reader := newReader(repository)
	read := 0
	err := fs.WalkDir(repository, folder, func(name string, _ fs.DirEntry, err error) error {
		if extension := path.Ext(name); err != nil || extension != ".yaml" && extension != ".yml" {
			return err
		}
		read++
		_, err = reader.objects(name)
		return err
	})
	if err == nil && read == 0 {
		err = fmt.Errorf("%s: has no manifests", folder)
	}
	return errors.Join(append(reader.unreadable, err, reader.undefined(keys))...)
}

func TestCheck_NamesEachFileThatIsNoYAML(t *testing.T) {
	err := Check(fstest.MapFS{
		"tree/a.yaml": {Data: []byte("a: [\n")}, "tree/b.yaml": {Data: []byte("kind: 'x\n")}, "tree/c.yaml": {Data: []byte("{}")},
	}, "tree", nil)
	assert.ErrorContains(t, err, "tree/a.yaml: yaml: ")
	assert.ErrorContains(t, err, "tree/b.yaml: yaml: ")
	assert.NotContains(t, err.Error(), "c.yaml")
}

func TestTree_OfEachStackUsesOnlySettingsOfThatStack(t *testing.T) {
	for file, stack := range stacks(t) {
		assert.NoError(t, Check(os.DirFS(root), stack.GitOps.Path, stack.Settings()), file)
		settings := stack.Settings()
		delete(settings, "LB_POOL_BLOCKS")
		assert.ErrorContains(t, Check(os.DirFS(root), stack.GitOps.Path, settings),
			"kubernetes/infrastructure/networking/cilium/ipam/loadbalancer-pool.yaml:", "what Kustomizations refer to is read, too")
	}
}

func TestTree_HasTheSettingsOfTheStackFiles(t *testing.T) {
	for file, stack := range stacks(t) {
		assert.Subset(t, slices.Collect(maps.Keys(ours(t))), slices.Collect(maps.Keys(stack.GitOps.Settings)), file)
	}
}

// stacks are the clusters of the stack files, by the file.
func stacks(t *testing.T) map[string]*cluster.Cluster {
	t.Helper()
	declared := map[string]*cluster.Cluster{}
	for _, file := range clusters.Samples(t) {
		declared[file] = clusters.Read(t, file)
	}
	return declared
}

// repository is a tree in which everything is defined.
func repository(edits ...string) fstest.MapFS {
	files := map[string]string{
		"clusters/infra/apps.yaml": `# ${COMMENT}
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps}
spec:
  path: ./apps/${KIND}
  sourceRef: {kind: GitRepository, name: flux-system}
  postBuild:
    substitute: {REPLICAS: "2"}
    substituteFrom: [{kind: ConfigMap, name: cluster-settings}]
`,
		"apps/web/kustomization.yaml": `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [web.yaml, ../shared]
`,
		"apps/web/web.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data:
  "${CLUSTER_NAME}": "${MISSING:=default} $${ESCAPED} $PLAIN ${REPLICAS}"
  script: |
    line
    name=${CLUSTER_NAME}
`,
		"apps/shared/shared.yaml": "kind: ConfigMap\ndata: {a: '${CLUSTER_NAME}'}\n",
		"apps/web/unused.yaml":    "kind: ConfigMap\ndata: {a: '${UNUSED}'}\n",
		"apps/other/other.yaml":   "kind: ConfigMap\ndata: {a: '${OTHER}'}\n",
	}
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(strings.NewReplacer(edits...).Replace(text))}
	}
	return tree
}

func TestCheck_ReportsFileLineKeyAndTheNearestDefinedKey(t *testing.T) {
	settings := map[string]string{"KIND": "web", "CLUSTER_NAME": "infra", "POD_CIDR": "10.244.0.0/16"}
	require.NoError(t, Check(repository(), "clusters/infra", settings))
	for edit, want := range map[[2]string]string{
		{"name=${CLUSTER_NAME}", "name=${CLUSTER_NAM}"}: "apps/web/web.yaml:8: ${CLUSTER_NAM} is not defined, " +
			"and Flux would write nothing in its place; did you mean CLUSTER_NAME?",
		{`"${CLUSTER_NAME}":`, `"${cluster_name}":`}: "apps/web/web.yaml:5: ${cluster_name} is not defined, " +
			"and Flux would write nothing in its place; did you mean CLUSTER_NAME?",
		{"{a: '${CLUSTER_NAME}'}", "{a: '${BGP_ASN}'}"}: "apps/shared/shared.yaml:2: ${BGP_ASN} is not defined, " +
			"and Flux would write nothing in its place; set network.loadBalancers.bgp.asn, which it follows",
		{"{a: '${CLUSTER_NAME}'}", "{a: '${STORAGE}'}"}: "apps/shared/shared.yaml:2: ${STORAGE} is not defined, " +
			"and Flux would write nothing in its place; add it to gitops.settings in the stack file",
		{"name=${CLUSTER_NAME}", "name=${CLUSTER_NAM^^}"}: "apps/web/web.yaml:8: ${CLUSTER_NAM} is not defined, " +
			"and Flux would write nothing in its place; did you mean CLUSTER_NAME?",
		{"name=${CLUSTER_NAME}", "name=${CLUSTER_NAME"}: "apps/web/web.yaml:7: Flux cannot read what follows a $ here: missing closing " +
			"brace; write $$ for a $ of the text's own",
		{"name: cluster-settings", "name: others"}: "apps/web/web.yaml:5: ${CLUSTER_NAME} is not defined, and Flux would write nothing " +
			"in its place; add the ConfigMap cluster-settings to postBuild.substituteFrom of the Kustomization apps\n" +
			"apps/web/web.yaml:8: ${CLUSTER_NAME} is not defined, and Flux would write nothing " +
			"in its place; add the ConfigMap cluster-settings to postBuild.substituteFrom of the Kustomization apps\n" +
			"apps/shared/shared.yaml:2: ${CLUSTER_NAME} is not defined, and Flux would write nothing " +
			"in its place; add the ConfigMap cluster-settings to postBuild.substituteFrom of the Kustomization apps",
		{`"${CLUSTER_NAME}": `, `"${STORAGE}": "${STORAGE}${DISKS}${STORAGE}" # `}: "apps/web/web.yaml:5: ${STORAGE} is not defined " +
			"(also in 2 more places), and Flux would write nothing in its place; add it to gitops.settings in the stack file\n" +
			"apps/web/web.yaml:5: ${DISKS} is not defined, and Flux would write nothing in its place; add it to gitops.settings in the " +
			"stack file",
		{"./apps/${KIND}", "./apps/${OTHER:=gone}"}: "clusters/infra/apps.yaml: Kustomization apps: its path apps/gone is not in the repository",
	} {
		assert.EqualError(t, Check(repository(edit[0], edit[1]), "./clusters/infra/", settings), want)
	}
}

func TestCheck_LeavesAloneWhatIsNotSubstitutedAndATreeElsewhere(t *testing.T) {
	settings := map[string]string{"KIND": "web", "CLUSTER_NAME": "infra"}
	assert.NoError(t, Check(repository("metadata: {name: web}",
		"metadata: {name: web, annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}", "name=${CLUSTER_NAME}", "name=${OWN}"),
		"clusters/infra", settings))
	assert.NoError(t, Check(repository("name: flux-system", "name: elsewhere"), "clusters/infra", settings), "another repository's folder")
	assert.NoError(t, Check(repository(), "clusters/elsewhere", settings))
}

func TestCheck_ReadsGeneratedConfigMapsComponentsAndJSONAsFluxDoes(t *testing.T) {
	const kustomization = "configMapGenerator: [{name: a, files: [index.html, page=other.html, logo.png], envs: [values.env]}]\n" +
		"resources: [web.json]\ncomponents: [part]\n"
	files := fstest.MapFS{
		"a/kustomization.yaml":      {Data: []byte(kustomization)},
		"a/index.html":              {Data: []byte("<p>\n${ONE}\n")},
		"a/other.html":              {Data: []byte("${TWO}")},
		"a/values.env":              {Data: []byte("a=${THREE}")},
		"a/logo.png":                {Data: []byte("\xff${BYTES}")},
		"a/web.json":                {Data: []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "${FOUR}"}}`)},
		"a/unnamed.json":            {Data: []byte(`{"a": "${UNNAMED}"}`)},
		"a/part/kustomization.yaml": {Data: []byte("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [part.yaml]\n")},
		"a/part/part.yaml":          {Data: []byte("kind: ConfigMap\ndata: {a: '${FIVE}'}\n")},
	}
	const unknown = " is not defined, and Flux would write nothing in its place; add it to gitops.settings in the stack file"
	assert.EqualError(t, Check(files, "a", nil), "a/index.html:2: ${ONE}"+unknown+"\na/other.html:1: ${TWO}"+unknown+
		"\na/values.env:1: ${THREE}"+unknown+"\na/web.json:1: ${FOUR}"+unknown+"\na/part/part.yaml:2: ${FIVE}"+unknown)

	files["a/kustomization.yaml"].Data = []byte(kustomization +
		"generatorOptions: {annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\n")
	assert.NoError(t, Check(files, "a", map[string]string{"FOUR": "4", "FIVE": "5"}))
	delete(files, "a/other.html")
	files["a/kustomization.yaml"].Data = []byte(kustomization)
	assert.EqualError(t, Check(files, "a", nil), "a/kustomization.yaml: configMapGenerator a: a/other.html is not in the repository")
}

func TestCheckStack_WarnsOfASettingThatStaysAsItIsWritten(t *testing.T) {
	manifests := withTree(t, `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps}
spec: {interval: 1h, prune: true, path: ./apps, sourceRef: {kind: GitRepository, name: flux-system}}
`)
	const script = "kind: ConfigMap\ndata:\n  a: ${HOME} ${CLUSTER_NAME} ${broken\n  b: ${CLUSTER_NAME}\n"
	manifests["apps/script.yaml"] = &fstest.MapFile{Data: []byte(script)}
	stack := given(t, nil)
	advice, problems, err := CheckStack(manifests, stack)
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.EqualError(t, advice, "gitops.path: apps/script.yaml:4: ${CLUSTER_NAME} stays as it is: the Kustomization apps replaces nothing; "+
		"if the setting is meant, give it postBuild.substituteFrom")
	assert.NoError(t, Check(manifests, stack.GitOps.Path, stack.Settings()))
}

func TestCheckAll_ReadsWhatNoClusterApplies(t *testing.T) {
	keys := []string{"KIND", "CLUSTER_NAME"}
	assert.ErrorContains(t, checkAll(repository(), ".", keys), "apps/other/other.yaml:2: ${OTHER}")
	assert.ErrorContains(t, checkAll(repository(), ".", keys), "apps/web/unused.yaml:2: ${UNUSED}")
	assert.NoError(t, checkAll(repository(), ".", append(keys, "OTHER", "UNUSED")))
	assert.ErrorContains(t, checkAll(fstest.MapFS{}, ".", keys), "has no manifests")
}
