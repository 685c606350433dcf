package reclaim

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// aVM returns the answers of a Proxmox VE with one VM.
func aVM(status, pending string) map[string]string {
	const at = " /api2/json/nodes/pve2/qemu/1111"
	return map[string]string{
		"GET /api2/json/cluster/resources":              `[{"vmid":1111,"node":"pve2","type":"qemu"}]`,
		"GET" + at + "/config":                          `{"name":"infra-cp-1"}`,
		"GET" + at + "/status/current":                  fmt.Sprintf(`{"status":%q}`, status),
		"GET" + at + "/pending":                         pending,
		"POST" + at + "/status/start":                   `"UPID:x"`,
		"POST" + at + "/status/reboot":                  `"UPID:x"`,
		"GET /api2/json/nodes/pve2/tasks/UPID:x/status": `{"status":"stopped","exitstatus":"OK"}`,
	}
}

func TestPower_NamesWhatWaitsUntilTheVMWasOff(t *testing.T) {
	for name, one := range map[string]struct {
		status, pending string
		off             bool
		waiting         []string
	}{
		"runs as configured": {"running", `[{"key":"memory","value":"4096"},{"key":"cores","value":2}]`, false, nil},
		"half changed": {"running", `[{"key":"cores","value":2,"pending":4},{"key":"memory","value":"4096","pending":"8192"},
			{"key":"scsi1","pending":"local-lvm:vm-1111-disk-2,size=10G"},{"key":"net0","value":"virtio","delete":1}]`,
			false, []string{"cores", "memory", "scsi1", "net0"}},
		"changed by hand": {"running", `[{"key":"args","pending":"-no-hpet"},{"key":"boot","value":"a","pending":"b"},{"key":"ide0","delete":1},
			{"key":"cores","value":2,"delete":0}]`, false, nil},
		"a cloud-init drive of a refused update": {"running", `[{"key":"ide2","value":"local-lvm:vm-1111-cloudinit,media=cdrom",
			"pending":"local-lvm:vm-1111-cloudinit"}]`, false, nil},
		"by a CSI driver": {"running", `[{"key":"scsi1","value":"local-lvm:vm-9999-pvc-1,size=5G","delete":1},
			{"key":"scsi2","pending":"local-lvm:vm-9999-pvc-2,size=5G"}]`, false, nil},
		"of a storage with names of its own": {"running", `[{"key":"scsi1","pending":"linstor:pm-1a2b_1111,size=5G"}]`, false, []string{"scsi1"}},
		"off":                                {"stopped", `[]`, true, nil},
	} {
		api, changes := proxmoxAPI(t, aVM(one.status, one.pending))
		off, waiting, err := Power(t.Context(), api, wanted.ID)
		require.NoError(t, err, name)
		assert.Equal(t, one.off, off, name)
		assert.Equal(t, one.waiting, waiting, name)
		assert.Empty(t, *changes, name)
	}
}

func TestRestart_RebootsAVMAndStartsOneThatIsOff(t *testing.T) {
	api, changes := proxmoxAPI(t, aVM("running", `[]`))
	require.NoError(t, Restart(t.Context(), api, wanted.ID))
	assert.Equal(t, []string{"POST /api2/json/nodes/pve2/qemu/1111/status/reboot?timeout=600"}, *changes)

	answers := aVM("stopped", `[]`)
	api, changes = proxmoxAPI(t, answers)
	delete(answers, "POST /api2/json/nodes/pve2/qemu/1111/status/start")
	require.ErrorContains(t, Restart(t.Context(), api, wanted.ID), "500")
	assert.Equal(t, []string{"POST /api2/json/nodes/pve2/qemu/1111/status/start"}, *changes)
}

func TestRestart_ATaskThatEndsWithWarningsHasDoneItsWork(t *testing.T) {
	answers := aVM("running", `[]`)
	answers["GET /api2/json/nodes/pve2/tasks/UPID:x/status"] = `{"status":"stopped","exitstatus":"WARNINGS: 1"}`
	api, _ := proxmoxAPI(t, answers)
	require.NoError(t, Restart(t.Context(), api, wanted.ID))
	answers["GET /api2/json/nodes/pve2/tasks/UPID:x/status"] = `{"status":"stopped","exitstatus":"VM quit/powerdown failed"}`
	require.ErrorContains(t, Restart(t.Context(), api, wanted.ID), "VM quit/powerdown failed")
}
