package tree

import (
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
)

// named returns the object of a cluster with that kind and name.
func named(t *testing.T, layers []Layer, kind, name string) Object {
	t.Helper()
	for _, layer := range layers {
		for _, object := range layer.Objects {
			if object.GetKind() == kind && object.GetName() == name {
				return object
			}
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return Object{}
}

// The storage's gate looks at the ExternalSecret that brings the provider's monitors.
func TestStorage_TheGateKnowsHowTheTreeConnectsAConsumer(t *testing.T) {
	namespace, name := cluster.Storage{Role: cluster.StorageConsumer, Vault: "storage"}.Connection()
	require.Equal(t, namespace, named(t, clusters(t)["apps"], "ExternalSecret", name).GetNamespace())
	_, none := cluster.Storage{Role: cluster.StorageProvider, Vault: "storage"}.Connection()
	require.Empty(t, none)
}

// Without a vault, the committed files for a consumer may be encrypted by SOPS: then their layer decrypts, by the patch in the document.
func TestStorage_TheDocumentedPatchLetsAConsumersLayerDecrypt(t *testing.T) {
	text, err := os.ReadFile("../../docs/gitops.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```yaml\npatches:")
	require.True(t, found)
	patch, _, _ := strings.Cut(rest, "```")
	stack, files := stackNamed(t, "apps"), checkout(t)
	addLine(t, files, path.Join(stack.GitOps.Path, "infrastructure/kustomization.yaml"), "patches:"+patch)
	layers, err := Build(files, stack.GitOps.Path, stack.Settings())
	require.NoError(t, err)
	secret, found, err := unstructured.NestedString(named(t, layers, "Kustomization", "storage-connection").Object,
		"spec", "decryption", "secretRef", "name")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "sops-age", secret)
}

// stackNamed is the cluster of a stack file: infra provides storage, and apps consumes it.
func stackNamed(t *testing.T, name string) *cluster.Cluster {
	t.Helper()
	for _, stack := range stacks(t) {
		if stack.Stack == name {
			return stack
		}
	}
	t.Fatalf("there is no stack %s", name)
	return nil
}

// The folder of what is committed for a consumer is that of all consumers, unless it is patched as the document says.
func TestStorage_TheDocumentedPatchGivesAConsumerAFolderOfItsOwn(t *testing.T) {
	text, err := os.ReadFile("../../docs/gitops.md")
	require.NoError(t, err)
	blocks := strings.Split(string(text), "```yaml\npatches:")
	require.Greater(t, len(blocks), 2)
	patch, _, _ := strings.Cut(blocks[2], "```")
	stack, files := stackNamed(t, "apps"), checkout(t)
	stack.Storage.Vault = ""
	const storage = "kubernetes/infrastructure/storage/consumer/"
	own, err := files.ReadFile(storage + "git/kustomization.yaml")
	require.NoError(t, err)
	require.NoError(t, files.WriteFile(storage+"apps/kustomization.yaml", append(own, "  - secrets.yaml\n"...)))
	require.NoError(t, files.WriteFile(storage+"apps/secrets.yaml", []byte(committed("rook-ceph/rook-csi-rbd-node"))))
	addLine(t, files, path.Join(stack.GitOps.Path, "infrastructure/kustomization.yaml"), "patches:"+patch)
	layers, err := Build(files, stack.GitOps.Path, stack.Settings())
	require.NoError(t, err)
	named(t, layers, "Secret", "rook-csi-rbd-node")
	named(t, layers, "ConfigMap", "storage-connection")
}

// crdSpecs are the specs of the CRDs among the objects, by name.
func crdSpecs(t *testing.T, objects []Object) map[string]any {
	t.Helper()
	specs := map[string]any{}
	for _, object := range objects {
		if object.GetKind() == "CustomResourceDefinition" {
			specs[object.GetName()] = object.Object["spec"]
		}
	}
	return specs
}

// The tree leaves out the CRDs of Rook's chart, because Pulumi installs them from the file of the same release.
func TestStorage_TheCRDsThatAreLeftOutOfTheChartAreThoseThatPulumiInstalls(t *testing.T) {
	release := named(t, clusters(t)["infra"], "HelmRelease", "rook-ceph")
	whole := Object{Unstructured: release.DeepCopy()}
	unstructured.RemoveNestedField(whole.Object, "spec", "postRenderers")
	rendered, _, err := Render(whole)
	require.NoError(t, err)
	left := crdSpecs(t, rendered)

	dir, _, err := module("rook-crds", cephCSIModule)
	require.NoError(t, err)
	text, err := os.ReadFile(path.Join(dir, cephCSICRDs))
	require.NoError(t, err)
	var published []Object
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := Object{Unstructured: &unstructured.Unstructured{}}
		require.NoError(t, yaml.Unmarshal([]byte(document), &object.Object))
		published = append(published, object)
	}
	require.Len(t, left, 5)
	require.Equal(t, crdSpecs(t, published), left)
}

