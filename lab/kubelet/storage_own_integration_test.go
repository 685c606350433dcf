package kubelet

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/lab/kube/kubetest"
)

// A consumer of its own is connected as the document says. Without its users it is shut out, and it alone.
func TestStorage_AConsumerOfItsOwnIsApartAndIsShutOutAlone(t *testing.T) {
	provider := startStorage(t, "aes")
	_, section, found := strings.Cut(fileOf(t, storageDocument), "### A consumer of its own")
	require.True(t, found)
	blocks := regexp.MustCompile("(?s)-->\n```yaml\n(.*?)```").FindAllStringSubmatch(section, 2)
	require.Len(t, blocks, 2)
	plurals := map[string]string{"CephBlockPoolRadosNamespace": "cephblockpoolradosnamespaces", "CephClient": "cephclients"}
	var users []string
	for manifest := range strings.SplitSeq(blocks[0][1], "\n---\n") {
		var object unstructured.Unstructured
		require.NoError(t, yaml.Unmarshal([]byte(manifest), &object.Object))
		provider.create(t, plurals[object.GetKind()], manifest)
		if object.GetKind() == "CephClient" {
			users = append(users, object.GetName())
		}
	}
	at := kubetest.Loopback()
	for range 8 {
		at = at.Next()
	}
	s := newStorage(t, provider.rook, "apps", at)
	classes := s.api.StorageV1().StorageClasses()
	class, err := classes.Get(t.Context(), "ceph-block", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, classes.Delete(t.Context(), class.Name, metav1.DeleteOptions{}))
	class.ObjectMeta, class.Parameters["clusterID"] = metav1.ObjectMeta{Name: class.Name}, "apps"
	_, err = classes.Create(t.Context(), class, metav1.CreateOptions{})
	require.NoError(t, err)
	s.create(t, "cephclusters", `{apiVersion: ceph.rook.io/v1, kind: CephCluster, metadata: {name: rook-ceph, namespace: rook-ceph},
spec: {external: {enable: true}}}`)
	s.create(t, "clientprofiles", blocks[1][1])
	words := provider.documentedWords(t, "apps-")
	for _, manifest := range documentedManifests(t) {
		manifest = filled(strings.ReplaceAll(manifest, "consumer-", "apps-"), words)
		var of metav1.TypeMeta
		require.NoError(t, yaml.Unmarshal([]byte(manifest), &of))
		if of.Kind == "Secret" {
			var secret corev1.Secret
			require.NoError(t, yaml.Unmarshal([]byte(manifest), &secret))
			s.secret(t, secret.Name, secret.StringData)
			continue
		}
		var list corev1.ConfigMap
		require.NoError(t, yaml.Unmarshal([]byte(manifest), &list))
		_, err := s.api.CoreV1().ConfigMaps("rook-ceph").Create(t.Context(), &list, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	s.eventually(t, "Ceph takes its key", func() bool { return s.health(t) == "Connected HEALTH_OK" })
	s.run(t, job("own", "word", "word"))
	require.True(t, s.ended(t, "own"))
	require.Positive(t, provider.cephCluster(t).RemoveNamespace("block", "apps"), "the volume is in the namespace")

	of := schema.GroupVersionResource{Group: "ceph.rook.io", Version: "v1", Resource: "cephclients"}
	for _, user := range users {
		require.NoError(t, provider.custom.Resource(of).Namespace("rook-ceph").Delete(t.Context(), user, metav1.DeleteOptions{}))
	}
	s.eventually(t, "Ceph refuses it", func() bool { return s.health(t) == "Connected HEALTH_ERR" })
	s.run(t, job("refused", "word", "word"))
	s.eventually(t, "it gets no volume", func() bool { return s.events(t, "ProvisioningFailed", "rados: ret=-13, Permission denied") })
	provider.run(t, job("other", "word", "word"))
	require.True(t, provider.ended(t, "other"), "all others go on")
}
