package kubelet

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/lab/ceph"
	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/kube/kubetest"
	"github.com/slipway-platform/slipway/lab/workload"
	"github.com/slipway-platform/slipway/lab/workload/rook"
)

const (
	osdLink   = "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi1"
	rbdDriver = "rook-ceph.rbd.csi.ceph.com"
)

// storageCluster is a real control plane with a node that has a disk for Ceph, and Rook's operator.
type storageCluster struct {
	*real
	rook   *rook.Rook
	ceph   *ceph.World
	custom dynamic.Interface
	node   string
}

// startStorage starts a cluster with its own Ceph. keyType is the type of the keys of the CSI driver; "null" leaves it to Ceph.
func startStorage(t *testing.T, keyType string) *storageCluster {
	if os.Geteuid() != 0 {
		t.Skip("the host name of a program needs root")
	}
	s := newStorage(t, &rook.Rook{Ceph: &ceph.World{Dir: t.TempDir()}, HealthEvery: time.Second}, "infra", kubetest.Loopback())
	s.create(t, "cephclusters", fmt.Sprintf(`apiVersion: ceph.rook.io/v1
kind: CephCluster
metadata: {name: rook-ceph, namespace: rook-ceph}
spec:
  cephVersion: {image: "quay.io/ceph/ceph:v19.2.7"}
  security: {cephx: {csi: {keyType: %s}}}
  cephConfig: {global: {osd_pool_default_size: "1"}}
  healthCheck: {muteHealthWarning: {AUTH_INSECURE_CLIENT_KEY_TYPE: {policy: mute}, AUTH_INSECURE_KEYS_ALLOWED: {policy: mute},
    AUTH_INSECURE_KEYS_CREATABLE: {policy: mute}}}
  mon: {count: 1}
  mgr: {count: 1}
  network: {provider: host, connections: {requireMsgr2: true}}
  storage: {nodes: [{name: %s, devices: [{name: %s}, {name: /dev/disk/by-id/missing}]}]}`, keyType, s.node, osdLink))
	s.create(t, "cephblockpools", `{apiVersion: ceph.rook.io/v1, kind: CephBlockPool, metadata: {name: block, namespace: rook-ceph},
spec: {failureDomain: host, replicated: {size: 1}}}`)
	return s
}

// newStorage starts a control plane with one node and Rook's operator, and no CephCluster.
func newStorage(t *testing.T, rook *rook.Rook, name string, at netip.Addr) *storageCluster {
	s := &storageCluster{rook: rook, ceph: rook.Ceph, node: name + "-worker-1"}
	pods := netip.PrefixFrom(netip.AddrFrom4([4]byte{127, 192 | at.As4()[1]&63, at.As4()[3], 0}), 24)
	s.real = startPlaneAt(t, planeOptions{name: name, loopback: at,
		change:    func(c *v1alpha1.Config) { c.ClusterConfig.ClusterNetwork.PodSubnet = []string{pods.String()} },
		workloads: withCRDs(t, workload.Registry{Behaviours: rook.Behaviours(kubetest.Binary(t, "csi-provisioner"), nil)})})
	t.Cleanup(func() { s.explain(t) })
	_, err := s.Start(t.Context(), NodeOptions{Name: s.node, Addresses: []netip.Addr{at.Next()}, TalosVersion: "v1.12.7",
		KubernetesVersion: kubetest.Version, BootID: "1", Disk: func(link string) any { return map[string]any{osdLink: name}[link] }})
	require.NoError(t, err)
	s.custom, err = dynamic.NewForConfig(s.rest)
	require.NoError(t, err)
	s.deploy(t)
	s.install(t)
	return s
}

// explain shows the logs of the storage's pods if the test has failed.
func (s *storageCluster) explain(t *testing.T) {
	if !t.Failed() {
		return
	}
	logs, err := filepath.Glob(filepath.Join(s.o.Dir, "logs", "rook-ceph_*", "*", "*.log"))
	require.NoError(t, err)
	for _, name := range logs {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		t.Logf("%s:\n%s", name, text[max(0, len(text)-2000):])
	}
	list, err := s.api.CoreV1().Events("").List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	require.NoError(t, err)
	for _, event := range list.Items {
		if event.Type == corev1.EventTypeWarning {
			t.Log(event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, event.Message)
		}
	}
}

