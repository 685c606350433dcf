package tree

import (
	"bytes"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/stacks/config"
)

// schemas are read once: it takes seconds.
var schemas = sync.OnceValues(NewSchemas)

// stacks are the clusters of all stack files.
func stacks(t *testing.T) (declared []*cluster.Cluster) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "tests", "clusters", "samples", "Pulumi.*.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		source, err := config.ParseFile(file, text)
		require.NoError(t, err)
		stack, err := config.Load(source)
		require.NoError(t, err)
		declared = append(declared, stack)
	}
	require.Len(t, declared, 2)
	return declared
}

// clusters are the trees of all stacks, by the name of the stack.
func clusters(t *testing.T) map[string][]Layer {
	t.Helper()
	trees := map[string][]Layer{}
	for _, stack := range stacks(t) {
		for name, change := range variants {
			settings, files := stack.Settings(), checkout(t)
			maps.Copy(settings, change.settings)
			change.addWorkloads(t, files, stack.GitOps.Path)
			for folder, secret := range change.keys {
				require.NoError(t, files.WriteFile(path.Join("kubernetes/infrastructure", folder, "key.yaml"), []byte(committed(secret))))
			}
			layers, err := Build(files, stack.GitOps.Path, settings)
			require.NoError(t, err, "%s%s: every path builds, and every variable is defined", stack.Identity.Name, name)
			trees[stack.Identity.Name+name] = layers
		}
	}
	return trees
}

// variant is another choice than that of the stack files.
type variant struct {
	settings  map[string]string
	workloads map[string]string // Kustomizations of Flux that are copied to the cluster's workloads, by their names there
	keys      map[string]string // NAMESPACE/NAME of the Secrets that are committed, by folder below kubernetes/infrastructure
}

// committed stands for the file of a key that kubeseal or sops writes.
func committed(secret string) string {
	namespace, name, _ := strings.Cut(secret, "/")
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nstringData: {key: example}\n"
}

// Names of variants: without any change, with volumes on the nodes' own disks, and with metrics-server.
const (
	asDeclared = ""
	withLocal  = " with the nodes' own disks and no Ceph"
	besideCeph = " with the nodes' own disks beside Ceph"

	withMetrics = " with Cloudflare, alerts and metrics-server"
)

// Settings with which manifests need keys.
var (
	withServer = map[string]string{
		"ISSUER": "acme", "ACME_EMAIL": "ops@example.com", "DNS": "rfc2136", "DNS_SERVER": "10.25.11.2",
		"ETCD_BACKUP": "bucket", "ETCD_BACKUP_RECIPIENT": "age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z",
		"ETCD_BACKUP_ENDPOINT": "https://s3.home.arpa", "ETCD_BACKUP_BUCKET": "etcd",
	}
	withCloudflare = map[string]string{
		"ISSUER": "acme-cloudflare", "ACME_EMAIL": "ops@example.com", "DNS": "cloudflare",
		"CLOUDFLARE_ZONE": "023e105f4ecef8ad9ca31a8372d0c353", "ALERTS": "webhook", "ALERTS_TYPE": "discord", "METRICS_SERVER": "release",
		"ALERTMANAGER": "webhook", "ALERTMANAGER_TYPE": "discord",
	}
)

// with returns settings with others added.
func with(settings, others map[string]string) map[string]string {
	all := maps.Clone(settings)
	maps.Copy(all, others)
	return all
}

// variants make that every folder is built.
var variants = map[string]variant{
	asDeclared: {},
	" with bgp, acme and dns": {settings: with(withServer, map[string]string{
		"LB_ANNOUNCE": "bgp", "BGP_ASN": "64512",
		"BGP_PEERS":            `[{"name":"a","peerASN":64513,"peerAddress":"10.25.11.1","peerConfigRef":{"name":"infra"}}]`,
		"ETCD_BACKUP_SCHEDULE": "@daily", "ETCD_BACKUP_BUCKET": "20260801", "DNS_KEY_NAME": "true",
	})},
	" without announcements and storage": {settings: map[string]string{
		"LB_ANNOUNCE": "none", "STORAGE_ROLE": "none", "STORAGE_CONNECTION": "git", "SOURCE_KIND": "OCIRepository",
	}},
	withLocal: {settings: map[string]string{
		"STORAGE_ROLE": "none", "STORAGE_CONNECTION": "git", "LOCAL_STORAGE": "default", "LOCAL_STORAGE_VOLUME": "data",
		"LOCAL_STORAGE_NODES": `["home-worker-1"]`,
	}},
	besideCeph: {settings: map[string]string{
		"LOCAL_STORAGE": "beside", "LOCAL_STORAGE_VOLUME": "data", "LOCAL_STORAGE_NODES": `["worker-1","worker-2"]`,
	}},
	withMetrics: {settings: withCloudflare},
	" with keys in Git": {
		settings: with(withServer, map[string]string{"KEYS": "git", "ETCD_BACKUP_SCHEDULE": "*/30 * * * *"}),
		keys: map[string]string{
			"security/issuers/git/acme": "cert-manager/dns-key", "networking/external-dns/git/rfc2136": "external-dns/dns-key",
			"backup/etcd/git/bucket": "etcd-backup/bucket",
		},
	},
	withMetrics + ", keys in Git": {
		settings: with(withCloudflare, map[string]string{"KEYS": "git"}),
		keys: map[string]string{
			"security/issuers/git/acme-cloudflare": "cert-manager/cloudflare", "networking/external-dns/git/cloudflare": "external-dns/cloudflare",
			"alerts/git/webhook": "flux-system/alerts", "observability/alertmanager/git/webhook": "observability/alerts",
		},
	},
	" with keys in Git, and none is needed": {settings: map[string]string{"KEYS": "git"}},
	" without a vault for the storage":      {settings: map[string]string{"STORAGE_CONNECTION": "git"}},
	" with a database":                      {workloads: map[string]string{"database.yaml": databaseLayer}},
}

