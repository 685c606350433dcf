package tree

import (
	"os"
	"path"
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
	for _, stack := range stacks(t) {
		if stack.Storage.Role != cluster.StorageConsumer {
			continue
		}
		files := checkout(t)
		addLine(t, files, path.Join(stack.GitOps.Path, "infrastructure/kustomization.yaml"), "patches:"+patch)
		layers, err := Build(files, stack.GitOps.Path, stack.Settings())
		require.NoError(t, err)
		secret, found, err := unstructured.NestedString(named(t, layers, "Kustomization", "storage-connection").Object,
			"spec", "decryption", "secretRef", "name")
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, "sops-age", secret)
		return
	}
	t.Fatal("no stack consumes storage")
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

// The provider writes, in several PushSecrets, exactly the fields that a consumer reads, into the same item of the vault.
func TestStorage_AConsumerReadsWhatItsProviderWrites(t *testing.T) {
	fields := func(stack, kind, list string, at ...string) map[string]bool {
		found := map[string]bool{}
		for _, layer := range clusters(t)[stack] {
			for _, object := range layer.Objects {
				if object.GetKind() != kind || !strings.HasPrefix(layer.Name, "storage") {
					continue
				}
				for _, entry := range object.List("spec", list) {
					ref, _, err := unstructured.NestedMap(entry, at...)
					require.NoError(t, err)
					key, _ := ref["key"].(string)
					if key == "" {
						key, _ = ref["remoteKey"].(string)
						vault, _, _ := unstructured.NestedString(entry, "metadata", "spec", "vault")
						assert.Equal(t, "storage", vault, "without it, the operator takes the first vault of the store")
					}
					found[key+" "+ref["property"].(string)] = true
				}
			}
		}
		return found
	}
	written := fields("infra", "PushSecret", "data", "match", "remoteRef")
	read := fields("apps", "ExternalSecret", "data", "remoteRef")
	assert.Equal(t, written, read)
	assert.Contains(t, read, "infra-storage fsid")
}

// documented returns the manifests of a block of docs/gitops.md, which the tree's schemas accept.
func documented(t *testing.T, of string) (objects []Object) {
	t.Helper()
	text, err := os.ReadFile("../../docs/gitops.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "<!-- manifests: "+of+" -->\n```yaml\n")
	require.True(t, found, of)
	block, _, _ := strings.Cut(rest, "```")
	schemas, err := NewSchemas()
	require.NoError(t, err)
	for one := range strings.SplitSeq(block, "\n---\n") {
		object := Object{Unstructured: &unstructured.Unstructured{}}
		require.NoError(t, yaml.Unmarshal([]byte(one), &object.Object))
		require.NoError(t, schemas.Validate(object), "%s %s", object.GetKind(), object.GetName())
		objects = append(objects, object)
	}
	return objects
}

// The documented users are those of all consumers, but in a namespace, and removed with their manifest: this shuts the consumer out.
func TestStorage_UsersOfAConsumerOfItsOwnReachItsNamespaceOnlyAndGoWithTheirManifest(t *testing.T) {
	own, users := documented(t, "of a consumer of its own"), 0
	for _, object := range own {
		suffix, is := strings.CutPrefix(object.GetName(), "apps-")
		if object.GetKind() != "CephClient" {
			assert.Equal(t, "CephBlockPoolRadosNamespace apps block",
				object.GetKind()+" "+object.GetName()+" "+object.Text("spec", "blockPoolName"))
			assert.Equal(t, "disabled", object.GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"], "it holds volumes")
			continue
		}
		users++
		require.True(t, is, object.GetName())
		assert.Empty(t, object.GetAnnotations())
		want, _, _ := unstructured.NestedMap(named(t, clusters(t)["infra"], "CephClient", "consumer-"+suffix).Object, "spec")
		if osd, exists, _ := unstructured.NestedString(want, "caps", "osd"); exists {
			require.NoError(t, unstructured.SetNestedField(want, osd+" namespace=apps", "caps", "osd"))
		}
		assert.Equal(t, want, object.Object["spec"], object.GetName())
	}
	assert.Equal(t, 3, users)
}

func TestStorage_TheClassOfAConsumerOfItsOwnUsesItsNamespace(t *testing.T) {
	profile := documented(t, "of the connection of a consumer of its own")[0]
	assert.Equal(t, profile.GetName(), profile.Text("spec", "rbd", "radosNamespace"))
	for _, stack := range stacks(t) {
		for namespace, id := range map[string]string{"": "rook-ceph", profile.GetName(): profile.GetName()} {
			stack.Storage.RadosNamespace = namespace
			layers, err := Build(checkout(t), stack.GitOps.Path, stack.Settings())
			require.NoError(t, err)
			class := named(t, layers, "StorageClass", "ceph-block")
			assert.Equal(t, id, class.Text("parameters", "clusterID"))
			assert.Equal(t, class.Text("parameters", "csi.storage.k8s.io/controller-publish-secret-name"),
				profile.Text("spec", "rbd", "cephCsiSecrets", "controllerPublishSecret", "name"))
		}
	}
}
