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

// Without a vault, what is committed for a consumer may be encrypted by SOPS: then the layer that applies it decrypts, by the patch in the
// document.
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
