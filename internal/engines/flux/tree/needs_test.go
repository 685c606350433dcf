package tree

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

func TestCheckStack_WarnsOfCertificatesThatNothingApproves(t *testing.T) {
	const manifest = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + cluster.CertificateApprover + ", namespace: a}\n"
	stack := given(t, nil)
	for _, on := range []bool{true, false} {
		stack.Kubernetes.MetricsServer = on
		advice, _, err := CheckStack(withTree(t, "kind: ConfigMap\n"), stack)
		require.NoError(t, err)
		if !on {
			assert.Empty(t, advice)
			continue
		}
		assert.EqualError(t, advice, "kubernetes.metricsServer: true, and no manifest below gitops.path has the Deployment "+
			"kubelet-serving-cert-approver; add the folder kubernetes/infrastructure/scheduling of this release, or remove it")
		advice, _, err = CheckStack(withTree(t, manifest), stack)
		require.NoError(t, err)
		assert.Empty(t, advice)
	}
}

func TestCheckStack_WarnsOfStorageThatNothingBringsInTime(t *testing.T) {
	const manifest = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: ceph-block}\n" +
		"provisioner: rook-ceph.rbd.csi.ceph.com\n"
	stack := given(t, nil)
	stack.Storage.Classes = []string{"ceph-block", "ceph-blok", "nfs"}
	stack.Storage.Drivers = []string{"rook-ceph.rdb.csi.ceph.com", "nfs.csi.k8s.io"}
	stack.GitOps.Flux.Storage = &cluster.FluxStorage{Class: "ceph-block", Size: 1 << 30}
	advice, problems, err := CheckStack(withTree(t, manifest), stack)
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.EqualError(t, advice, "gitops.flux.storage.class: ceph-block is made by kubernetes/clusters/infra/object.yaml, which Flux applies "+
		"only once it has its volume: a new cluster waits for ever; name a class that is there before Flux\n"+
		"storage.classes[1]: ceph-blok comes with no manifest below gitops.path; did you mean ceph-block?\n"+
		"storage.drivers[0]: rook-ceph.rdb.csi.ceph.com comes with no manifest below gitops.path; did you mean rook-ceph.rbd.csi.ceph.com?")
}

func TestCheckStack_WarnsOfObjectsWhoseAPINothingBrings(t *testing.T) {
	const issuer = "apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: cluster}\n"
	const sealed = "---\napiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: key, namespace: web}\n"
	const external = "---\napiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: key, namespace: web}\n" +
		"spec: {secretStoreRef: {kind: ClusterSecretStore, name: onepassword}}\n"
	const file = "kubernetes/clusters/infra/object.yaml"
	bare := func(c *cluster.Cluster) { c.CertManager.Enabled, c.Providers = false, cluster.SecretProviders{} }
	for manifest, want := range map[string]string{
		issuer + sealed: "certManager.enabled: " + file + " declares the kind ClusterIssuer of cert-manager.io, which this stack does not " +
			"have; set it to true, unless something else brings it\nsecrets.sealedSecrets: " + file + " declares the kind SealedSecret of " +
			"bitnami.com, which this stack does not have; declare it, unless something else brings it",
		issuer + "---\nkind: HelmRelease\nmetadata: {name: certificates}\nspec: {chart: {spec: {chart: cert-manager}}}\n":    "",
		issuer + "---\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: {group: cert-manager.io, names: {a: b}}\n": "",
	} {
		stack := given(t, nil)
		bare(stack)
		advice, _, err := CheckStack(withTree(t, manifest), stack)
		require.NoError(t, err)
		assert.Equal(t, want, advice.Error())
	}
	stack := given(t, nil)
	require.NotNil(t, stack.Providers.OnePassword)
	advice, _, err := CheckStack(withTree(t, external), stack)
	require.NoError(t, err)
	assert.EqualError(t, advice, "secrets.onepassword.namespaces: does not have web, where "+file+" declares the ExternalSecret key: the "+
		"operator refuses it; add web")
	stack.Providers.OnePassword.Namespaces = []string{"web"}
	advice, _, err = CheckStack(withTree(t, external), stack)
	require.NoError(t, err)
	assert.Empty(t, advice)
}

