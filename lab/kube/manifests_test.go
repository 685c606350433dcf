package kube

import (
	"maps"
	"slices"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/lab/kube/kubetest"
)

func TestManifests_NamespacesComeFirstAndCoreDNSHasTheClustersAddress(t *testing.T) {
	cfg := kubetest.Config(t, func(c *v1alpha1.Config) {
		c.ClusterConfig.ClusterInlineManifests = v1alpha1.ClusterInlineManifests{{InlineManifestName: "mine",
			InlineManifestContents: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: mine}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: mine}\n"}}
	}).Cluster()
	objects, unmodelled, err := manifests{cluster: cfg}.objects()
	require.NoError(t, err)
	require.Empty(t, unmodelled)
	require.Equal(t, "Namespace", objects[0].GetKind())
	seen := map[string]bool{}
	for _, o := range objects {
		seen[o.GetKind()+"/"+o.GetName()] = true
		if o.GetKind() == "Service" {
			ip, _, _ := unstructured.NestedString(o.Object, "spec", "clusterIP")
			require.Equal(t, "10.245.0.10", ip)
		}
	}
	for _, want := range []string{"ConfigMap/a", "Deployment/coredns", "Service/kube-dns", "ClusterRoleBinding/system-bootstrap-node-bootstrapper", "Secret/bootstrap-token-" + cfg.Token().ID()} {
		require.True(t, seen[want], want)
	}
}

func TestManifests_SayWhatIsNotModelled(t *testing.T) {
	cfg := kubetest.Config(t, func(c *v1alpha1.Config) {
		c.ClusterConfig.ProxyConfig.Disabled = nil
		c.ClusterConfig.ClusterNetwork.CNI.CNIName = "flannel"
	}).Cluster()
	_, unmodelled, err := manifests{cluster: cfg}.objects()
	require.NoError(t, err)
	require.Len(t, unmodelled, 2)
}

func TestComponentConfigs_SecretboxIsFirstAndPodSecurityIsAsConfigured(t *testing.T) {
	files, err := componentConfigs(kubetest.Config(t, nil).Cluster(), "/pki/scheduler.kubeconfig")
	require.NoError(t, err)
	require.Contains(t, string(files["encryption.yaml"]), "secretbox")
	require.Contains(t, string(files["admission.yaml"]), "PodSecurity")
	require.Contains(t, string(files["scheduler.yaml"]), "/pki/scheduler.kubeconfig")
}

func TestManifests_CoreDNSCanBeLeftOut(t *testing.T) {
	off := true
	cfg := kubetest.Config(t, func(c *v1alpha1.Config) { c.ClusterConfig.CoreDNSConfig = &v1alpha1.CoreDNS{CoreDNSDisabled: &off} }).Cluster()
	objects, _, err := manifests{cluster: cfg}.objects()
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	for _, o := range objects {
		require.NotContains(t, []string{"coredns", "kube-dns"}, o.GetName(), o.GetKind())
	}
}

func TestManifests_AreInTheOrderOfTalosAndAnUnreadableOneDoesNotHoldTheOthers(t *testing.T) {
	inline := func(name, contents string) v1alpha1.ClusterInlineManifest {
		return v1alpha1.ClusterInlineManifest{InlineManifestName: name, InlineManifestContents: contents}
	}
	cfg := kubetest.Config(t, func(c *v1alpha1.Config) {
		c.ClusterConfig.ClusterInlineManifests = v1alpha1.ClusterInlineManifests{
			inline("z", "{apiVersion: v1, kind: ConfigMap, metadata: {name: last}}"), inline("a", "{apiVersion: v1, kind: ConfigMap, metadata: {name: first}}"), inline("m", "a: b: c"),
		}
	}).Cluster()
	m := manifests{cluster: cfg, downloaded: map[string][]byte{
		"99-https://x": []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: middle}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: b}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: a}}"),
	}}
	objects, _, err := m.objects()
	require.ErrorContains(t, err, "manifest 99-m: ")
	var names []string
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	require.Equal(t, []string{"a", "b"}, names[:2])
	require.Equal(t, []string{"first", "middle", "last"}, names[len(names)-3:])
}

func TestManifests_AnObjectInAMissingNamespaceHoldsThoseAfterIt(t *testing.T) {
	object := func(kind, namespace, name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": kind}}
		o.SetNamespace(namespace)
		o.SetName(name)
		return o
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	dyn := fake.NewSimpleDynamicClient(runtime.NewScheme())
	dyn.PrependReactor("create", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		switch name := a.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured).GetName(); {
		case name == "wrong":
			return true, nil, apierrors.NewBadRequest("wrong")
		case a.GetNamespace() == "missing":
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "missing")
		}
		return false, nil, nil
	})
	err := createAll(t.Context(), dyn, mapper, []*unstructured.Unstructured{
		object("ConfigMap", "", "wrong"), object("Unknown", "", "x"), object("ConfigMap", "", "before"), object("ConfigMap", "missing", "x"), object("ConfigMap", "", "after"),
	})
	require.EqualError(t, err, `error creating /v1/ConfigMap/x: namespaces "missing" not found`)
	maps := dyn.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	_, err = maps.Get(t.Context(), "before", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = maps.Get(t.Context(), "after", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	err = createAll(t.Context(), dyn, mapper, []*unstructured.Unstructured{object("ConfigMap", "", "wrong"), object("Unknown", "", "x"), object("ConfigMap", "", "after")})
	require.ErrorContains(t, err, "error creating /v1/ConfigMap/wrong: wrong")
	require.ErrorContains(t, err, "error creating mapping for object /v1/Unknown/x")
	_, err = maps.Get(t.Context(), "after", metav1.GetOptions{})
	require.NoError(t, err, "what is wrong in itself holds nothing")
}

func TestManifests_HaveTalossIDs(t *testing.T) {
	cfg := kubetest.Config(t, func(c *v1alpha1.Config) {
		c.ClusterConfig.ClusterInlineManifests = v1alpha1.ClusterInlineManifests{
			{InlineManifestName: "mine", InlineManifestContents: "apiVersion: v1\nkind: Namespace\nmetadata: {name: mine}\n"},
			{InlineManifestName: "wrong", InlineManifestContents: "}"},
		}
	})
	byID, err := Manifests(cfg, map[string][]byte{
		"99-https://example.com/x.yaml": []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"),
	})
	require.ErrorContains(t, err, "manifest 99-wrong: ")
	require.Equal(t, []string{
		"00-kubelet-bootstrapping-token", "01-csr-approver-role-binding", "01-csr-node-bootstrap", "01-csr-renewal-role-binding",
		"11-core-dns", "11-core-dns-svc", "11-talos-node-rbac-template", "99-https://example.com/x.yaml", "99-mine",
	}, slices.Sorted(maps.Keys(byID)))
	for id, name := range map[string]string{
		"01-csr-approver-role-binding": "system-bootstrap-approve-node-client-csr",
		"01-csr-renewal-role-binding":  "system-bootstrap-node-renewal", "11-core-dns-svc": "kube-dns",
		"11-talos-node-rbac-template": "system:talos-nodes", "99-mine": "mine",
	} {
		require.Equal(t, name, byID[id][0]["metadata"].(map[string]any)["name"], id)
	}
}
