package kube

import (
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/lab/kube/kubetest"
)

func TestManifests_NamespacesComeFirstAndCoreDNSHasTheClustersAddress(t *testing.T) {
	cfg := kubetest.Config(t, func(c *v1alpha1.Config) {
		c.ClusterConfig.ClusterInlineManifests = v1alpha1.ClusterInlineManifests{{InlineManifestName: "mine",
			InlineManifestContents: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: mine}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: mine}\n"}}
	}).Cluster()
	objects, unmodelled, err := bootstrapManifests(cfg)
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
		c.ClusterConfig.ExtraManifests = []string{"https://git.home.arpa/x.yaml"}
	}).Cluster()
	_, unmodelled, err := bootstrapManifests(cfg)
	require.NoError(t, err)
	require.Len(t, unmodelled, 3)
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
	objects, _, err := bootstrapManifests(cfg)
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	for _, o := range objects {
		require.NotContains(t, []string{"coredns", "kube-dns"}, o.GetName(), o.GetKind())
	}
}