// Rook's chart names the release of the operator that it contains. The chart of the drivers and the CRDs have the same.
func TestStorage_TheDriversAreOfTheReleaseThatRookContains(t *testing.T) {
	rook, _, err := chartOf("rook-ceph")
	require.NoError(t, err)
	contained := ""
	for _, dependency := range rook.Metadata.Dependencies {
		if dependency.Name == "ceph-csi-operator" {
			contained = dependency.Version
		}
	}
	for _, stack := range stacks(t) {
		assert.Equal(t, "v"+contained, stack.CRDs.CephCSI.Version)
		drivers := named(t, clusters(t)[stack.Identity.Name], "HelmRelease", "ceph-csi-drivers")
		assert.Equal(t, contained, drivers.Text("spec", "chart", "spec", "version"))
	}
}

// The operator makes the driver that the StorageClass names, as its Driver and its OperatorConfig say, and no other.
func TestStorage_TheDriverIsThatOfTheClass(t *testing.T) {
	for _, stack := range stacks(t) {
		layers := clusters(t)[stack.Identity.Name]
		objects, _, err := Render(named(t, layers, "HelmRelease", "ceph-csi-drivers"))
		require.NoError(t, err)
		rook, _, err := Render(named(t, layers, "HelmRelease", "rook-ceph"))
		require.NoError(t, err)
		made := []Layer{{Objects: objects}, {Objects: rook}}
		var names []string
		for _, object := range objects {
			if object.GetKind() == "Driver" {
				names = append(names, object.GetName())
			}
		}
		class := named(t, layers, "StorageClass", "ceph-block")
		assert.Equal(t, []string{class.Text("provisioner")}, names)
		driver := named(t, made, "Driver", class.Text("provisioner"))
		replicas, _, _ := unstructured.NestedFieldNoCopy(driver.Object, "spec", "controllerPlugin", "replicas")
		assert.EqualValues(t, 2, replicas)
		for _, part := range []string{"controllerPlugin", "nodePlugin"} {
			named(t, made, "ServiceAccount", driver.Text("spec", part, "serviceAccountName"))
		}
		config := named(t, made, "OperatorConfig", "ceph-csi-operator-config") // the only one that the operator reads
		assert.Equal(t, driver.GetNamespace(), config.GetNamespace())
		named(t, made, "ConfigMap", config.Text("spec", "driverSpecDefaults", "imageSet", "name"))
	}
}

// A kernel before 7.0 mounts with keys of type aes only. Ceph makes others unless it is told, and its daemons' own keys must not be aes.
func TestStorage_KeysOfClientsAreOfATypeThatKernelsMount(t *testing.T) {
	clients := 0
	for _, layer := range clusters(t)["infra"] {
		for _, object := range layer.Objects {
			if object.GetKind() == "CephClient" {
				clients++
				assert.Equal(t, "aes", object.Text("spec", "security", "cephx", "keyType"), object.GetName())
			}
		}
	}
	assert.Positive(t, clients)
	cephx, _, err := unstructured.NestedMap(named(t, clusters(t)["infra"], "CephCluster", "rook-ceph").Object, "spec", "security", "cephx")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"csi": map[string]any{"keyType": "aes"}, "daemon": map[string]any{"keyRotationPolicy": "KeyGeneration", "keyGeneration": int64(2)},
	}, cephx)
}

