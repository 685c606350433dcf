package rook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	csiConfig      = "rook-ceph-csi-config"
	csiConfigKey   = "csi-cluster-config-json"
	csiMapping     = "rook-ceph-csi-mapping-config"
	csiMappingKey  = "csi-mapping-config-json"
	csiPlugin      = "csi-rbdplugin"
	csiProvisioner = "csi-rbdplugin-provisioner"
	rookSettings   = "rook-ceph-operator-config"
)

// csiClusterConfig is an entry of the CSI driver's configuration.
type csiClusterConfig struct {
	ClusterID string   `json:"clusterID"`
	Monitors  []string `json:"monitors"`
	Namespace string   `json:"namespace"`
}

// saveCSIConfig writes the monitors of a namespace's cluster into the CSI driver's configuration.
func (o *rookOperator) saveCSIConfig(ctx context.Context, namespace string, monitors []string) error {
	api := o.Cluster.Client.CoreV1().ConfigMaps(o.Pod.Namespace)
	config, err := api.Get(ctx, csiConfig, metav1.GetOptions{})
	if err != nil {
		return ignoreMissing(err) // it is made with the drivers
	}
	var entries []csiClusterConfig
	if err := json.Unmarshal([]byte(config.Data[csiConfigKey]), &entries); err != nil {
		return err
	}
	at := slices.IndexFunc(entries, func(e csiClusterConfig) bool { return e.ClusterID == namespace })
	if at < 0 {
		at, entries = len(entries), append(entries, csiClusterConfig{ClusterID: namespace, Namespace: namespace})
	}
	if slices.Equal(entries[at].Monitors, monitors) {
		return nil
	}
	entries[at].Monitors = monitors
	text, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	config.Data[csiConfigKey] = string(text)
	_, err = api.Update(ctx, config, metav1.UpdateOptions{FieldManager: "rook"})
	return err
}

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// reconcileCSI runs the RBD driver while there is a CephCluster, whatever its state is.
func (o *rookOperator) reconcileCSI(ctx context.Context, clusters []*unstructured.Unstructured) error {
	settings, err := o.Cluster.Client.CoreV1().ConfigMaps(o.Pod.Namespace).Get(ctx, rookSettings, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	set := func(key, otherwise string) string {
		return cmp.Or(settings.Data[key], otherwise)
	}
	if len(clusters) == 0 || set("ROOK_CSI_DISABLE_DRIVER", "false") == "true" || set("ROOK_CSI_ENABLE_RBD", "true") != "true" {
		return o.stopCSI(ctx)
	}
	if set("ROOK_USE_CSI_OPERATOR", "true") == "true" {
		o.logOnce("ceph-csi: the lab does not model the other operator for the CSI drivers: csi.rookUseCsiOperator must be false")
		return nil
	}
	owner, err := o.deployment(ctx)
	if err != nil {
		return err
	}
	for name, data := range map[string][2]string{csiConfig: {csiConfigKey, "[]"}, csiMapping: {csiMappingKey, "[]"}} {
		_, err := o.Cluster.Client.CoreV1().ConfigMaps(o.Pod.Namespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: owned(o.Pod.Namespace, name, owner, nil), Data: map[string]string{data[0]: data[1]},
		}, metav1.CreateOptions{FieldManager: "rook"})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	replicas, err := strconv.ParseInt(set("CSI_PROVISIONER_REPLICAS", "2"), 10, 32)
	if err != nil || len(o.Cluster.Nodes()) == 1 {
		replicas = 1
	}
	driver := set("CSI_DRIVER_NAME_PREFIX", o.Pod.Namespace) + ".rbd.csi.ceph.com"
	attach := set("CSI_RBD_ATTACH_REQUIRED", "true") == "true"
	if err := o.apply(ctx, o.nodePlugins(owner, driver, set)); err != nil {
		return err
	}
	if err := o.apply(ctx, o.provisioners(owner, driver, int32(replicas), attach, set)); err != nil {
		return err
	}
	policy := storagev1.FSGroupPolicy(set("CSI_RBD_FSGROUPPOLICY", string(storagev1.FileFSGroupPolicy)))
	return o.apply(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: driver},
		Spec: storagev1.CSIDriverSpec{
			AttachRequired: &attach, PodInfoOnMount: new(false), SELinuxMount: new(true), FSGroupPolicy: &policy,
		},
	})
}

