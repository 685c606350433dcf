package tree

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
)

// defaults returns the names of the StorageClasses that are the default one.
func defaults(layers []Layer) (names []string) {
	for _, layer := range layers {
		for _, object := range layer.Objects {
			if object.GetKind() == "StorageClass" && object.GetAnnotations()["storageclass.kubernetes.io/is-default-class"] == "true" {
				names = append(names, object.GetName())
			}
		}
	}
	return names
}

func TestLocalStorage_OneClassIsTheDefaultOne(t *testing.T) {
	trees := clusters(t)
	for _, stack := range []string{"infra", "apps"} {
		assert.Equal(t, []string{"ceph-block"}, defaults(trees[stack+asDeclared]))
		assert.Equal(t, []string{"ceph-block"}, defaults(trees[stack+besideCeph]))
		assert.Equal(t, []string{"local-path"}, defaults(trees[stack+withLocal]))
	}
}

// The scheduler chooses only nodes with the user volume, before the volume is made.
func TestLocalStorage_VolumesAreOnNodesWithTheUserVolume(t *testing.T) {
	layers := clusters(t)["infra"+besideCeph]
	class := named(t, layers, "StorageClass", "local-path")
	assert.Equal(t, cluster.LocalProvisioner, class.Text("provisioner"))
	assert.Equal(t, "WaitForFirstConsumer", class.Text("volumeBindingMode"))
	topologies := class.List("allowedTopologies")
	require.Len(t, topologies, 1)
	expressions := list(topologies[0], "matchLabelExpressions")
	require.Len(t, expressions, 1)
	assert.Equal(t, map[string]any{"key": "kubernetes.io/hostname", "values": []any{"worker-1", "worker-2"}}, expressions[0])
	config := named(t, layers, "ConfigMap", "local-path-config").Text("data", "config.json")
	assert.JSONEq(t, `{"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": ["/var/mnt/data"]}]}`, config)
}

// The provisioner runs the helper pod with a folder of the node, and refuses one with a name, volumes, probes or rights of its own.
func TestLocalStorage_TheHelperPodIsAdmittedAndPinned(t *testing.T) {
	layers := clusters(t)["infra"+withLocal]
	config := named(t, layers, "ConfigMap", "local-path-config")
	var pod corev1.Pod
	require.NoError(t, yaml.UnmarshalStrict([]byte(config.Text("data", "helperPod.yaml")), &pod))
	require.Len(t, pod.Spec.Containers, 1)
	container := pod.Spec.Containers[0]
	assert.Equal(t, "helper-pod", container.Name, "the provisioner reads the log of this container")
	assert.True(t, pinned(container.Image), container.Image)
	assert.False(t, *pod.Spec.AutomountServiceAccountToken)
	assert.Contains(t, container.Resources.Requests, corev1.ResourceMemory)
	assert.Empty(t, pod.Spec.Volumes)
	assert.Empty(t, container.VolumeMounts)
	assert.Nil(t, container.SecurityContext)

	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var"}}}}
	one := tree{layers: layers}
	level, found := one.level(config.GetNamespace())
	require.True(t, found)
	template := corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	assert.Empty(t, refused(level, template))
	assert.NotEmpty(t, refused(api.LevelBaseline, template), "the level is needed")
	for _, script := range []string{"setup", "teardown"} {
		assert.Contains(t, config.Text("data", script), `"$VOL_DIR"`, "Flux replaces no variable of the provisioner")
	}
}

// Claims of the tree name no class: they take the default one.
func TestLocalStorage_WhatNeedsVolumesComesAfterTheClass(t *testing.T) {
	waits := 0
	for name, layers := range clusters(t) {
		if !strings.HasSuffix(name, withLocal) && !strings.HasSuffix(name, " with a database") {
			continue
		}
		for _, layer := range []string{"observability", "database"} {
			for _, one := range layers {
				if one.Name != layer {
					continue
				}
				waits++
				assert.Contains(t, (&tree{layers: layers}).closure(one.Declaration), fluxNamespace+"/storage-local", name)
			}
		}
		for _, one := range layers {
			for _, object := range one.Objects {
				class, said, _ := unstructured.NestedString(object.Object, "spec", "storage", "storageClassName")
				assert.False(t, said, "%s: %s: %s", name, object.Title(), class)
			}
		}
	}
	assert.Equal(t, 6, waits)
}
