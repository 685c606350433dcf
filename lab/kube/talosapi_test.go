package kube

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/go-pointer"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/lab/kube/kubetest"
)

// forPods is a configuration that gives pods of a namespace access to Talos's API.
func forPods(t *testing.T) config.Provider {
	return kubetest.Config(t, func(c *v1alpha1.Config) {
		c.MachineConfig.MachineFeatures.KubernetesTalosAPIAccessConfig = &v1alpha1.KubernetesTalosAPIAccessConfig{
			AccessEnabled: pointer.To(true), AccessAllowedRoles: []string{string(role.EtcdBackup)},
			AccessAllowedKubernetesNamespaces: []string{"backup"},
		}
	})
}

func account(namespace string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "talos.dev/v1alpha1", "kind": "ServiceAccount",
		"metadata": map[string]any{"name": "talos", "namespace": namespace, "uid": namespace}, "spec": spec}}
}

func backupRole() map[string]any { return map[string]any{"roles": []any{string(role.EtcdBackup)}} }

// accountsOf is the controller of a fake cluster with one account.
func accountsOf(t *testing.T, one *unstructured.Unstructured, objects ...runtime.Object) (*talosAccounts, *record.FakeRecorder) {
	t.Helper()
	ca, err := secrets.NewTalosCA(time.Now())
	require.NoError(t, err)
	events := record.NewFakeRecorder(10)
	return &talosAccounts{kube: fake.NewClientset(objects...), ca: x509.NewCertificateAndKeyFromCertificateAuthority(ca),
		namespaces: []string{"backup"}, roles: []string{string(role.EtcdBackup)},
		dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{accountResource: "ServiceAccountList"}, one), events: events}, events
}

func TestTalosAccounts_GetATalosconfigOfTheirRolesThatIsRenewedBeforeItExpires(t *testing.T) {
	one := account("backup", backupRole())
	a, events := accountsOf(t, one)
	talosconfig := func() []byte {
		require.NoError(t, a.sync(t.Context(), one.DeepCopy()))
		require.Equal(t, "Normal Synced Synced successfully", <-events.Events)
		secret, err := a.kube.CoreV1().Secrets("backup").Get(t.Context(), "talos", metav1.GetOptions{})
		require.NoError(t, err)
		require.True(t, metav1.IsControlledBy(secret, one))
		return secret.Data["config"]
	}
	first := talosconfig()
	read, err := clientconfig.FromBytes(first)
	require.NoError(t, err)
	require.Equal(t, []string{"talos.default"}, read.Contexts["default"].Endpoints)
	require.Equal(t, first, talosconfig(), "it is still good")

	short, err := secrets.NewAdminCertificateAndKey(time.Now(), a.ca, role.MakeSet(role.EtcdBackup), 59*time.Minute)
	require.NoError(t, err)
	other, err := secrets.NewAdminCertificateAndKey(time.Now(), a.ca, role.MakeSet(role.Reader), accountLifetime)
	require.NoError(t, err)
	elsewhere := clientconfig.NewConfig("default", []string{"10.25.11.10"}, a.ca.Crt, short)
	for what, wrong := range map[string]*clientconfig.Config{
		"it expires soon": clientconfig.NewConfig("default", []string{"talos.default"}, a.ca.Crt, short),
		"other roles":     clientconfig.NewConfig("default", []string{"talos.default"}, a.ca.Crt, other), "another endpoint": elsewhere,
	} {
		text, err := wrong.Bytes()
		require.NoError(t, err)
		secret, err := a.kube.CoreV1().Secrets("backup").Get(t.Context(), "talos", metav1.GetOptions{})
		require.NoError(t, err)
		secret.Data["config"] = text
		_, err = a.kube.CoreV1().Secrets("backup").Update(t.Context(), secret, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NotEqual(t, text, talosconfig(), what)
	}
}

func TestTalosAccounts_AreRefusedInTheWordsOfTalos(t *testing.T) {
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "talos", Namespace: "backup"}}
	for _, one := range []struct {
		account *unstructured.Unstructured
		secret  []runtime.Object
		event   string
		again   bool
	}{
		{account("other", backupRole()), nil, "ErrNamespaceNotAllowed Namespace is not allowed: other", false},
		{account("backup", map[string]any{"roles": []any{"os:admin", "os:etcd:backup", "os:reader"}}), nil,
			"ErrRolesNotAllowed Roles not allowed: [os:admin os:reader]", false},
		{account("backup", map[string]any{}), nil, "ErrRolesNotFound Roles not found", true},
		{account("backup", backupRole()), []runtime.Object{mine},
			"ErrResourceExists Secret already exists and is not managed by controller: backup/talos", true},
	} {
		a, events := accountsOf(t, one.account, one.secret...)
		require.Equal(t, one.again, a.sync(t.Context(), one.account.DeepCopy()) != nil, one.event)
		require.Equal(t, "Warning "+one.event, <-events.Events)
		stored, err := a.dynamic.Resource(accountResource).Namespace(one.account.GetNamespace()).Get(t.Context(), "talos", metav1.GetOptions{})
		require.NoError(t, err)
		reason, _, _ := unstructured.NestedString(stored.Object, "status", "failureReason")
		require.Contains(t, one.event, reason)
		require.NotEmpty(t, reason)
	}
}