// Ceph's manager makes its pool with as many copies as Ceph makes by default, 3, once there are as many OSDs. On two machines, each of
// which takes one copy, it would be degraded for ever.
func TestStorage_CephsOwnPoolKeepsAsManyCopiesAsTheVolumes(t *testing.T) {
	known, err := schemas()
	require.NoError(t, err)
	for replicas := int64(1); replicas <= 3; replicas++ {
		stack := stackNamed(t, "infra")
		stack.Storage.Replicas = new(int(replicas))
		layers, err := Build(checkout(t), stack.GitOps.Path, stack.Settings())
		require.NoError(t, err)
		pool, ceph := named(t, layers, "CephBlockPool", "builtin-mgr"), named(t, layers, "CephCluster", "rook-ceph")
		require.NoError(t, known.Validate(pool))
		require.NoError(t, known.Validate(ceph))
		assert.Equal(t, "disabled", pool.GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"])
		assert.Equal(t, map[string]any{"name": ".mgr", "failureDomain": "host",
			"replicated": map[string]any{"size": replicas, "requireSafeReplicaSize": replicas > 1}}, pool.Object["spec"])
		assert.Equal(t, strconv.FormatInt(replicas, 10), ceph.Text("spec", "cephConfig", "global", "osd_pool_default_size"))
	}
}

// An older Rook that sees a newer Ceph upgrades it, and makes keys with which no volume can be mounted.
func TestStorage_CephIsChangedAfterRook(t *testing.T) {
	layerOf := func(kind, name string) (found Layer) {
		for _, layer := range clusters(t)["infra"] {
			for _, object := range layer.Objects {
				if object.GetKind() == kind && object.GetName() == name {
					found = layer
				}
			}
		}
		return found
	}
	operator, ceph := layerOf("HelmRelease", "rook-ceph"), layerOf("CephCluster", "rook-ceph")
	wait, _, _ := unstructured.NestedBool(operator.Declaration.Object, "spec", "wait")
	assert.True(t, wait)
	require.Len(t, ceph.Declaration.List("spec", "dependsOn"), 1)
	assert.Equal(t, operator.Name, ceph.Declaration.List("spec", "dependsOn")[0]["name"])
}

// Rook writes the monitors in one form, for Ceph, and reads those of an external cluster in another one.
func TestStorage_AConsumerGetsTheMonitorsInTheFormThatRookReads(t *testing.T) {
	object := named(t, clusters(t)["apps"], "ExternalSecret", "storage-monitors")
	text, found, err := unstructured.NestedString(object.Object, "spec", "target", "template", "data", "STORAGE_MONITOR_ADDRESSES")
	require.NoError(t, err)
	require.True(t, found)
	parsed, err := template.New("").Funcs(sprig.TxtFuncMap()).Parse(text)
	require.NoError(t, err)
	for _, c := range []struct{ monitors, addresses, want string }{
		{"a", "[v2:10.25.11.21:3300]", "a=10.25.11.21:3300"},
		{"a,b,c", "[v2:10.25.11.21:3300],[v2:10.25.11.22:3300],[v2:10.25.11.23:3300]",
			"a=10.25.11.21:3300,b=10.25.11.22:3300,c=10.25.11.23:3300"},
		{"a,b", "[v2:10.25.11.21:3300,v1:10.25.11.21:6789],[v2:10.25.11.22:3300,v1:10.25.11.22:6789]",
			"a=10.25.11.21:3300,b=10.25.11.22:3300"},
		{"a", "[v2:[fd00::21]:3300]", "a=[fd00::21]:3300"},
	} {
		var out strings.Builder
		require.NoError(t, parsed.Execute(&out, map[string]string{"monitors": c.monitors, "addresses": c.addresses}))
		assert.Equal(t, c.want, out.String())
	}
}

// written returns the fields of items that the PushSecrets of layers write, which all name the vault.
func written(t *testing.T, layers []Layer, vault string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, layer := range layers {
		for _, object := range layer.Objects {
			if object.GetKind() != "PushSecret" {
				continue
			}
			for _, entry := range object.List("spec", "data") {
				ref, _, err := unstructured.NestedStringMap(entry, "match", "remoteRef")
				require.NoError(t, err)
				named, _, _ := unstructured.NestedString(entry, "metadata", "spec", "vault")
				assert.Equal(t, vault, named, "without it, the operator takes the first vault of the store")
				found[ref["remoteKey"]+" "+ref["property"]] = true
			}
		}
	}
	return found
}

// pushed returns the Secrets that PushSecrets read, by the stores to which they write.
func pushed(layers []Layer) map[string][]string {
	found := map[string][]string{}
	for _, layer := range layers {
		for _, object := range layer.Objects {
			if object.GetKind() == "PushSecret" {
				store, _ := object.List("spec", "secretStoreRefs")[0]["name"].(string)
				found[store] = append(found[store], object.Text("spec", "selector", "secret", "name"))
				slices.Sort(found[store])
			}
		}
	}
	return found
}

// itemsRead returns the fields of items that the storage's ExternalSecrets read.
func itemsRead(t *testing.T, layers []Layer) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, layer := range layers {
		for _, object := range layer.Objects {
			if object.GetKind() != "ExternalSecret" || !strings.HasPrefix(layer.Name, "storage") {
				continue
			}
			for _, entry := range object.List("spec", "data") {
				ref, _, err := unstructured.NestedStringMap(entry, "remoteRef")
				require.NoError(t, err)
				found[ref["key"]+" "+ref["property"]] = true
			}
		}
	}
	return found
}

