package kubelet

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestNode_HasTheStorageOfItsDiskWithoutWhatIsReserved(t *testing.T) {
	capacity, allocatable := NodeOptions{Cores: 2, MemoryMiB: 4096, EphemeralBytes: 100 << 30}.resources()
	require.Equal(t, int64(100<<30), capacity.StorageEphemeral().Value())
	require.Equal(t, int64(90<<30-256<<20), allocatable.StorageEphemeral().Value())
	require.Equal(t, int64(4096-384-100)<<20, allocatable.Memory().Value())
	require.Equal(t, int64(1950), allocatable.Cpu().MilliValue())
	_, onControlPlane := NodeOptions{MemoryMiB: 4096, ControlPlane: true}.resources()
	require.Equal(t, int64(4096-512-100)<<20, onControlPlane.Memory().Value())
	_, tiny := NodeOptions{MemoryMiB: 512, ControlPlane: true}.resources()
	require.Zero(t, tiny.Memory().Value())
	q := tiny[corev1.ResourcePods]
	require.Equal(t, int64(110), q.Value())
}