func TestTalosService_HasTheControlPlanesOfEachFamily(t *testing.T) {
	kube := fake.NewClientset()
	addresses := func(slice string) (out []string) {
		found, err := kube.DiscoveryV1().EndpointSlices("default").Get(t.Context(), slice, metav1.GetOptions{})
		if err != nil {
			return nil
		}
		require.Equal(t, "talos", found.Labels["kubernetes.io/service-name"])
		for _, e := range found.Endpoints {
			out = append(out, e.Addresses...)
		}
		return out
	}
	one, two, six := netip.MustParseAddr("10.25.11.11"), netip.MustParseAddr("10.25.11.12"), netip.MustParseAddr("fd25::11")
	for range 2 {
		require.NoError(t, makeTalosService(t.Context(), kube, []netip.Addr{one, two, six}))
	}
	require.Equal(t, []string{"10.25.11.11", "10.25.11.12"}, addresses("talos-ipv4"))
	require.Equal(t, []string{"fd25::11"}, addresses("talos-ipv6"))
	require.NoError(t, makeTalosService(t.Context(), kube, []netip.Addr{two}))
	require.Equal(t, []string{"10.25.11.12"}, addresses("talos-ipv4"))
	require.Empty(t, addresses("talos-ipv6"))
	service, err := kube.CoreV1().Services("default").Get(t.Context(), "talos", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, int32(50000), service.Spec.Ports[0].Port)
}

func TestManifests_HaveTheCRDOfAccountsOnlyIfPodsGetAccess(t *testing.T) {
	for cfg, has := range map[config.Provider]bool{forPods(t): true, kubetest.Config(t, nil): false} {
		all, err := Manifests(cfg, nil)
		require.NoError(t, err)
		require.Equal(t, has, all["13-talos-service-account-crd"] != nil)
	}
}

func TestControlPlane_GivesPodsAccessToTalosAPI(t *testing.T) {
	binary := kubetest.Binary(t, "kube")
	cfg := forPods(t)
	c, err := Start(t.Context(), Options{Name: "infra", Dir: t.TempDir(), Loopback: kubetest.Loopback(), Config: cfg, Binary: binary})
	require.NoError(t, err)
	defer c.Stop()
	await(t, c)
	c.ManageTalosAPI(cfg, []netip.Addr{netip.MustParseAddr("10.25.11.11")})
	kube, err := kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	dyn, err := dynamic.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	eventually := func(what string, is func(ctx context.Context) bool) {
		t.Helper()
		require.Eventually(t, func() bool { return is(t.Context()) }, time.Minute, 50*time.Millisecond, what)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "backup"}}
	_, err = kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	one := account("backup", backupRole())
	one.SetUID("")
	eventually("the CRD is there", func(ctx context.Context) bool {
		_, err := dyn.Resource(accountResource).Namespace("backup").Create(ctx, one, metav1.CreateOptions{})
		return err == nil
	})
	eventually("the Secret is there", func(ctx context.Context) bool {
		secret, err := kube.CoreV1().Secrets("backup").Get(ctx, "talos", metav1.GetOptions{})
		return err == nil && len(secret.Data["config"]) > 0
	})
	eventually("the Service has its address", func(ctx context.Context) bool {
		slice, err := kube.DiscoveryV1().EndpointSlices("default").Get(ctx, "talos-ipv4", metav1.GetOptions{})
		return err == nil && len(slice.Endpoints) == 1
	})
	eventually("an event says so", func(ctx context.Context) bool {
		events, err := kube.CoreV1().Events("backup").List(ctx, metav1.ListOptions{FieldSelector: "reason=Synced"})
		return err == nil && len(events.Items) > 0 && events.Items[0].Source.Component == "talos-sa-controller"
	})
	c.ManageTalosAPI(nil, nil)
	require.NoError(t, kube.CoreV1().Secrets("backup").Delete(t.Context(), "talos", metav1.DeleteOptions{}))
	c.ManageTalosAPI(cfg, []netip.Addr{netip.MustParseAddr("10.25.11.11")})
	eventually("it is made again", func(ctx context.Context) bool {
		_, err := kube.CoreV1().Secrets("backup").Get(ctx, "talos", metav1.GetOptions{})
		return err == nil
	})
}