// databaseLayer is the Kustomization of Flux of the example of a database, which docs/gitops.md copies.
const databaseLayer = "kubernetes/apps/database/layer.yaml"

// addWorkloads adds the variant's workloads to a cluster, as the guide says.
func (v variant) addWorkloads(t *testing.T, files filesys.FileSystem, cluster string) {
	t.Helper()
	for name, from := range v.workloads {
		text, err := files.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, files.WriteFile(path.Join(cluster, "workloads", name), text))
		addLine(t, files, path.Join(cluster, "workloads/kustomization.yaml"), "  - "+name)
	}
}

// addLine adds a line to a file.
func addLine(t *testing.T, files filesys.FileSystem, name, line string) {
	t.Helper()
	text, err := files.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, files.WriteFile(name, append(text, line+"\n"...)))
}

// checkout is the repository's kubernetes folder, in memory, so that paths in messages are those of the repository.
func checkout(t *testing.T) filesys.FileSystem {
	t.Helper()
	files := filesys.MakeFsInMemory()
	require.NoError(t, filepath.WalkDir(filepath.Join(repository, "kubernetes"), func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(repository, name)
		if err != nil {
			return err
		}
		return files.WriteFile(filepath.ToSlash(below), text)
	}))
	return files
}

func TestTree_EveryObjectFitsItsSchema(t *testing.T) {
	known, err := schemas()
	require.NoError(t, err)
	for cluster, layers := range clusters(t) {
		for _, layer := range layers {
			for _, object := range layer.Objects {
				assert.NoError(t, known.Validate(object), "%s: %s: %s", cluster, layer.Name, object.Title())
			}
		}
	}
}

// TestTree_WithoutItsSettingsIsRefusedAsAWhole is about a tree that is in the branch before `up` has written its settings, which are then
// empty. Flux applies no object of a layer of which it refuses one, and so no layer of the root.
func TestTree_WithoutItsSettingsIsRefusedAsAWhole(t *testing.T) {
	known, err := schemas()
	require.NoError(t, err)
	for _, stack := range stacks(t) {
		settings := stack.Settings()
		settings["SOURCE_KIND"] = ""
		layers, err := Build(checkout(t), stack.GitOps.Path, settings)
		require.NoError(t, err)
		for _, object := range layers[0].Objects {
			assert.ErrorContains(t, known.Validate(object), "spec.sourceRef.kind", object.Title())
		}
	}
}

// Lower limits for a tree, a little below its present numbers.
const (
	fewestLayers  = 16
	fewestObjects = 50
)

// A folder that silently builds empty would keep every rule.
func TestTree_EveryLayerHasObjects(t *testing.T) {
	for cluster, layers := range clusters(t) {
		objects := 0
		for _, layer := range layers {
			objects += len(layer.Objects)
			if path.Base(layer.Folder) == "none" && layer.Name != "observability" { // whose folder none is the release alone
				assert.Empty(t, layer.Objects, "%s: %s", cluster, layer.Folder)
				continue
			}
			assert.NotEmpty(t, layer.Objects, "%s: %s", cluster, layer.Folder)
		}
		t.Logf("%s: %d layers, %d objects", cluster, len(layers), objects)
		assert.GreaterOrEqual(t, len(layers), fewestLayers, cluster)
		assert.GreaterOrEqual(t, objects, fewestObjects, cluster)
	}
}

func TestTree_KeepsItsRules(t *testing.T) {
	for cluster, layers := range clusters(t) {
		for _, rule := range rules {
			one := tree{layers: layers}
			rule.check(&one)
			assert.Empty(t, one.problems, "%s: %s:\n%s", cluster, rule.name, strings.Join(one.problems, "\n"))
		}
	}
}

