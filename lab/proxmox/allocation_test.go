package proxmox

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/fault"
)

func TestFault_VMsThatAreCreatedAtOnceOnASlowStorageWaitForItsLockInVain(t *testing.T) {
	for _, one := range []struct {
		shared bool
		detail string
		made   int // of five VMs
		says   string
	}{
		{true, "", 3, "unable to create VM %d - cfs-lock 'storage-local-lvm' error: got lock request timeout"},
		{false, "", 3, "unable to create VM %d - can't lock file '/var/lock/pve-manager/pve-storage-local-lvm' - got timeout"},
		{false, "12s", 1, "unable to create VM %d - can't lock file '/var/lock/pve-manager/pve-storage-local-lvm' - got timeout"},
	} {
		t.Run(fmt.Sprint("shared: ", one.shared, one.detail), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *Config) {
				c.Storages = []Storage{{Name: "local-lvm", Type: "lvm", Content: []string{"images"}, Shared: one.shared}}
			})
			w.breaks(fault.DatastoreSlow, "local-lvm", one.detail)
			tasks := map[int]string{}
			for id := 1001; id <= 1005; id++ {
				node := "pve1"
				if one.shared && id%2 == 0 {
					node = "pve2"
				}
				r := w.call(http.MethodPost, "nodes/"+node+"/qemu", url.Values{"vmid": {strconv.Itoa(id)}, "scsi0": {"local-lvm:1"}})
				require.Equal(t, http.StatusOK, r.code, r.reason)
				tasks[id] = r.data.(string)
			}
			failed := 0
			for id, task := range tasks {
				if exit := w.exit(task); exit != "OK" {
					assert.Equal(t, fmt.Sprintf(one.says, id), exit)
					failed++
				}
			}
			assert.Equal(t, 5-one.made, failed, "of the volumes, one after the other, these begin within 10 s")
			assert.Len(t, w.c.VMs(), one.made, "a VM that could not be created leaves nothing")
			w.faults.Clear()
			w.ok(http.MethodPost, "nodes/pve1/qemu", url.Values{"vmid": {"1006"}, "scsi0": {"local-lvm:1"}})
		})
	}
}
