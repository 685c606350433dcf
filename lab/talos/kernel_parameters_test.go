package talos_test

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/stretchr/testify/require"
)

func TestKernelParameters_HaveAStatusOnlyIfTheKernelTakesThem(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	apply := func(sysctls map[string]string) {
		_, err := w.admin(11).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
			Mode: machine.ApplyConfigurationRequest_NO_REBOOT,
			Data: w.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) { c.MachineConfig.MachineSysctls = sysctls }),
		})
		require.NoError(t, err)
	}
	status := func(name string) (string, bool) {
		found, err := safe.StateGetByID[*runtime.KernelParamStatus](w.ctx, w.admin(11).COSI, "proc.sys."+name)
		if state.IsNotFoundError(err) {
			return "", false
		}
		require.NoError(t, err)
		return found.TypedSpec().Current, true
	}
	apply(map[string]string{"vm.max_map_count": "262144", "vm.max_map_countt": "1", "kernel.pid_max": "many"})
	w.eventually("the kernel takes what it knows", func() bool {
		value, taken := status("vm.max_map_count")
		return taken && value == "262144"
	})
	for _, name := range []string{"vm.max_map_countt", "kernel.pid_max"} {
		_, taken := status(name)
		require.False(t, taken, name)
	}
	specs, err := safe.StateListAll[*runtime.KernelParamSpec](w.ctx, w.admin(11).COSI)
	require.NoError(t, err)
	require.Equal(t, 3, specs.Len())
	apply(nil)
	w.eventually("what the configuration has no more has no status", func() bool {
		_, taken := status("vm.max_map_count")
		return !taken
	})
}