func TestTree_TheGuideSaysHowWorkloadsAreAdded(t *testing.T) {
	guide, added := page(t, "docs/gitops.md"), 0
	for _, change := range variants {
		for name, from := range change.workloads {
			added++
			assert.Contains(t, guide, "`"+from+"`, into\n`kubernetes/clusters/STACK/workloads` as `"+name+"`")
			assert.Contains(t, guide, "\n  - "+name+"\n")
		}
	}
	assert.Positive(t, added)
}

// A cluster that has the example by a line of the folder keeps it as it is, and so does one whose line becomes the copy of the guide.
func TestTree_TheFormerLineOfTheDatabaseAppliesTheSame(t *testing.T) {
	for _, stack := range stacks(t) {
		before, after := checkout(t), checkout(t)
		addLine(t, before, path.Join(stack.GitOps.Path, "workloads/kustomization.yaml"), "  - ../../../apps/database")
		variants[" with a database"].addWorkloads(t, after, stack.GitOps.Path)
		former, err := Build(before, stack.GitOps.Path, stack.Settings())
		require.NoError(t, err)
		copied, err := Build(after, stack.GitOps.Path, stack.Settings())
		require.NoError(t, err)
		assert.Equal(t, named(t, former, "Kustomization", "database").Object, named(t, copied, "Kustomization", "database").Object)
		assert.Equal(t, named(t, former, "Cluster", "database").Object, named(t, copied, "Cluster", "database").Object)
		assert.Len(t, former, len(copied))
	}
}

func TestTree_HasNoFolderThatNoClusterApplies(t *testing.T) {
	used := map[string]bool{}
	for _, layers := range clusters(t) {
		for _, layer := range layers {
			used[layer.Folder] = true
		}
	}
	files := checkout(t)
	areas, err := files.ReadDir("kubernetes/argocd")
	require.NoError(t, err)
	for _, area := range areas { // lines in the folder of a cluster with the other engine
		used["kubernetes/argocd/"+area] = true
	}
	for _, layer := range byArgoCD(t, checkout(t), stacks(t)[0], variants[asDeclared]) {
		used[layer.Folder] = true
	}
	used[sops] = true // a line in the folder of a cluster
	// TestStorage_AConsumerOfItsOwnReadsAVaultOfItsOwn builds these.
	for _, side := range []string{"provider", "consumer"} {
		used[path.Join("kubernetes/infrastructure/storage", side, "apart")] = true
	}
	used[path.Dir(databaseLayer)] = true // a line that clusters may still have
	var unused []string
	require.NoError(t, files.Walk("kubernetes", func(name string, _ os.FileInfo, err error) error {
		folder := clean(path.Dir(name))
		if err == nil && path.Base(name) == "kustomization.yaml" && !used[folder] && !partOf(t, files, folder, used) {
			unused = append(unused, folder)
		}
		return err
	}))
	assert.Empty(t, unused)
}

// partOf reports whether a folder is read by the kustomization of a folder that a cluster applies, directly or not.
func partOf(t *testing.T, files filesys.FileSystem, folder string, used map[string]bool) bool {
	t.Helper()
	for applied := range used {
		read := []string{applied}
		for i := 0; i < len(read); i++ {
			if read[i] == folder {
				return true
			}
			text, err := files.ReadFile(path.Join(read[i], "kustomization.yaml"))
			if err != nil { // the folder of a cluster, or a file
				entries, _ := files.ReadDir(read[i])
				for _, entry := range entries {
					read = append(read, path.Join(read[i], entry))
				}
				continue
			}
			var k kustomize.Kustomization
			require.NoError(t, yaml.Unmarshal(text, &k))
			for _, below := range slices.Concat(k.Resources, k.Components) {
				read = append(read, path.Join(read[i], below))
			}
		}
	}
	return false
}

// freeValues are values of which a chart writes whatever is below them into an object, by chart and path.
var freeValues = []string{"descheduler.deschedulerPolicy", "metrics-server.resources"}

// unknownValues lists the values that a chart neither has nor names in its templates, and which have no effect. at is the name of the chart
// or the path of the values.
func unknownValues(of *chart.Chart, at string, values, known map[string]any) (unknown []string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		usual, found := known[key]
		below, isMap := values[key].(map[string]any)
		knownBelow, _ := usual.(map[string]any)
		switch path := at + "." + key; {
		case slices.Contains(freeValues, path):
		case !found && !slices.ContainsFunc(of.Templates, func(file *chart.File) bool {
			return bytes.Contains(file.Data, []byte("."+key))
		}):
			unknown = append(unknown, path)
		case isMap && len(knownBelow) > 0:
			unknown = append(unknown, unknownValues(of, path, below, knownBelow)...)
		}
	}
	return unknown
}

