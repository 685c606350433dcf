package talos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
)

// rebootingProperties are the properties of a VM whose change makes the provider reboot it, at once.
var rebootingProperties = []resource.PropertyKey{"agent", "bios", "cpu", "initialization", "machine", "memory", "networkDevices"}

// reboots counts the VMs that one run reboots, by their role.
type reboots struct {
	mu    sync.Mutex
	names map[cluster.Role][]string
}

// admit refuses the reboot of a VM if as many of its role are rebooted by this run already as may be out of service. The provider reboots
// all changed VMs at the same time.
func (r *reboots) admit(node cluster.Machine, most int, urn string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.names = map[cluster.Role][]string{}
	}
	others := r.names[node.Role]
	if len(others) < most {
		r.names[node.Role] = append(others, node.Name)
		return nil
	}
	why := "etcd would lose its quorum"
	if node.Role == cluster.Worker {
		why = fmt.Sprintf("lifecycle.maxUnavailable is %d", most)
	}
	return fmt.Errorf("%s: the change reboots %s together with %s, and %s; change one after the other, and wait until each is healthy: "+
		"pulumi up --target '%s'", node.Path, node.Name, strings.Join(others, ", "), why, urn)
}

// rebootHook returns the hook that refuses, in previews too, that an up reboots more VMs at once than the cluster can spare.
func (b *builder) rebootHook(node cluster.Machine) (*pulumi.ResourceHook, error) {
	most := 1
	if node.Role == cluster.Worker {
		most = b.Lifecycle.MaxUnavailable
	}
	return b.ctx.RegisterResourceHook(b.name+"-"+node.Name+"-reboot", func(change *pulumi.ResourceHookArgs) error {
		if !needsReboot(change.OldInputs, change.NewInputs) {
			return nil
		}
		return b.reboots.admit(node, most, string(change.URN))
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
}

// needsReboot reports whether a change of a VM's inputs reboots it.
func needsReboot(before, after resource.PropertyMap) bool {
	return slices.ContainsFunc(rebootingProperties, func(key resource.PropertyKey) bool {
		return !plain(before[key]).DeepEquals(plain(after[key]))
	}) || !maps.Equal(diskSizes(before), diskSizes(after))
}

// diskSizes returns the sizes of a VM's disks, by interface. For a disk that grows or is added, the provider (bpg 0.66) reboots the VM, too:
// it compares pointers.
func diskSizes(vm resource.PropertyMap) map[string]float64 {
	sizes := map[string]float64{}
	disks := plain(vm["disks"])
	if !disks.IsArray() {
		return sizes
	}
	for _, one := range disks.ArrayValue() {
		disk := plain(one)
		if !disk.IsObject() {
			continue
		}
		at, size := plain(disk.ObjectValue()["interface"]), plain(disk.ObjectValue()["size"])
		if at.IsString() && size.IsNumber() {
			sizes[at.StringValue()] = size.NumberValue()
		}
	}
	return sizes
}
