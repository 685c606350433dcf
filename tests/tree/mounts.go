package tree

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// kubeletFolder is where kubelets mount the volumes of pods, those of CSI drivers, too.
const kubeletFolder = "/var/lib/kubelet"

// mounts: a pod that sees the folder of the kubelet also sees there what is unmounted later. Otherwise it has a copy of each mount that was
// there when it started, and holds the volume: no other node can have it.
func mounts(t *tree) {
	t.each(func(layer Layer, object Object) {
		w, isWorkload := read(object)
		switch {
		case isWorkload:
			for _, container := range slices.Concat(w.pod.Spec.InitContainers, w.pod.Spec.Containers) {
				for _, mount := range container.VolumeMounts {
					if seesKubelet(w.pod.Spec.Volumes, mount.Name) && !follows(mount) {
						t.found(layer, object, "container %s: %s: write mountPropagation: HostToContainer", container.Name, mount.MountPath)
					}
				}
			}
		case object.Is("operator.victoriametrics.com", "VLAgent") && collects(object) && !slices.ContainsFunc(containers(object),
			// The operator merges these into its own container by name and path, and a mount is of the volume varlib: of /var/lib.
			func(c corev1.Container) bool {
				return c.Name == "vlagent" && slices.ContainsFunc(c.VolumeMounts, func(mount corev1.VolumeMount) bool {
					return mount.Name == "varlib" && mount.MountPath == "/var/lib" && mount.ReadOnly && follows(mount)
				})
			}):
			t.found(layer, object, "container vlagent: /var/lib: write mountPropagation: HostToContainer")
		}
	})
}

// seesKubelet tells whether a volume is a folder of the machine with that of the kubelet in it.
func seesKubelet(volumes []corev1.Volume, name string) bool {
	return slices.ContainsFunc(volumes, func(volume corev1.Volume) bool {
		return volume.Name == name && volume.HostPath != nil && isIn(kubeletFolder, path.Clean(volume.HostPath.Path))
	})
}

// isIn tells whether a folder is another one, or below it.
func isIn(folder, other string) bool {
	return strings.HasPrefix(folder+"/", strings.TrimSuffix(other, "/")+"/")
}

func follows(mount corev1.VolumeMount) bool {
	return mount.MountPropagation != nil && *mount.MountPropagation != corev1.MountPropagationNone
}

// collects tells whether a VLAgent reads the logs of its machine.
func collects(agent Object) bool {
	enabled, _, err := unstructured.NestedBool(agent.Object, "spec", "k8sCollector", "enabled")
	return err == nil && enabled
}

// containers are those of a VLAgent that its operator merges into its own.
func containers(agent Object) (merged []corev1.Container) {
	for _, one := range agent.List("spec", "containers") {
		var container corev1.Container
		if runtime.DefaultUnstructuredConverter.FromUnstructured(one, &container) == nil {
			merged = append(merged, container)
		}
	}
	return merged
}
