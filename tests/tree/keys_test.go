package tree

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sops is the folder of the component with which each Kustomization of a cluster decrypts.
const sops = "kubernetes/components/sops"

// keyFolders returns the folders that the setting KEYS is part of, by layer.
func keyFolders(layers []Layer) map[string]string {
	folders := map[string]string{}
	for _, layer := range layers {
		if strings.Contains(layer.Folder, "/git/") || strings.Contains(layer.Folder, "/onepassword/") {
			folders[layer.Name] = layer.Folder
		}
	}
	return folders
}

func TestKeys_InGitTheTreeHasNoObjectOf1Password(t *testing.T) {
	const store = "external-secrets.io"
	trees := clusters(t)
	for _, stack := range stacks(t) {
		looked := 0
		for _, name := range []string{" with keys in Git", withMetrics + ", keys in Git", " with keys in Git, and none is needed"} {
			for layer, folder := range keyFolders(trees[stack.Stack+name]) {
				if layer == "storage-monitors" {
					continue // storage.vault decides on it
				}
				looked++
				assert.Contains(t, folder, "/git/", layer)
				for _, one := range trees[stack.Stack+name] {
					for _, object := range one.Objects {
						assert.False(t, one.Name == layer && object.GroupVersionKind().Group == store, "%s%s: %s", stack.Stack, name, object.Title())
					}
				}
			}
		}
		assert.Equal(t, 15, looked, "issuers, external-dns, etcd-backup, alerts and observability, three times")
	}
}

func TestKeys_WithTheLineOfTheGuideEachKustomizationDecrypts(t *testing.T) {
	const lines = "components:\n  - ../../../components/sops\n"
	assert.Contains(t, page(t, "docs/gitops.md"), lines)
	for _, stack := range stacks(t) {
		files := checkout(t)
		addLine(t, files, path.Join(stack.GitOps.Path, "infrastructure/kustomization.yaml"), strings.TrimSuffix(lines, "\n"))
		layers, err := Build(files, stack.GitOps.Path, stack.Settings())
		require.NoError(t, err)
		decrypt := 0
		for _, object := range layers[0].Objects {
			if object.Is(kustomizeGroup, "Kustomization") && object.Text("spec", "decryption", "secretRef", "name") == "sops-age" {
				decrypt++
			}
		}
		assert.Greater(t, decrypt, 10, stack.Stack)
	}
}

func TestKeys_ExternalDNSFindsTheZoneAtCloudflareByItsId(t *testing.T) {
	for _, stack := range stacks(t) {
		release := named(t, clusters(t)[stack.Stack+withMetrics], "HelmRelease", "external-dns")
		objects, original, err := Render(release)
		require.NoError(t, err)
		require.True(t, original)
		pods := 0
		for _, object := range objects {
			w, found := read(object)
			if !found {
				continue
			}
			pods++
			container := w.pod.Spec.Containers[0]
			assert.Contains(t, container.Args, "--provider=cloudflare")
			assert.Contains(t, container.Args, "--zone-id-filter=023e105f4ecef8ad9ca31a8372d0c353")
			assert.Contains(t, container.Args, "--domain-filter="+stack.GitOps.Domain())
			require.Len(t, container.Env, 1)
			assert.Equal(t, "CF_API_TOKEN", container.Env[0].Name)
			assert.Equal(t, "cloudflare", container.Env[0].ValueFrom.SecretKeyRef.Name)
			assert.Equal(t, "token", container.Env[0].ValueFrom.SecretKeyRef.Key)
		}
		assert.Equal(t, 1, pods)
	}
}

// A cluster may go from 1Password to committed files of the same names. The Secrets stay when their ExternalSecrets are removed, and
// Sealed Secrets takes over what has its annotation. A Secret that an ExternalSecret owns would be deleted with it.
func TestKeys_OutOf1PasswordStayWhenTheirExternalSecretsAreRemoved(t *testing.T) {
	found := map[string]bool{}
	for _, layers := range clusters(t) {
		for _, layer := range layers {
			for _, object := range layer.Objects {
				if object.GetKind() != "ExternalSecret" || !strings.Contains(layer.Folder+"/", "/onepassword/") {
					continue
				}
				found[object.GetNamespace()+"/"+object.GetName()] = true
				policy := "Orphan"
				if object.GetName() == "storage-not-connected" {
					policy = "Owner" // until the provider is known: storage-monitors has the settings of then
				}
				assert.Equal(t, policy, object.Text("spec", "target", "creationPolicy"), object.Title())
				annotations, _, err := unstructured.NestedStringMap(object.Object, "spec", "target", "template", "metadata", "annotations")
				require.NoError(t, err)
				assert.Equal(t, map[string]string{"sealedsecrets.bitnami.com/managed": "true"}, annotations, object.Title())
			}
		}
	}
	assert.Greater(t, len(found), 9)
	settings := textsAt(t, named(t, clusters(t)["apps"], "ExternalSecret", "storage-monitors").Object, "spec", "target", "template", "data")
	assert.Equal(t, "Orphan", settings["STORAGE_MONITOR_POLICY"])
}
