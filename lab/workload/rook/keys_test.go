package rook

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/lab/ceph"
	"github.com/slipway-platform/slipway/lab/workload"
)

func TestKeyType_IsLeftToCephByARookThatKnowsNoTypes(t *testing.T) {
	for tag, knows := range map[string]bool{
		"v1.18.8": false, "v1.19.8": false, "v1.19.9": true, "v1.19.10": true, "v1.20.4": false, "v1.20.5": true, "v1.20.6": true,
		"v1.21.0": true,
	} {
		image := corev1.Container{Image: "docker.io/rook/ceph:" + tag}
		o := &rookOperator{applier: newApplier(workload.Container{Spec: image}, "rook")}
		want := ceph.KeyType("")
		if knows {
			want = ceph.AES
		}
		assert.Equal(t, want, o.keyType(cephxSpec{KeyType: "aes"}), tag)
	}
}
