package rook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/slipway-platform/slipway/lab/workload"
)

const (
	csiConfig    = "ceph-csi-config"
	csiConfigKey = "config.json"
	csiPlugin    = "csi-rbdplugin"
	// settingsName is the name of the only OperatorConfig that the operator reads.
	settingsName = "ceph-csi-operator-config"
	// ownerAnnotation is on a CSIDriver that the operator has made. It takes no other one over.
	ownerAnnotation = "csi.ceph.io/ownerref"
)

// csiImages are the images that the operator runs if no ConfigMap names others.
var csiImages = map[string]string{
	"provisioner": "registry.k8s.io/sig-storage/csi-provisioner:v6.2.0",
	"attacher":    "registry.k8s.io/sig-storage/csi-attacher:v4.12.0",
	"resizer":     "registry.k8s.io/sig-storage/csi-resizer:v2.1.0",
	"snapshotter": "registry.k8s.io/sig-storage/csi-snapshotter:v8.5.0",
	"registrar":   "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.17.0",
	"plugin":      "quay.io/cephcsi/cephcsi:v3.17.0",
}

// driverNames is the form of the names of drivers, with their type.
var driverNames = regexp.MustCompile(`^(?:.+\.)?(rbd|cephfs|nfs|nvmeof)\.csi\.ceph\.com$`)

// csiOperator is a run of the operator of the CSI drivers. It runs the drivers of Driver objects, with the defaults of the OperatorConfig,
// and writes what ClientProfiles say into the drivers' configuration. Not modelled: other drivers than those of RBD, finalizers, fields of
// the specs but those below, log rotation, liveness probes, CSI-Addons, ClientProfileMappings, drivers of other namespaces than its own.
type csiOperator struct {
	*workload.Instance
	applier
	drivers, profiles, connections workload.ObjectCache[*unstructured.Unstructured]
}

// startCSIOperator runs the operator of the CSI drivers.
func (r *Rook) startCSIOperator(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	if c.Cluster.Dynamic == nil {
		return nil, errors.New("ceph-csi-operator: no client for custom resources")
	}
	i, ctx := workload.NewInstance(ctx)
	o := &csiOperator{Instance: i, applier: newApplier(c, "ceph-csi-operator")}
	i.After(c.Cluster.PodStart, func() {
		i.SetReady(true)
		workload.RetryUntilOK(ctx, c, func() error { return o.crdsExist(ctx) }, func() { o.run(ctx) })
	})
	return i, nil
}

func (o *csiOperator) crdsExist(ctx context.Context) error {
	for _, kind := range []schema.GroupVersionResource{csiDrivers, csiSettings, csiConnections, csiProfiles} {
		if _, err := o.Cluster.Dynamic.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return err
		}
	}
	return nil
}

// run acts until the operator ends.
func (o *csiOperator) run(ctx context.Context) {
	o.drivers, o.profiles = workload.NewCustomCache(ctx, o.Cluster, csiDrivers), workload.NewCustomCache(ctx, o.Cluster, csiProfiles)
	o.connections = workload.NewCustomCache(ctx, o.Cluster, csiConnections)
	tick := time.NewTicker(rookInterval)
	defer tick.Stop()
	for {
		if o.drivers.Synced() && o.profiles.Synced() && o.connections.Synced() {
			if err := o.reconcile(ctx); err != nil && ctx.Err() == nil {
				o.logOnce("ERROR\tReconciler error\t" + strings.ReplaceAll(err.Error(), "\n", "; "))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-o.drivers.Changed:
		case <-o.profiles.Changed:
		case <-o.connections.Changed:
		case <-tick.C:
		}
	}
}

func (o *csiOperator) reconcile(ctx context.Context) error {
	errs := []error{o.reconcileConfig(ctx)}
	for _, driver := range o.drivers.List() {
		if driver.GetNamespace() == o.Pod.Namespace && driver.GetDeletionTimestamp() == nil {
			errs = append(errs, o.reconcileDriver(ctx, driver))
		}
	}
	return errors.Join(errs...)
}

// csiClusterConfig is an entry of the drivers' configuration.
type csiClusterConfig struct {
	ClusterID string   `json:"clusterID"`
	Monitors  []string `json:"monitors"`
	RBD       struct {
		RadosNamespace string `json:"radosNamespace"`
	} `json:"rbd"`
}

// reconcileConfig writes the drivers' configuration: the monitors and the RADOS namespace of each ClientProfile.
func (o *csiOperator) reconcileConfig(ctx context.Context) error {
	entries := []csiClusterConfig{}
	for _, profile := range o.profiles.List() {
		name, _, _ := unstructured.NestedString(profile.Object, "spec", "cephConnectionRef", "name")
		for _, connection := range o.connections.List() {
			if profile.GetNamespace() == o.Pod.Namespace && connection.GetNamespace() == o.Pod.Namespace && connection.GetName() == name {
				monitors, _, _ := unstructured.NestedStringSlice(connection.Object, "spec", "monitors")
				entry := csiClusterConfig{ClusterID: profile.GetName(), Monitors: monitors}
				entry.RBD.RadosNamespace, _, _ = unstructured.NestedString(profile.Object, "spec", "rbd", "radosNamespace")
				entries = append(entries, entry)
			}
		}
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	return o.apply(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.Pod.Namespace, Name: csiConfig},
		Data: map[string]string{csiConfigKey: string(text)}})
}