// The provider writes, in several PushSecrets, exactly the fields that a consumer reads, into the same item of the vault.
func TestStorage_AConsumerReadsWhatItsProviderWrites(t *testing.T) {
	read := itemsRead(t, clusters(t)["apps"])
	assert.Equal(t, written(t, clusters(t)["infra"], "storage"), read)
	assert.Contains(t, read, "infra-storage fsid")
}

// users returns the users of Ceph that a provider makes.
func users(layers []Layer) map[string]Object {
	found := map[string]Object{}
	for _, layer := range layers {
		for _, object := range layer.Objects {
			if object.GetKind() == "CephClient" {
				found[object.GetName()] = object
			}
		}
	}
	return found
}

// Rook deletes a user of Ceph with its CephClient, and all consumers lose their volumes.
func TestStorage_AProviderWithoutItsVaultHasTheSameUsers(t *testing.T) {
	with, without := users(clusters(t)["infra"]), users(clusters(t)["infra without a vault for the storage"])
	assert.Len(t, with, 3)
	assert.Equal(t, with, without)
	for name, user := range without {
		assert.Equal(t, "disabled", user.GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"], name)
	}
}

// textsAt returns a map of texts in an object.
func textsAt(t *testing.T, object map[string]any, fields ...string) map[string]string {
	t.Helper()
	texts, found, err := unstructured.NestedStringMap(object, fields...)
	require.NoError(t, err)
	require.True(t, found)
	return texts
}

// With `allow rw`, a manager takes tasks that delete any image of any pool: its module rbd_support asks what the user may do to a pool and
// a namespace.
func TestStorage_UsersReachOnePoolThroughTheManagersToo(t *testing.T) {
	all, narrow := slices.Collect(maps.Values(users(clusters(t)["infra"]))), 0
	for _, user := range append(all, documented(t, "of a consumer of its own")...) {
		if user.GetKind() != "CephClient" {
			continue
		}
		for daemon, caps := range textsAt(t, user.Object, "spec", "caps") {
			if daemon == "mon" || caps == "allow command config" {
				continue
			}
			narrow++
			assert.Regexp(t, "^profile rbd pool=block( namespace=apps)?$", caps, "%s %s", user.GetName(), daemon)
		}
	}
	assert.Equal(t, 6, narrow)
}

// blockOf returns a block of manifests in docs/gitops.md.
func blockOf(t *testing.T, of string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/gitops.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "<!-- manifests: "+of+" -->\n```yaml\n")
	require.True(t, found, of)
	block, _, _ := strings.Cut(rest, "```")
	return block
}

// documented returns the manifests of a block of docs/gitops.md, which the tree's schemas accept.
func documented(t *testing.T, of string) (objects []Object) {
	t.Helper()
	known, err := schemas()
	require.NoError(t, err)
	for one := range strings.SplitSeq(blockOf(t, of), "\n---\n") {
		object := Object{Unstructured: &unstructured.Unstructured{}}
		require.NoError(t, yaml.Unmarshal([]byte(one), &object.Object))
		require.NoError(t, known.Validate(object), "%s %s", object.GetKind(), object.GetName())
		objects = append(objects, object)
	}
	return objects
}