// TestTree_RendersItsCharts renders each release. The objects of a chart itself keep the rules of the tree as far as they are about pods;
// of a stand-in, only the values are checked.
func TestTree_RendersItsCharts(t *testing.T) {
	known, err := schemas()
	require.NoError(t, err)
	rendered := map[string]bool{}
	for cluster, layers := range clusters(t) {
		for _, layer := range layers {
			for _, release := range layer.Objects {
				if !release.Is(helmGroup, "HelmRelease") {
					continue
				}
				objects, original, err := Render(release)
				require.NoError(t, err, "%s: %s", cluster, release.Title())
				rendered[release.GetName()] = original
				if !original {
					continue
				}
				of, _, err := chartOf(release.Text("spec", "chart", "spec", "chart"))
				require.NoError(t, err)
				values, _, err := unstructured.NestedMap(release.Object, "spec", "values")
				require.NoError(t, err)
				assert.Empty(t, unknownValues(of, of.Name(), values, of.Values), "%s: %s", cluster, release.Title())
				for _, object := range objects {
					assert.NotEqual(t, "CustomResourceDefinition", object.GetKind(), "%s: %s: brings CRDs", cluster, release.Title())
					if object.GetKind() != "APIService" { // client-go has no schema of it
						assert.NoError(t, known.Validate(object), "%s: %s: %s", cluster, release.Title(), object.Title())
					}
				}
				whole := append(slices.Clone(layers), Layer{Name: layer.Name, Folder: "chart " + release.GetName(), Objects: objects})
				for _, check := range []func(*tree){images, workloads, mounts} {
					one := tree{layers: whole}
					check(&one)
					assert.Empty(t, one.problems, cluster)
				}
			}
		}
	}
	assert.Equal(t, map[string]bool{
		"descheduler": true, "external-dns": true, "rook-ceph": true, "ceph-csi-drivers": true, "metrics-server": true, "cloudnative-pg": false,
		"stack": false,
	}, rendered, "the stand-ins are named in docs/gitops.md")
}

// operators are the images that the charts of operators run, and the CRDs of the same release, which Pulumi installs.
var operators = map[string]struct {
	release, image string
	crds           func(cluster.CRDs) cluster.CRDSource
}{
	"Rook":           {"rook-ceph", "rook/ceph", func(c cluster.CRDs) cluster.CRDSource { return c.Rook }},
	"Ceph's drivers": {"rook-ceph", "cephcsi/ceph-csi-operator", func(c cluster.CRDs) cluster.CRDSource { return c.CephCSI }},
	"CloudNativePG": {"cloudnative-pg", "cloudnative-pg/cloudnative-pg",
		func(c cluster.CRDs) cluster.CRDSource { return c.CloudNativePG }},
	"VictoriaMetrics": {"stack", "victoriametrics/operator", func(c cluster.CRDs) cluster.CRDSource { return c.VictoriaMetrics }},
}

// runs reports whether a workload among the objects runs that release of an image, whose tag may lack the v of the release.
func runs(objects []Object, image, release string) bool {
	for _, object := range objects {
		w, _ := read(object)
		for _, container := range w.pod.Spec.Containers {
			name, tag, _ := strings.Cut(container.Image, ":")
			if strings.HasSuffix("/"+name, "/"+image) && strings.TrimPrefix(tag, "v") == strings.TrimPrefix(release, "v") {
				return true
			}
		}
	}
	return false
}

func TestTree_OperatorsAreOfTheReleaseOfTheirCRDs(t *testing.T) {
	trees, compared := clusters(t), map[string]bool{}
	for _, stack := range stacks(t) {
		for name, operator := range operators {
			release := named(t, trees[stack.Identity.Name+asDeclared], "HelmRelease", operator.release)
			objects, _, err := Render(release)
			require.NoError(t, err)
			version := operator.crds(stack.CRDs).Version
			assert.True(t, runs(objects, operator.image, version), "%s: %s does not run %s of %s, the release of its CRDs",
				stack.Identity.Name, release.Title(), operator.image, version)
			assert.False(t, runs(objects, operator.image, version+"9"), "another release is found")
			compared[name] = true
		}
	}
	assert.Len(t, compared, len(operators))
}

func TestUnknownValues_AreThoseWithoutAnyEffect(t *testing.T) {
	rook, _, err := chartOf("rook-ceph")
	require.NoError(t, err)
	values := map[string]any{
		"csi": map[string]any{"rookUseCsiOperator": false, "installCsiOperator": true}, "rookDaemon": map[string]any{},
	}
	require.Equal(t, []string{"rook-ceph.csi.rookUseCsiOperator", "rook-ceph.rookDaemon"},
		unknownValues(rook, rook.Name(), values, rook.Values))
}