// driverSpec is what the operator reads of a Driver, and of the defaults in the OperatorConfig.
type driverSpec struct {
	ImageSet         struct{ Name string }
	SnapshotPolicy   string
	FSGroupPolicy    string
	AttachRequired   *bool
	NodePlugin       pluginSpec
	ControllerPlugin pluginSpec
}

type pluginSpec struct {
	ServiceAccountName, PriorityClassName string
	Replicas                              *int32
}

// with returns the spec, with another spec's values in empty fields.
func (s driverSpec) with(d driverSpec) driverSpec {
	s.SnapshotPolicy, s.FSGroupPolicy = cmp.Or(s.SnapshotPolicy, d.SnapshotPolicy), cmp.Or(s.FSGroupPolicy, d.FSGroupPolicy)
	s.AttachRequired = cmp.Or(s.AttachRequired, d.AttachRequired)
	s.NodePlugin, s.ControllerPlugin = s.NodePlugin.with(d.NodePlugin), s.ControllerPlugin.with(d.ControllerPlugin)
	return s
}

func (s pluginSpec) with(d pluginSpec) pluginSpec {
	return pluginSpec{cmp.Or(s.ServiceAccountName, d.ServiceAccountName), cmp.Or(s.PriorityClassName, d.PriorityClassName),
		cmp.Or(s.Replicas, d.Replicas)}
}

// desired is the whole spec of a driver, and the images that it runs.
func (o *csiOperator) desired(ctx context.Context, driver *unstructured.Unstructured) (driverSpec, map[string]string, error) {
	var own struct{ Spec driverSpec }
	if err := workload.Decode(driver, &own); err != nil {
		return driverSpec{}, nil, err
	}
	var config struct {
		Spec struct{ DriverSpecDefaults driverSpec }
	}
	settings, err := o.Cluster.Dynamic.Resource(csiSettings).Namespace(o.Pod.Namespace).Get(ctx, settingsName, metav1.GetOptions{})
	if err == nil {
		err = workload.Decode(settings, &config)
	}
	if ignoreMissing(err) != nil {
		return driverSpec{}, nil, err
	}
	images := maps.Clone(csiImages)
	for _, set := range []string{config.Spec.DriverSpecDefaults.ImageSet.Name, own.Spec.ImageSet.Name} {
		if set == "" {
			continue
		}
		named, err := o.Cluster.Client.CoreV1().ConfigMaps(o.Pod.Namespace).Get(ctx, set, metav1.GetOptions{})
		if err != nil {
			return driverSpec{}, nil, fmt.Errorf("unable to load the image set: %w", err)
		}
		maps.Copy(images, named.Data)
	}
	return own.Spec.with(config.Spec.DriverSpecDefaults), images, nil
}

// reconcileDriver runs a driver. It refuses a name whose CSIDriver somebody else has made.
func (o *csiOperator) reconcileDriver(ctx context.Context, driver *unstructured.Unstructured) error {
	name := driver.GetName()
	kind := driverNames.FindStringSubmatch(name)
	if kind == nil {
		return fmt.Errorf("invalid driver name %s", name)
	}
	if kind[1] != "rbd" {
		o.logOnce("driver " + name + ": the lab models the RBD driver only")
		return nil
	}
	owner, err := json.Marshal(struct{ Namespace, Name string }{driver.GetNamespace(), name})
	if err != nil {
		return err
	}
	have, err := o.Cluster.Client.StorageV1().CSIDrivers().Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && have.Annotations[ownerAnnotation] != string(owner):
		return fmt.Errorf("driver %s: Desired name already in use by a different CSI Driver: invalid driver name", name)
	case err != nil && !apierrors.IsNotFound(err):
		return err
	}
	spec, images, err := o.desired(ctx, driver)
	if err != nil {
		return err
	}
	attach, policy := spec.AttachRequired == nil || *spec.AttachRequired, storagev1.FSGroupPolicy(cmp.Or(spec.FSGroupPolicy, "File"))
	return errors.Join(
		o.apply(ctx, &storagev1.CSIDriver{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{ownerAnnotation: string(owner)}},
			Spec: storagev1.CSIDriverSpec{
				AttachRequired: &attach, PodInfoOnMount: new(false), SELinuxMount: new(true), FSGroupPolicy: &policy,
			},
		}),
		o.apply(ctx, o.nodePlugin(driver, spec.NodePlugin, images)),
		o.apply(ctx, o.controllerPlugin(driver, spec, images)),
	)
}

// account is the service account of a driver's pods.
func (o *csiOperator) account(s pluginSpec, part string) string {
	prefix := ""
	for _, e := range o.Spec.Env {
		if e.Name == "CSI_SERVICE_ACCOUNT_PREFIX" {
			prefix = e.Value
		}
	}
	return cmp.Or(s.ServiceAccountName, prefix+"rbd-"+part+"-sa")
}