// install installs the CRDs, without their schemas, what the chart installs, and a StorageClass.
func (s *storageCluster) install(t *testing.T) {
	for kind, group := range map[string]string{"CephCluster": "ceph.rook.io", "CephBlockPool": "ceph.rook.io", "CephClient": "ceph.rook.io",
		"Driver": "csi.ceph.io", "OperatorConfig": "csi.ceph.io", "CephConnection": "csi.ceph.io", "ClientProfile": "csi.ceph.io",
		"CephBlockPoolRadosNamespace": "ceph.rook.io"} {
		s.create(t, "customresourcedefinitions", fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.%[3]s}
spec:
  group: %[3]s
  scope: Namespaced
  names: {kind: %[2]s, plural: %[1]ss, singular: %[1]s}
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}},
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]`, strings.ToLower(kind), kind, group))
	}
	ctx := t.Context()
	_, err := s.api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "rook-ceph",
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	for _, name := range []string{"rook-ceph-default", "rook-ceph-mgr", "rook-ceph-osd", "rbd-nodeplugin-sa",
		"rbd-ctrlplugin-sa"} {
		_, err := s.api.CoreV1().ServiceAccounts("rook-ceph").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{})
		require.NoError(t, err)
	}
	_, err = s.api.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "provisioner"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "rbd-ctrlplugin-sa", Namespace: "rook-ceph"}}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	one := int32(1)
	for name, container := range map[string]corev1.Container{
		"rook-ceph-operator":          {Name: "rook-ceph-operator", Image: "docker.io/rook/ceph:v1.20.6"},
		"ceph-csi-controller-manager": {Name: "manager", Image: "quay.io/cephcsi/ceph-csi-operator:v1.0.4"},
	} {
		labels := map[string]string{"app": name}
		_, err = s.api.AppsV1().Deployments("rook-ceph").Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
					Containers: []corev1.Container{container}}}}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	secret := map[string]string{"clusterID": "rook-ceph", "pool": "block"}
	for _, what := range []string{"provisioner", "node-stage"} {
		name := "rook-csi-rbd-node"
		if what == "provisioner" {
			name = "rook-csi-rbd-provisioner"
		}
		secret["csi.storage.k8s.io/"+what+"-secret-name"], secret["csi.storage.k8s.io/"+what+"-secret-namespace"] = name, "rook-ceph"
	}
	s.create(t, "drivers", `{apiVersion: csi.ceph.io/v1, kind: Driver, metadata: {name: `+rbdDriver+`, namespace: rook-ceph},
spec: {controllerPlugin: {replicas: 1}}}`)
	_, err = s.api.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "ceph-block"},
		Provisioner: rbdDriver, Parameters: secret}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// create creates a custom resource, once its kind is served.
func (s *storageCluster) create(t *testing.T, plural, text string) {
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	of := schema.GroupVersionResource{Group: object.GroupVersionKind().Group, Version: "v1", Resource: plural}
	s.eventually(t, "object "+object.GetName(), func() bool {
		_, err := s.custom.Resource(of).Namespace(object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{})
		return err == nil
	})
}

// job is a Job with a volume of its own, which one container writes and the next one reads.
func job(name, word, expected string) *batchv1.Job {
	class, zero := "ceph-block", int32(0)
	container := func(name, script string) corev1.Container {
		return corev1.Container{Name: name, Image: "quay.io/cilium/cilium:v1.18.7", Command: []string{"sh", "-c", script},
			VolumeMounts: []corev1.VolumeMount{{Name: "probe", MountPath: "/probe"}}}
	}
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: batchv1.JobSpec{BackoffLimit: &zero,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{container("write", "echo "+word+" >/probe/slipway && sync")},
			Containers:     []corev1.Container{container("read", `test "$(cat /probe/slipway)" = `+expected)},
			Volumes: []corev1.Volume{{Name: "probe", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
					StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				}},
			}}}}}}}}
}

func (s *storageCluster) run(t *testing.T, j *batchv1.Job) {
	_, err := s.api.BatchV1().Jobs(j.Namespace).Create(t.Context(), j, metav1.CreateOptions{})
	require.NoError(t, err)
}

// ended waits until a Job has ended and returns whether it succeeded.
func (s *storageCluster) ended(t *testing.T, name string) (succeeded bool) {
	s.eventually(t, name+" ends", func() bool {
		j, err := s.api.BatchV1().Jobs("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		succeeded = j.Status.Succeeded > 0
		return succeeded || j.Status.Failed > 0
	})
	return succeeded
}

func (s *storageCluster) drivers(t *testing.T) (names []string) {
	node, err := s.api.StorageV1().CSINodes().Get(t.Context(), s.node, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	for _, driver := range node.Spec.Drivers {
		names = append(names, driver.Name)
	}
	return names
}

func (s *storageCluster) cephCluster(t *testing.T) *ceph.Cluster {
	secret, err := s.api.CoreV1().Secrets("rook-ceph").Get(t.Context(), "rook-ceph-mon", metav1.GetOptions{})
	require.NoError(t, err)
	return s.ceph.Find(string(secret.Data["fsid"]))
}

func (s *storageCluster) events(t *testing.T, reason, text string) bool {
	list, err := s.api.CoreV1().Events("default").List(context.WithoutCancel(t.Context()),
		metav1.ListOptions{FieldSelector: "reason=" + reason})
	if err != nil {
		return false
	}
	for _, event := range list.Items {
		if strings.Contains(event.Message, text) {
			return true
		}
	}
	return false
}

func TestStorage_APodWritesAVolumeOfRooksCephAndItGoesWithThePod(t *testing.T) {
	s := startStorage(t, "aes")
	s.run(t, job("good", "word", "word"))
	s.run(t, job("bad", "word", "another"))
	require.True(t, s.ended(t, "good"), "what was written is read")
	require.False(t, s.ended(t, "bad"), "the comparison is really made")
	require.Equal(t, []string{rbdDriver}, s.drivers(t))
	c := s.cephCluster(t)
	health, checks := c.Health()
	require.Equal(t, "HEALTH_OK", health, checks)
	for _, name := range []string{"good", "bad"} {
		background := metav1.DeletePropagationBackground
		require.NoError(t, s.api.BatchV1().Jobs("default").Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}))
	}
	s.eventually(t, "the volumes are gone, in Kubernetes and in Ceph", func() bool {
		volumes, err := s.api.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
		return err == nil && len(volumes.Items) == 0 && c.Images() == 0
	})
	s.eventually(t, "the node uses no volume", func() bool {
		node, err := s.api.CoreV1().Nodes().Get(t.Context(), s.node, metav1.GetOptions{})
		return err == nil && len(node.Status.VolumesInUse) == 0
	})
}

func TestStorage_APodWaitsForTheDriverOfItsNodeAndForCeph(t *testing.T) {
	s := startStorage(t, "aes")
	s.eventually(t, "the driver is registered", func() bool { return len(s.drivers(t)) == 1 })
	missing := fault.Fault{Kind: fault.CSIDriverMissing, Target: s.node}
	require.NoError(t, s.faults.On(missing))
	s.eventually(t, "the driver is missing", func() bool { return len(s.drivers(t)) == 0 })
	s.run(t, job("waits", "word", "word"))
	s.eventually(t, "the pod's event says so", func() bool {
		return s.events(t, "FailedMount", "driver name "+rbdDriver+" not found in the list of registered CSI drivers")
	})
	s.faults.Off(missing.Kind, missing.Target)
	require.True(t, s.ended(t, "waits"))

	gone := fault.Fault{Kind: fault.CephGone, Target: "infra"}
	require.NoError(t, s.faults.On(gone))
	s.eventually(t, "the CephCluster's health says so", func() bool { return s.health(t) == "Ready HEALTH_ERR" })
	s.run(t, job("later", "word", "word"))
	s.faults.Off(gone.Kind, gone.Target)
	require.True(t, s.ended(t, "later"))
}

// A cluster whose CephCluster does not say of which type the keys are cannot mount: the node's kernel knows the older type only.
func TestStorage_AKernelMountsNothingWithAKeyOfTheTypeThatCephChooses(t *testing.T) {
	s := startStorage(t, "null")
	s.run(t, job("never", "word", "word"))
	s.eventually(t, "the pod's event says so", func() bool { return s.events(t, "FailedMount", "rbd: map failed") })
}

// A driver runs while its Driver exists, and not beside a CSIDriver that somebody else has made, as an older Rook has.
func TestStorage_ADriverRunsIfItsDriverExistsAndNobodyElseHasItsName(t *testing.T) {
	s := startStorage(t, "aes")
	s.eventually(t, "the driver is registered", func() bool { return len(s.drivers(t)) == 1 })
	drivers := s.custom.Resource(schema.GroupVersionResource{Group: "csi.ceph.io", Version: "v1", Resource: "drivers"}).Namespace("rook-ceph")
	require.NoError(t, drivers.Delete(t.Context(), rbdDriver, metav1.DeleteOptions{}))
	s.eventually(t, "the driver is gone with its Driver", func() bool { return len(s.drivers(t)) == 0 })

	api := s.api.StorageV1().CSIDrivers()
	require.NoError(t, api.Delete(t.Context(), rbdDriver, metav1.DeleteOptions{}))
	_, err := api.Create(t.Context(), &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: rbdDriver}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.create(t, "drivers", `{apiVersion: csi.ceph.io/v1, kind: Driver, metadata: {name: `+rbdDriver+`, namespace: rook-ceph},
spec: {controllerPlugin: {replicas: 1}}}`)
	s.eventually(t, "the operator says so", func() bool {
		logs, err := filepath.Glob(filepath.Join(s.o.Dir, "logs", "rook-ceph_ceph-csi-controller-manager*", "*", "*.log"))
		require.NoError(t, err)
		for _, name := range logs {
			if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), "already in use by a different CSI Driver") {
				return true
			}
		}
		return false
	})
	require.Empty(t, s.drivers(t))
	require.NoError(t, api.Delete(t.Context(), rbdDriver, metav1.DeleteOptions{}))
	s.eventually(t, "the driver comes once the other CSIDriver is gone", func() bool { return len(s.drivers(t)) == 1 })
}

// health is the phase and the health of a CephCluster.
func (s *storageCluster) health(t *testing.T) string {
	cr, err := s.custom.Resource(schema.GroupVersionResource{Group: "ceph.rook.io", Version: "v1", Resource: "cephclusters"}).
		Namespace("rook-ceph").Get(context.WithoutCancel(t.Context()), "rook-ceph", metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	phase, _, _ := unstructured.NestedString(cr.Object, "status", "phase")
	health, _, _ := unstructured.NestedString(cr.Object, "status", "ceph", "health")
	return phase + " " + health
}

// secret creates a Secret, or replaces its data.
func (s *storageCluster) secret(t *testing.T, name string, data map[string]string) {
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "rook-ceph"}, StringData: data}
	_, err := s.api.CoreV1().Secrets("rook-ceph").Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		_, err = s.api.CoreV1().Secrets("rook-ceph").Update(t.Context(), object, metav1.UpdateOptions{})
	}
	require.NoError(t, err)
}

func fileOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// storageDocument is the document that tells how a consumer without a vault is connected.
const storageDocument = "../../docs/gitops.md"

// documentedManifests returns the consumer's manifests in the document, in order.
func documentedManifests(t *testing.T) (manifests []string) {
	t.Helper()
	_, section, found := strings.Cut(fileOf(t, storageDocument), "**Without a vault**")
	require.True(t, found)
	for _, block := range regexp.MustCompile("(?s)```yaml\n(apiVersion: v1\n.*?)```").FindAllStringSubmatch(section, -1) {
		manifests = append(manifests, strings.Split(block[1], "\n---\n")...)
	}
	return manifests
}

// documentedWords returns what stands for each word in the manifests: what the document's commands print on the provider, once Rook has made
// it, for the users with a prefix.
func (s *storageCluster) documentedWords(t *testing.T, users string) map[string]string {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `([A-Z-]+)` \\| `kubectl -n rook-ceph get (secret|configmap) ([a-z-]+) -o go-template='(.*)'` \\|$")
	rows := row.FindAllStringSubmatch(fileOf(t, storageDocument), -1)
	require.Len(t, rows, 5)
	words := map[string]string{}
	for _, row := range rows {
		row[3] = strings.ReplaceAll(row[3], "consumer-", users)
		s.eventually(t, "the provider has "+row[3], func() bool {
			object, err := s.custom.Resource(schema.GroupVersionResource{Version: "v1", Resource: row[2] + "s"}).Namespace("rook-ceph").
				Get(t.Context(), row[3], metav1.GetOptions{})
			if err != nil {
				return false
			}
			printed, err := template.New("").Funcs(template.FuncMap{"base64decode": func(text string) (string, error) {
				decoded, err := base64.StdEncoding.DecodeString(text)
				return string(decoded), err
			}}).Parse(row[4])
			require.NoError(t, err)
			var out strings.Builder
			require.NoError(t, printed.Execute(&out, object.Object))
			words[row[1]] = out.String()
			return out.Len() > 0
		})
	}
	return words
}

func filled(manifest string, words map[string]string) string {
	for word, value := range words {
		manifest = strings.ReplaceAll(manifest, word, value)
	}
	return manifest
}

// A consumer without a vault is connected as the document says.
func TestStorage_AConsumerUsesTheCephOfAnotherCluster(t *testing.T) {
	provider := startStorage(t, "aes")
	for client := range strings.SplitSeq(fileOf(t, "../../kubernetes/infrastructure/storage/provider/users/users.yaml"), "\n---\n") {
		provider.create(t, "cephclients", client)
	}
	at := kubetest.Loopback()
	for range 8 {
		at = at.Next()
	}
	s := newStorage(t, provider.rook, "apps", at)
	s.create(t, "cephclusters", `{apiVersion: ceph.rook.io/v1, kind: CephCluster, metadata: {name: rook-ceph, namespace: rook-ceph},
spec: {external: {enable: true}}}`)
	s.eventually(t, "the consumer waits", func() bool { return s.health(t) == "Connecting " })
	words := provider.documentedWords(t, "consumer-")
	wrong := maps.Clone(words)
	for _, key := range []string{"HEALTH-KEY", "NODE-KEY", "PROVISIONER-KEY"} {
		wrong[key] = "QVFDaHgxUm1BQUFBQUJBQUVBQUFBQUFBQUFBQUFBQUFBQUFBQUE9PQ=="
	}
	manifests := documentedManifests(t)
	require.Len(t, manifests, 5)
	var list corev1.ConfigMap
	require.NoError(t, yaml.Unmarshal([]byte(filled(manifests[4], words)), &list))
	_, err := s.api.CoreV1().ConfigMaps("rook-ceph").Create(t.Context(), &list, metav1.CreateOptions{})
	require.NoError(t, err)
	imports := func(words map[string]string, manifests ...string) {
		for _, manifest := range manifests {
			var secret corev1.Secret
			require.NoError(t, yaml.Unmarshal([]byte(filled(manifest, words)), &secret))
			s.secret(t, secret.Name, secret.StringData)
		}
	}
	imports(wrong, manifests[0])
	require.Never(t, func() bool { return s.health(t) != "Connecting " }, 5*time.Second, time.Second, "the user is in a Secret of its own")
	imports(wrong, manifests[1:4]...)
	s.eventually(t, "Ceph refuses another key", func() bool { return s.health(t) == "Connected HEALTH_ERR" })
	s.run(t, job("refused", "word", "word"))
	s.eventually(t, "the claim's event says so", func() bool { return s.events(t, "ProvisioningFailed", "rados: ret=-13, Permission denied") })
	imports(words, manifests[:4]...)
	s.eventually(t, "Ceph takes its own key", func() bool { return s.health(t) == "Connected HEALTH_OK" })
	require.True(t, s.ended(t, "refused"), "the claim is bound once the key is right")
	require.Equal(t, 1, provider.cephCluster(t).Images(), "the volume is in the provider's Ceph")
	require.NoError(t, provider.faults.On(fault.Fault{Kind: fault.CephGone, Target: "infra"}))
	s.eventually(t, "the consumer sees that the provider is gone", func() bool { return s.health(t) == "Connected HEALTH_ERR" })
}
