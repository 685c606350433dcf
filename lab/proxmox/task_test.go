package proxmox

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/fault"
)

func TestTask_RunsThenStopsWithAnExitStatusAndALog(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Tokens = append(c.Tokens, Token{ID: "root@pam!other", Secret: "x", Privileges: []string{"VM.Audit"}})
	})
	require.NoError(t, w.faults.On(fault.Fault{Kind: fault.ProxmoxTaskHangs, Target: "qmcreate"}))
	upid := w.call(http.MethodPost, "nodes/pve1/qemu", with(t, "ide3", "")).data.(string)
	assert.Regexp(t, `^UPID:pve1:[0-9A-F]{8}:[0-9A-F]{8}:[0-9A-F]{8}:qmcreate:1111:root@pam!lab:$`, upid)

	path := "nodes/pve1/tasks/" + url.PathEscape(upid)
	status := w.get(path + "/status").(map[string]any)
	assert.Equal(t, "running", status["status"])
	assert.NotContains(t, status, "exitstatus")
	assert.Equal(t, "root@pam", status["user"])
	assert.Equal(t, "lab", status["tokenid"])

	// While the task runs, the machine exists and is locked.
	assert.Equal(t, "create", w.get(machinePath + "status/current").(map[string]any)["lock"])
	assert.Equal(t, "VM is locked (create)", w.call(http.MethodDelete, machinePath, nil).reason)

	// A list without a source has no task that runs.
	assert.Empty(t, w.get("nodes/pve1/tasks"))
	for _, path := range []string{"nodes/pve1/tasks?source=active&typefilter=qmcreate", "nodes/pve1/tasks?source=all", "cluster/tasks"} {
		assert.NotContains(t, w.get(path).([]any)[0], "endtime", path)
	}
	assert.Empty(t, w.get("nodes/pve1/tasks?source=active&typefilter=download"))

	w.faults.Clear()
	assert.Equal(t, "OK", w.exit(upid))
	log := w.get(path + "/log").([]any)
	assert.Equal(t, map[string]any{"n": float64(len(log)), "t": "TASK OK"}, log[len(log)-1])
	assert.Contains(t, log[0].(map[string]any)["t"], "scsi0: successfully created disk 'local-lvm:vm-1111-disk-0,")
	assert.NotContains(t, w.get(machinePath+"status/current"), "lock")
	assert.Len(t, w.get("nodes/pve1/tasks"), 1)
	assert.Empty(t, w.get("nodes/pve1/tasks?source=active"))
	assert.Empty(t, w.get("nodes/pve2/tasks"))
	ended := w.get("cluster/tasks").([]any)[0].(map[string]any)
	assert.Equal(t, "OK", ended["status"])
	assert.Contains(t, ended, "endtime")
	w.token = "root@pam!other=x"
	assert.Empty(t, w.get("nodes/pve1/tasks"), "a token sees its own tasks")
	assert.Empty(t, w.get("cluster/tasks"))
}

func TestTask_AnUnknownOneIsAFailedVerification(t *testing.T) {
	w := newWorld(t)
	for upid, problem := range map[string]string{
		"UPID:pve1:00000001:00000001:00000001:qmstart:1:root@pam:": "no such task",
		"nonsense": "unable to parse worker upid",
	} {
		r := w.call(http.MethodGet, "nodes/pve1/tasks/"+url.PathEscape(upid)+"/status", nil)
		assert.Equal(t, http.StatusBadRequest, r.code)
		assert.Equal(t, problem, r.errors["upid"])
	}
}

func TestTask_CanBeInterrupted(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Latency.SlowFactor = 1e6 })
	require.NoError(t, w.faults.On(fault.Fault{Kind: fault.ProxmoxTaskSlow, Target: "qmcreate"}))
	upid := w.call(http.MethodPost, "nodes/pve1/qemu", with(t, "ide3", "")).data.(string)
	require.Equal(t, http.StatusOK, w.call(http.MethodDelete, "nodes/pve1/tasks/"+url.PathEscape(upid), nil).code)
	assert.Equal(t, "interrupted by signal", w.exit(upid))
	assert.Empty(t, w.c.VMs())
}

func TestTask_FailsWhileItsFaultIsOn(t *testing.T) {
	w := newWorld(t)
	w.download("pve1")
	require.NoError(t, w.faults.On(fault.Fault{Kind: fault.ProxmoxTaskFails, Target: "qmcreate"}))
	assert.Contains(t, w.do(http.MethodPost, "nodes/pve1/qemu", recorded(t)), "unable to create VM 1111 - lvcreate 'pve/vm-1111-disk-0' error")
	assert.Empty(t, w.c.VMs(), "as with a real one, nothing is left")

	require.NoError(t, w.faults.On(fault.Fault{Kind: fault.ProxmoxTaskFails, Target: "qmcreate", Detail: "out of luck"}))
	assert.Equal(t, "out of luck", w.do(http.MethodPost, "nodes/pve1/qemu", recorded(t)))

	w.faults.Clear()
	w.ok(http.MethodPost, "nodes/pve1/qemu", recorded(t))
	require.NoError(t, w.faults.On(fault.Fault{Kind: fault.ProxmoxTaskFails, Target: "qmstart"}))
	assert.Equal(t, "start failed: QEMU exited with code 1", w.do(http.MethodPost, machinePath+"status/start", nil))
	assert.Equal(t, "stopped", w.status())
}

func TestTask_TakesItsLatencyTimesTheSlowFault(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Latency.Task, c.Latency.SlowFactor = 10*time.Millisecond, 10 })
	took := func(form url.Values) time.Duration {
		begin := time.Now()
		w.ok(http.MethodPost, "nodes/pve1/qemu", form)
		return time.Since(begin)
	}
	form := with(t, "ide3", "")
	assert.GreaterOrEqual(t, took(form), 10*time.Millisecond)
	require.NoError(t, w.faults.On(fault.Fault{Kind: fault.ProxmoxTaskSlow, Target: "qmcreate"}))
	form.Set("vmid", "1112")
	assert.GreaterOrEqual(t, took(form), 100*time.Millisecond)
}

func TestTask_TasksOnOneMachineRunOneAfterTheOther(t *testing.T) {
	w := newWorld(t)
	w.download("pve1")
	first := w.call(http.MethodPost, "nodes/pve1/qemu", recorded(t)).data.(string)
	second := w.call(http.MethodPost, machinePath+"status/start", nil).data.(string)
	assert.Equal(t, "OK", w.exit(first))
	assert.Equal(t, "OK", w.exit(second))
	assert.Equal(t, "running", w.status())
}
