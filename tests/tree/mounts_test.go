package tree

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const watching = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: a, namespace: a}
spec:
  template:
    spec:
      containers: [{name: a, volumeMounts: [{name: host, mountPath: /host, readOnly: true, mountPropagation: HostToContainer}]}]
      volumes: [{name: host, hostPath: {path: /}}]
`

const collecting = `apiVersion: operator.victoriametrics.com/v1
kind: VLAgent
metadata: {name: a, namespace: a}
spec:
  k8sCollector: {enabled: true}
  containers:
    - {name: vlagent, volumeMounts: [{name: varlib, mountPath: /var/lib, readOnly: true, mountPropagation: HostToContainer}]}
`

func TestMounts_AreThoseThatAreLetGo(t *testing.T) {
	const propagation = ", mountPropagation: HostToContainer"
	for text, wrong := range map[string]bool{
		watching: false,
		strings.Replace(watching, propagation, "", 1):                                                     true,
		strings.Replace(watching, "HostToContainer", "None", 1):                                           true,
		strings.Replace(strings.Replace(watching, propagation, "", 1), "path: /}", "path: /var/lib/}", 1): true,
		strings.Replace(strings.Replace(watching, propagation, "", 1), "path: /}", "path: /var/log}", 1):  false,
		collecting: false,
		strings.Replace(collecting, propagation, "", 1):                                                        true,
		strings.Replace(collecting, "name: vlagent", "name: other", 1):                                         true,
		strings.Replace(strings.Replace(collecting, propagation, "", 1), "enabled: true", "enabled: false", 1): false,
	} {
		object := Object{Unstructured: &unstructured.Unstructured{}}
		require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
		one := tree{layers: []Layer{{Objects: []Object{object}}}}
		mounts(&one)
		assert.Equal(t, wrong, len(one.problems) > 0, text)
	}
}