// csiVolumes are the volumes that both kinds of pods have.
func csiVolumes() []corev1.Volume {
	return []corev1.Volume{
		{Name: csiConfig, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: csiConfig}}}},
		{Name: "keys-tmp-dir", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
	}
}

// pluginContainer is the container of the driver, with the flag of its part.
func pluginContainer(name, image, part string, socket corev1.VolumeMount) corev1.Container {
	return corev1.Container{Name: csiPlugin, Image: image,
		Args: []string{"--v=0", "--type=rbd", part, "--nodeid=$(NODE_ID)", "--drivername=" + name, "--endpoint=unix:///csi/csi.sock"},
		Env: []corev1.EnvVar{{Name: "NODE_ID",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}},
		VolumeMounts: []corev1.VolumeMount{socket, {Name: csiConfig, MountPath: "/etc/ceph-csi-config"},
			{Name: "keys-tmp-dir", MountPath: "/tmp/csi/keys"}}}
}

// nodePlugin is the DaemonSet of the driver's part on each node that takes ordinary pods.
func (o *csiOperator) nodePlugin(driver *unstructured.Unstructured, spec pluginSpec, images map[string]string) *appsv1.DaemonSet {
	name := driver.GetName() + "-nodeplugin"
	labels := map[string]string{"app": name}
	folder, create := "/var/lib/kubelet/plugins/"+driver.GetName(), corev1.HostPathDirectoryOrCreate
	volumes := append(csiVolumes(), corev1.Volume{Name: "plugin-dir", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: folder, Type: &create},
	}})
	socket := corev1.VolumeMount{Name: "plugin-dir", MountPath: "/csi"}
	plugin := pluginContainer(driver.GetName(), images["plugin"], "--nodeserver=true", socket)
	plugin.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	return &appsv1.DaemonSet{
		ObjectMeta: owned(o.Pod.Namespace, name, ownerOf(driver), nil),
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromInt32(1))}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				ServiceAccountName: o.account(spec, "nodeplugin"), HostNetwork: true, HostPID: true, DNSPolicy: corev1.DNSClusterFirstWithHostNet,
				PriorityClassName: spec.PriorityClassName, Volumes: volumes,
				Containers: []corev1.Container{plugin,
					{Name: "driver-registrar", Image: images["registrar"], SecurityContext: plugin.SecurityContext,
						Args:         []string{"--v=0", "--kubelet-registration-path=" + folder + "/csi.sock", "--csi-address=unix:///csi/csi.sock"},
						VolumeMounts: []corev1.VolumeMount{socket}},
				},
			}},
		},
	}
}

// controllerPlugin is the Deployment of the driver's part that makes volumes, with its sidecars.
func (o *csiOperator) controllerPlugin(driver *unstructured.Unstructured, spec driverSpec, images map[string]string) *appsv1.Deployment {
	name := driver.GetName() + "-ctrlplugin"
	labels := map[string]string{"app": name}
	socket := corev1.VolumeMount{Name: "socket-dir", MountPath: "/csi"}
	sidecar := func(name string, args ...string) corev1.Container {
		leader := []string{"--leader-election-namespace=" + o.Pod.Namespace, "--leader-election-lease-duration=137s",
			"--leader-election-renew-deadline=107s", "--leader-election-retry-period=26s", "--leader-election=true", "--v=0",
			"--csi-address=unix:///csi/csi.sock", "--timeout=150s"}
		return corev1.Container{Name: "csi-" + name, Image: images[name], Args: append(leader, args...),
			VolumeMounts: []corev1.VolumeMount{socket}}
	}
	containers := []corev1.Container{
		pluginContainer(driver.GetName(), images["plugin"], "--controllerserver=true", socket),
		sidecar("provisioner", "--retry-interval-start=500ms", "--default-fstype=ext4", "--prevent-volume-mode-conversion=true",
			"--feature-gates=Topology=false", "--extra-create-metadata=true"),
		sidecar("resizer", "--handle-volume-inuse-error=false"), sidecar("attacher", "--default-fstype=ext4"),
	}
	if cmp.Or(spec.SnapshotPolicy, "volumeSnapshot") != "none" {
		containers = append(containers, sidecar("snapshotter", "--extra-create-metadata=true"))
	}
	replicas := new(int32(2))
	if len(o.Cluster.Nodes()) == 1 {
		replicas = new(int32(1))
	}
	volumes := append(csiVolumes(), corev1.Volume{Name: "socket-dir",
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}})
	return &appsv1.Deployment{
		ObjectMeta: owned(o.Pod.Namespace, name, ownerOf(driver), nil),
		Spec: appsv1.DeploymentSpec{Replicas: cmp.Or(spec.ControllerPlugin.Replicas, replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				ServiceAccountName: o.account(spec.ControllerPlugin, "ctrlplugin"), PriorityClassName: spec.ControllerPlugin.PriorityClassName,
				Affinity: apart("app", name), Containers: containers, Volumes: volumes,
			}},
		},
	}
}