// deployment is the reference to the operator's Deployment, which owns the drivers.
func (o *rookOperator) deployment(ctx context.Context) (*metav1.OwnerReference, error) {
	for _, owner := range o.Pod.OwnerReferences {
		set, err := o.Cluster.Client.AppsV1().ReplicaSets(o.Pod.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if len(set.OwnerReferences) > 0 {
			reference := set.OwnerReferences[0]
			reference.BlockOwnerDeletion = new(false)
			return &reference, nil
		}
	}
	return nil, fmt.Errorf("the operator's pod %s has no Deployment", o.Pod.Name)
}

// stopCSI removes the drivers.
func (o *rookOperator) stopCSI(ctx context.Context) error {
	apps := o.Cluster.Client.AppsV1()
	if err := ignoreMissing(apps.DaemonSets(o.Pod.Namespace).Delete(ctx, csiPlugin, metav1.DeleteOptions{})); err != nil {
		return err
	}
	if err := ignoreMissing(apps.Deployments(o.Pod.Namespace).Delete(ctx, csiProvisioner, metav1.DeleteOptions{})); err != nil {
		return err
	}
	return ignoreMissing(o.Cluster.Client.StorageV1().CSIDrivers().Delete(ctx, o.Pod.Namespace+".rbd.csi.ceph.com", metav1.DeleteOptions{}))
}

// csiVolumes are the volumes that both kinds of pods have.
func csiVolumes() []corev1.Volume {
	item := func(configMap, key, path string) corev1.VolumeProjection {
		return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, Items: []corev1.KeyToPath{{Key: key, Path: path}},
		}}
	}
	return []corev1.Volume{
		{Name: "ceph-csi-configs", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			item(csiConfig, csiConfigKey, "config.json"), item(csiMapping, csiMappingKey, "cluster-mapping.json"),
		}}}},
		{Name: "keys-tmp-dir", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
	}
}

// nodeID is the environment of the driver: the node's name.
func nodeID() []corev1.EnvVar {
	return []corev1.EnvVar{{Name: "NODE_ID",
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}}
}

// nodePlugins is the DaemonSet of the driver's part on each node that takes ordinary pods.
func (o *rookOperator) nodePlugins(owner *metav1.OwnerReference, driver string, set func(key, otherwise string) string) *appsv1.DaemonSet {
	selector := map[string]string{"app": csiPlugin}
	labels := map[string]string{"app": csiPlugin, "contains": "csi-rbdplugin-metrics"}
	security := &corev1.SecurityContext{Privileged: new(true)}
	folder, create := "/var/lib/kubelet/plugins/"+driver, corev1.HostPathDirectoryOrCreate
	volumes := append(csiVolumes(), corev1.Volume{Name: "plugin-dir", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: folder, Type: &create},
	}})
	plugin := corev1.VolumeMount{Name: "plugin-dir", MountPath: "/csi"}
	return &appsv1.DaemonSet{
		ObjectMeta: owned(o.Pod.Namespace, csiPlugin, owner, nil),
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: selector},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromInt32(1))}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				ServiceAccountName: "rook-csi-rbd-plugin-sa", HostNetwork: true, HostPID: true, DNSPolicy: corev1.DNSClusterFirstWithHostNet,
				PriorityClassName: set("CSI_PLUGIN_PRIORITY_CLASSNAME", ""), Volumes: volumes,
				Containers: []corev1.Container{
					{Name: "driver-registrar", Image: set("ROOK_CSI_REGISTRAR_IMAGE", "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.16.0"),
						Args:            []string{"--v=0", "--csi-address=/csi/csi.sock", "--kubelet-registration-path=" + folder + "/csi.sock"},
						SecurityContext: security,
						VolumeMounts:    []corev1.VolumeMount{plugin}},
					{Name: csiPlugin, Image: set("ROOK_CSI_CEPH_IMAGE", "quay.io/cephcsi/cephcsi:v3.16.2"), SecurityContext: security,
						Args: []string{"--nodeid=$(NODE_ID)", "--endpoint=unix:///csi/csi.sock", "--v=0", "--type=rbd", "--nodeserver=true",
							"--drivername=" + driver}, Env: nodeID(),
						VolumeMounts: []corev1.VolumeMount{plugin, {Name: "ceph-csi-configs", MountPath: "/etc/ceph-csi-config/"},
							{Name: "keys-tmp-dir", MountPath: "/tmp/csi/keys"}}},
				},
			}},
		},
	}
}