// The documented users are those of all consumers, but in a namespace, and removed with their manifest: this shuts the consumer out.
func TestStorage_UsersOfAConsumerOfItsOwnReachItsNamespaceOnlyAndGoWithTheirManifest(t *testing.T) {
	own, count := documented(t, "of a consumer of its own"), 0
	for _, object := range own {
		suffix, is := strings.CutPrefix(object.GetName(), "apps-")
		if object.GetKind() != "CephClient" {
			assert.Equal(t, "CephBlockPoolRadosNamespace apps block",
				object.GetKind()+" "+object.GetName()+" "+object.Text("spec", "blockPoolName"))
			assert.Equal(t, "disabled", object.GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"], "it holds volumes")
			continue
		}
		count++
		require.True(t, is, object.GetName())
		assert.Empty(t, object.GetAnnotations())
		want, _, _ := unstructured.NestedMap(named(t, clusters(t)["infra"], "CephClient", "consumer-"+suffix).Object, "spec")
		for daemon, caps := range textsAt(t, want, "caps") {
			if daemon != "mon" && strings.HasPrefix(caps, "profile rbd") { // monitors know no namespaces
				require.NoError(t, unstructured.SetNestedField(want, caps+" namespace=apps", "caps", daemon))
			}
		}
		assert.Equal(t, want, object.Object["spec"], object.GetName())
	}
	assert.Equal(t, 3, count)
}

func TestStorage_TheClassOfAConsumerOfItsOwnUsesItsNamespace(t *testing.T) {
	profile := documented(t, "of the connection of a consumer of its own")[0]
	assert.Equal(t, profile.GetName(), profile.Text("spec", "rbd", "radosNamespace"))
	for _, stack := range stacks(t) {
		for namespace, id := range map[string]string{"": "rook-ceph", profile.GetName(): profile.GetName()} {
			if namespace != "" && stack.Storage.Role != cluster.StorageConsumer {
				continue // config-check refuses it
			}
			stack.Storage.RadosNamespace = namespace
			if stack.Storage.Role == cluster.StorageConsumer {
				assert.Equal(t, id, stack.Storage.ClusterID(), "what up remembers")
			}
			layers, err := Build(checkout(t), stack.GitOps.Path, stack.Settings())
			require.NoError(t, err)
			class := named(t, layers, "StorageClass", "ceph-block")
			assert.Equal(t, id, class.Text("parameters", "clusterID"))
			assert.Equal(t, class.Text("parameters", "csi.storage.k8s.io/controller-publish-secret-name"),
				profile.Text("spec", "rbd", "cephCsiSecrets", "controllerPublishSecret", "name"))
		}
	}
}

// A token reads a whole vault. So the keys of a consumer of its own are in a vault of its own, in the item that every consumer reads.
func TestStorage_AConsumerOfItsOwnReadsAVaultOfItsOwn(t *testing.T) {
	infra, files := stackNamed(t, "infra"), checkout(t)
	for of, folder := range map[string]string{
		"of a consumer of its own":             "kubernetes/infrastructure/storage/provider/users",
		"of the item of a consumer of its own": path.Join(infra.GitOps.Path, "infrastructure"),
	} {
		require.NoError(t, files.WriteFile(path.Join(folder, "apps.yaml"), []byte(blockOf(t, of))))
		addLine(t, files, path.Join(folder, "kustomization.yaml"), "  - apps.yaml")
	}
	provider, err := Build(files, infra.GitOps.Path, infra.Settings())
	require.NoError(t, err)
	apps := stackNamed(t, "apps")
	apps.Storage.RadosNamespace, apps.Storage.Vault = "apps", "storage-apps"
	consumer, err := Build(files, apps.GitOps.Path, apps.Settings())
	require.NoError(t, err)
	known, err := schemas()
	require.NoError(t, err)
	var item []Layer
	for _, layer := range append(slices.Clone(provider), consumer...) {
		for _, object := range layer.Objects {
			assert.NoError(t, known.Validate(object), object.Title())
		}
		if layer.Name == "storage-apps" {
			item = append(item, layer)
		}
	}
	for _, layers := range [][]Layer{provider, consumer} {
		for _, rule := range rules {
			one := tree{layers: layers}
			rule.check(&one)
			assert.Empty(t, one.problems, rule.name)
		}
	}
	require.Len(t, item, 1)
	assert.Equal(t, written(t, item, "storage-apps"), itemsRead(t, consumer))

	wanted := map[string][]string{}
	for store, of := range map[string]string{"onepassword-storage": "consumer", "onepassword-storage-apps": "apps"} {
		wanted[store] = []string{
			"rook-ceph-client-" + of + "-health", "rook-ceph-client-" + of + "-rbd-node", "rook-ceph-client-" + of + "-rbd-provisioner",
			"rook-ceph-config", "rook-ceph-mon",
		}
	}
	assert.Equal(t, wanted, pushed(provider))
	profile := named(t, consumer, "ClientProfile", named(t, consumer, "StorageClass", "ceph-block").Text("parameters", "clusterID"))
	assert.Equal(t, documented(t, "of the connection of a consumer of its own")[0].Object["spec"], profile.Object["spec"])
}

// The store of a consumer of its own is that of the storage, with another vault.
func TestStorage_TheStoreOfAConsumerOfItsOwnIsAsSlipwayMakesIt(t *testing.T) {
	made, err := os.ReadFile("../../components/secrets/testdata/onepassword.yaml")
	require.NoError(t, err)
	store := named(t, []Layer{{Objects: objectsIn(t, string(made))}}, "ClusterSecretStore", "onepassword-storage")
	own, err := checkout(t).ReadFile("kubernetes/infrastructure/storage/provider/apart/store.yaml")
	require.NoError(t, err)
	own = []byte(strings.ReplaceAll(string(own), "${STORAGE_VAULT}", "storage"))
	assert.Equal(t, store.Object["spec"], objectsIn(t, string(own))[0].Object["spec"])
}
