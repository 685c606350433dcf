package kubelet

import (
	"cmp"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A kubelet's default thresholds for eviction, which it takes off what pods may request.
const (
	evictionMemory = 100 << 20 // memory.available
	evictionDisk   = 10        // nodefs.available, percent
)

func (o NodeOptions) cores() int64       { return int64(cmp.Or(o.Cores, 4)) }
func (o NodeOptions) memoryBytes() int64 { return int64(cmp.Or(o.MemoryMiB, 8192)) << 20 }
func (o NodeOptions) diskBytes() int64   { return int64(cmp.Or(o.EphemeralBytes, 18<<30)) }

// resources are what the node has, and what is left for pods after Talos's reservations and the kubelet's thresholds for
// eviction. Reservations of the machine configuration are not modelled.
func (o NodeOptions) resources() (capacity, allocatable corev1.ResourceList) {
	capacity = corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(o.cores(), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(o.memoryBytes(), resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(int64(cmp.Or(o.MaxPods, 110)), resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(o.diskBytes(), resource.BinarySI),
	}
	reservedMemory := constants.KubeletSystemReservedMemoryWorker
	if o.ControlPlane {
		reservedMemory = constants.KubeletSystemReservedMemoryControlPlane
	}
	allocatable = capacity.DeepCopy()
	for name, taken := range map[corev1.ResourceName][]resource.Quantity{
		corev1.ResourceCPU:    {resource.MustParse(constants.KubeletSystemReservedCPU)},
		corev1.ResourceMemory: {resource.MustParse(reservedMemory), *resource.NewQuantity(evictionMemory, resource.BinarySI)},
		corev1.ResourceEphemeralStorage: {
			resource.MustParse(constants.KubeletSystemReservedEphemeralStorage),
			*resource.NewQuantity(o.diskBytes()*evictionDisk/100, resource.BinarySI),
		},
	} {
		left := allocatable[name]
		for _, q := range taken {
			left.Sub(q)
		}
		if left.Sign() < 0 {
			left.Set(0)
		}
		allocatable[name] = left
	}
	return capacity, allocatable
}