// provisioners is the Deployment of the driver's part that makes volumes, with its sidecars.
func (o *rookOperator) provisioners(
	owner *metav1.OwnerReference, driver string, replicas int32, attach bool, set func(key, otherwise string) string,
) *appsv1.Deployment {
	selector := map[string]string{"app": csiProvisioner}
	labels := map[string]string{"app": csiProvisioner, "contains": "csi-rbdplugin-metrics"}
	socket := corev1.VolumeMount{Name: "socket-dir", MountPath: "/csi"}
	sidecar := func(name, image string, args ...string) corev1.Container {
		leader := []string{"--csi-address=$(ADDRESS)", "--v=0", "--timeout=2m30s", "--leader-election=true",
			"--leader-election-namespace=" + o.Pod.Namespace, "--leader-election-lease-duration=2m17s", "--leader-election-renew-deadline=1m47s",
			"--leader-election-retry-period=26s"}
		return corev1.Container{Name: name, Image: image, Args: append(leader, args...),
			Env: []corev1.EnvVar{{Name: "ADDRESS", Value: "unix:///csi/csi-provisioner.sock"}}, VolumeMounts: []corev1.VolumeMount{socket}}
	}
	containers := []corev1.Container{
		sidecar("csi-provisioner", set("ROOK_CSI_PROVISIONER_IMAGE", "registry.k8s.io/sig-storage/csi-provisioner:v6.1.1"),
			"--retry-interval-start=500ms", "--default-fstype=ext4", "--extra-create-metadata=true", "--prevent-volume-mode-conversion=true",
			"--feature-gates=HonorPVReclaimPolicy=true", "--feature-gates=Topology=false"),
		sidecar("csi-resizer", set("ROOK_CSI_RESIZER_IMAGE", "registry.k8s.io/sig-storage/csi-resizer:v2.1.0")),
	}
	if attach {
		containers = append(containers, sidecar("csi-attacher", set("ROOK_CSI_ATTACHER_IMAGE",
			"registry.k8s.io/sig-storage/csi-attacher:v4.11.0"),
			"--default-fstype=ext4"))
	}
	if set("CSI_ENABLE_RBD_SNAPSHOTTER", "true") == "true" {
		containers = append(containers, sidecar("csi-snapshotter", set("ROOK_CSI_SNAPSHOTTER_IMAGE",
			"registry.k8s.io/sig-storage/csi-snapshotter:v8.5.0"),
			"--extra-create-metadata=true"))
	}
	containers = append(containers, corev1.Container{Name: csiPlugin, Image: set("ROOK_CSI_CEPH_IMAGE", "quay.io/cephcsi/cephcsi:v3.16.2"),
		Args: []string{"--nodeid=$(NODE_ID)", "--endpoint=unix:///csi/csi-provisioner.sock", "--v=0", "--type=rbd", "--controllerserver=true",
			"--drivername=" + driver}, Env: nodeID(),
		VolumeMounts: []corev1.VolumeMount{socket, {Name: "ceph-csi-configs", MountPath: "/etc/ceph-csi-config/"},
			{Name: "keys-tmp-dir", MountPath: "/tmp/csi/keys"}}})
	volumes := append(csiVolumes(), corev1.Volume{Name: "socket-dir",
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}})
	return &appsv1.Deployment{
		ObjectMeta: owned(o.Pod.Namespace, csiProvisioner, owner, nil),
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: selector},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				ServiceAccountName: "rook-csi-rbd-provisioner-sa", PriorityClassName: set("CSI_PROVISIONER_PRIORITY_CLASSNAME", ""),
				Affinity: apart("app", csiProvisioner), Containers: containers, Volumes: volumes,
			}},
		},
	}
}
