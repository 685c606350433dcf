package kube

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/lab/kube/kubetest"
)

func TestSnapshot_HoldsTheWholeStateAndIsChecked(t *testing.T) {
	o := Options{Name: "infra", Dir: t.TempDir(), Loopback: kubetest.Loopback(), Config: kubetest.Config(t, nil), Binary: kubetest.Binary(t, "kube")}
	c, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	await(t, c)
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	_, err = client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	var snapshot bytes.Buffer
	require.NoError(t, c.Snapshot(t.Context(), &snapshot))
	require.Equal(t, 32, snapshot.Len()%512, "a checksum follows the pages")
	require.NoError(t, client.CoreV1().ConfigMaps("default").Delete(t.Context(), "kept", metav1.DeleteOptions{}))
	c.Stop()

	restore := func(dir string, data []byte, skip bool) error {
		return RestoreEtcd(t.Context(), o.Binary, dir, o.Loopback, data, skip)
	}
	bad := bytes.Clone(snapshot.Bytes())
	bad[len(bad)-1] ^= 1
	require.ErrorContains(t, restore(t.TempDir(), bad, false), "error recovering from the snapshot: expected sha256")
	pages := snapshot.Bytes()[:snapshot.Len()-32]
	require.ErrorContains(t, restore(t.TempDir(), pages, false), "snapshot missing hash but --skip-hash-check=false")
	require.NoError(t, restore(t.TempDir(), pages, true))
	require.ErrorContains(t, restore(t.TempDir(), []byte("nonsense"), false), "error verifying snapshot")

	o.Dir = t.TempDir()
	require.NoError(t, restore(o.Dir, snapshot.Bytes(), false))
	require.NoFileExists(t, filepath.Join(o.Dir, "etcd.snapshot"))
	again, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(again.Stop)
	await(t, again)
	client, err = kubernetes.NewForConfig(again.RESTConfig())
	require.NoError(t, err)
	_, err = client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	require.NoError(t, err, "the state is that of the snapshot")
}