// Without KEYS, the keys of the tree come from 1Password, which a first cluster does not have.
func TestCheckStack_SaysThatKeysMayComeFromGit(t *testing.T) {
	manifests := withTree(t, "")
	const root, key = "kubernetes/clusters/infra/", "onepassword/cloudflare/key.yaml"
	const external = "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: key, namespace: dns}\n"
	manifests[root+"kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [" + key + "]\n")}
	manifests[root+key] = &fstest.MapFile{Data: []byte(external)}
	stack := given(t, nil)
	stack.Providers = cluster.SecretProviders{}
	advice, _, err := CheckStack(manifests, stack)
	require.NoError(t, err)
	assert.EqualError(t, advice, "secrets.onepassword: "+root+key+" declares the kind ExternalSecret of external-secrets.io, which this "+
		"stack does not have; declare it, or write the setting KEYS: git, unless something else brings it")
}

func TestCheckStack_WarnsOfObjectsWhoseCRDsTheStackLeavesOut(t *testing.T) {
	const file = "kubernetes/clusters/infra/object.yaml"
	const release = "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: %s}\nspec: {%s}\n"
	for _, one := range []struct {
		api, key, chart string
		skip            func(*cluster.CRDs)
	}{
		{"ceph.rook.io", "rook", "rook-ceph", func(c *cluster.CRDs) { c.Rook.Skip = true }},
		{"operator.victoriametrics.com", "victoriaMetrics", "victoria-metrics-k8s-stack",
			func(c *cluster.CRDs) { c.VictoriaMetrics.Skip = true }},
		{"postgresql.cnpg.io", "cloudnativePG", "cloudnative-pg", func(c *cluster.CRDs) { c.CloudNativePG.Skip = true }},
	} {
		object := "apiVersion: " + one.api + "/v1\nkind: Thing\nmetadata: {name: a}\n"
		skipped := func(c *cluster.Cluster) { one.skip(&c.CRDs) }
		warning := "crds." + one.key + ".skip: " + file + " declares the kind Thing of " + one.api + ", which this stack does not have; " +
			"remove it, unless something else brings it"
		for manifest, want := range map[string]string{
			object: warning,
			object + fmt.Sprintf(release, one.chart, "install: {crds: Skip}"): warning,
			object + fmt.Sprintf(release, one.chart, ""):                      "",
		} {
			advice, _, err := CheckStack(withTree(t, manifest), given(t, nil, skipped))
			require.NoError(t, err)
			assert.Equal(t, want, advice.Error(), manifest)
		}
		advice, _, err := CheckStack(withTree(t, object), given(t, nil))
		require.NoError(t, err)
		assert.Empty(t, advice, one.api)
	}
}

func TestCheckStack_WarnsOfAlertsThatNoControllerOfFluxSends(t *testing.T) {
	const alert = "apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Alert\nmetadata: {name: flux, namespace: flux-system}\n"
	advice, problems, err := CheckStack(withTree(t, alert), given(t, map[string]string{"ALERTS": "webhook", "ALERTS_TYPE": "discord"}))
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.EqualError(t, advice, "gitops.flux.components: kubernetes/clusters/infra/object.yaml declares the kind Alert of "+
		"notification.toolkit.fluxcd.io, which this stack does not have; add notification-controller, unless something else brings it")
	advice, _, err = CheckStack(withTree(t, alert), given(t, nil, func(c *cluster.Cluster) {
		c.GitOps.Flux.Components = append(c.GitOps.Flux.Components, cluster.NotificationController)
	}))
	require.NoError(t, err)
	assert.Empty(t, advice)
}
