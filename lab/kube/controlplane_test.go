package kube

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	talosmanifests "github.com/siderolabs/go-kubernetes/kubernetes/manifests"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/kube/kubetest"
	"github.com/slipway-platform/slipway/lab/kube/process"
)

func await(t *testing.T, c *ControlPlane) {
	t.Helper()
	select {
	case <-c.Ready():
	case <-time.After(2 * time.Minute):
		t.Fatal("the API server is not ready after 2 minutes; see", c.o.Dir)
	}
}

// upgradeChanges returns the number of objects in the bootstrap manifests, and the changes that a dry run of `talosctl
// upgrade-k8s` shows, by Talos's own code.
func upgradeChanges(t *testing.T, c *ControlPlane) (objects int, changes string) {
	t.Helper()
	byID, err := Manifests(kubetest.Config(t, nil), nil)
	require.NoError(t, err)
	var all []*unstructured.Unstructured
	for _, list := range byID {
		for _, o := range list {
			all = append(all, &unstructured.Unstructured{Object: o})
		}
	}
	results := make(chan talosmanifests.SyncResult, len(all))
	require.NoError(t, talosmanifests.Sync(t.Context(), all, c.RESTConfig(), true, results))
	for range all {
		if r := <-results; !r.Skipped {
			changes += r.Diff
		}
	}
	return len(all), changes
}

func TestControlPlane_RunsFreezesAndContinuesWithItsState(t *testing.T) {
	binary := kubetest.Binary(t, "kube")
	var table process.Table
	o := Options{Name: "infra", Dir: t.TempDir(), Loopback: kubetest.Loopback(), Config: kubetest.Config(t, nil), Binary: binary,
		Faults: &fault.Set{}, Processes: &table}
	c, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	await(t, c)
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)

	version, err := client.Discovery().ServerVersion()
	require.NoError(t, err)
	require.Equal(t, kubetest.Version, version.GitVersion)
	require.Eventually(t, func() bool {
		_, err := client.AppsV1().Deployments("kube-system").Get(t.Context(), "coredns", metav1.GetOptions{})
		return err == nil && len(table.List()) == 4
	}, time.Minute, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		n, changes := upgradeChanges(t, c)
		return n > 10 && changes == ""
	}, time.Minute, time.Second, "an upgrade of Kubernetes would change nothing that was just created")
	labelled := []byte(`{"metadata":{"labels":{"k8s-app":"mine"}}}`)
	_, err = client.AppsV1().Deployments("kube-system").Patch(t.Context(), "coredns", types.MergePatchType, labelled, metav1.PatchOptions{})
	require.NoError(t, err)
	_, changes := upgradeChanges(t, c)
	require.Contains(t, changes, "-    k8s-app: mine\n+    k8s-app: kube-dns\n")
	_, err = client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}},
		metav1.CreateOptions{})
	require.NoError(t, err)

	c.Suspend()
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	_, err = client.CoreV1().ConfigMaps("default").Create(short, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "lost"}},
		metav1.CreateOptions{})
	cancel()
	require.Error(t, err, "nothing is written without a quorum")
	c.Resume()
	require.Eventually(t, func() bool {
		_, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
		return err == nil
	}, time.Minute, 50*time.Millisecond)

	next := o.Loopback.Next()
	stop, err := c.Serve(next, nil)
	require.NoError(t, err)
	at := netip.AddrPortFrom(next, apiPort).String()
	reachable := func() bool {
		conn, err := net.DialTimeout("tcp", at, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	require.True(t, reachable())
	outside := c.RESTConfig()
	outside.Host = "https://" + at
	through, err := kubernetes.NewForConfig(outside)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // until the API server has read its new certificate
		_, err := through.Discovery().ServerVersion()
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	require.NoError(t, o.Faults.On(fault.Fault{Kind: fault.APIServerGone, Target: "infra"}))
	require.Eventually(t, func() bool { return !reachable() }, time.Minute, 10*time.Millisecond)
	o.Faults.Clear()
	require.Eventually(t, reachable, time.Minute, 10*time.Millisecond)
	stop()
	require.False(t, reachable())

	c.Stop()
	require.Empty(t, table.List(), "no process outlives Stop")
	again, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(again.Stop)
	await(t, again)
	client, err = kubernetes.NewForConfig(again.RESTConfig())
	require.NoError(t, err)
	_, err = client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	require.NoError(t, err)
}
