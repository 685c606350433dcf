package reclaim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var wanted = VM{Host: "pve1", ID: 1111, Name: "infra-cp-1", Description: "Talos controlplane of cluster infra", Address: "10.25.11.11"}

// leftover returns the VM that an interrupted creation of wanted leaves.
func leftover() *machine {
	return &machine{node: "pve1", name: "infra-cp-1", status: "running", description: wanted.Description}
}

// fakeHost has at most one VM and records the operations on it.
type fakeHost struct {
	vm       *machine
	unlockAt time.Time
	inspect1 error // error of the first call of inspect
	onRun    func(action string) error
	done     []string

	maintenance func(ctx context.Context, address string) error // answer of Talos
}

func (h *fakeHost) inMaintenance(ctx context.Context, address string) error {
	return h.maintenance(ctx, address)
}

func (h *fakeHost) locate(context.Context) (map[int]guest, error) {
	if h.vm == nil {
		return nil, nil
	}
	return map[int]guest{wanted.ID: {VMID: wanted.ID, Node: h.vm.node, Type: "qemu"}}, nil
}

func (h *fakeHost) inspect(context.Context, string, int) (*machine, error) {
	if err := h.inspect1; err != nil {
		h.inspect1 = nil
		return nil, err
	}
	if time.Now().Before(h.unlockAt) {
		return &machine{node: h.vm.node, status: "stopped", lock: creating}, nil
	}
	return h.vm, nil
}

func (h *fakeHost) run(ctx context.Context, _ string, _ int, method, action string) error {
	if err := ctx.Err(); err != nil {
		return err // the request is not sent
	}
	h.done = append(h.done, method+" "+action)
	if h.onRun != nil {
		return h.onRun(action)
	}
	return nil
}

const (
	deleted  = "DELETE ?purge=1&destroy-unreferenced-disks=1"
	shutDown = "POST /status/shutdown?forceStop=1&timeout=60"
)

// inMaintenance is a Proxmox VE whose VMs are in maintenance mode.
type inMaintenance struct{ *proxmox }

func (inMaintenance) inMaintenance(context.Context, string) error { return nil }

func answers(context.Context, string) error { return nil }

func refuses(context.Context, string) error { return errors.New("connection refused") }

// keeps are answers of machines that may hold data.
var keeps = map[string]func(context.Context, string) error{
	"configured": func(context.Context, string) error { return fmt.Errorf("%w with a configuration", errHoldsTalos) },
	"silent":     refuses,
}

func try(t *testing.T, h *fakeHost, maintenance func(context.Context, string) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), DefaultTimeout)
	defer cancel()
	h.maintenance = maintenance
	return freeID(ctx, h, wanted)
}

func TestReclaim_DoesNothingWhereThereIsNoVM(t *testing.T) {
	h := &fakeHost{}
	require.NoError(t, try(t, h, refuses))
	assert.Empty(t, h.done)
}

func TestReclaim_RemovesAMachineThatWasNeverConfigured(t *testing.T) {
	h := &fakeHost{vm: leftover()}
	require.NoError(t, try(t, h, answers))
	assert.Equal(t, []string{"POST /status/stop", deleted}, h.done)
}

func TestReclaim_StartsAStoppedMachineToInspectItsDisks(t *testing.T) {
	h := &fakeHost{vm: leftover()}
	h.vm.status = "stopped"
	require.NoError(t, try(t, h, answers))
	assert.Equal(t, []string{"POST /status/start", "POST /status/stop", deleted}, h.done)
}

func TestReclaim_WaitsForTheTaskThatCreatesTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{vm: leftover(), unlockAt: time.Now().Add(20 * time.Second)}
		start := time.Now()
		require.NoError(t, try(t, h, answers))
		assert.Equal(t, 20*time.Second, time.Since(start))
	})
}

func TestReclaim_KeepsAMachineThatHasTalosInstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{vm: leftover()}
		start := time.Now()
		err := try(t, h, func(context.Context, string) error { return fmt.Errorf("%w with a configuration", errHoldsTalos) })
		require.ErrorContains(t, err, "VM 1111 (infra-cp-1)")
		require.ErrorContains(t, err, "with a configuration")
		assert.Empty(t, h.done)
		assert.Zero(t, time.Since(start), "waiting does not change the answer")
	})
}

func TestReclaim_KeepsAMachineThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{vm: leftover()}
		start := time.Now()
		require.ErrorContains(t, try(t, h, refuses), "connection refused")
		assert.Empty(t, h.done)
		assert.Equal(t, DefaultTimeout, time.Since(start))
	})
}

func TestReclaim_WaitsForAMachineThatBoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, up := &fakeHost{vm: leftover()}, time.Now().Add(time.Minute)
		require.NoError(t, try(t, h, func(context.Context, string) error {
			if time.Now().Before(up) {
				return errors.New("connection refused")
			}
			return nil
		}))
		assert.Equal(t, []string{"POST /status/stop", deleted}, h.done)
	})
}

func TestReclaim_AcceptsThatTheInterruptedRunStartsTheMachine(t *testing.T) {
	h := &fakeHost{vm: leftover()}
	h.vm.status = "stopped"
	h.onRun = func(action string) error {
		if action != "/status/start" {
			return nil
		}
		h.vm.status = "running"
		return errors.New("VM 1111 already running")
	}
	require.NoError(t, try(t, h, answers))
	assert.Equal(t, []string{"POST /status/start", "POST /status/stop", deleted}, h.done)
}

// Somebody may have switched off a machine that is in no state, to keep its data.
func TestReclaim_ShutsDownAMachineThatItHasStartedAndKeeps(t *testing.T) {
	for name, maintenance := range keeps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &fakeHost{vm: leftover()}
				h.vm.status = "stopped"
				require.ErrorContains(t, try(t, h, maintenance), "it was off, and is off again")
				assert.Equal(t, []string{"POST /status/start", shutDown}, h.done)
			})
		})
	}
}

func TestReclaim_SaysThatAMachineThatItHasStartedCannotBeShutDown(t *testing.T) {
	h := &fakeHost{vm: leftover(), onRun: func(action string) error {
		if action == "/status/start" {
			return nil
		}
		return errors.New("VM is locked (backup)")
	}}
	h.vm.status = "stopped"
	err := try(t, h, keeps["configured"])
	require.ErrorIs(t, err, errHoldsTalos)
	require.ErrorContains(t, err, "it was off, and runs now: VM is locked (backup)")
}

// A start whose request was sent goes on in Proxmox.
func TestReclaim_ShutsDownAMachineWhoseStartWasInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := &fakeHost{vm: leftover()}
	h.vm.status = "stopped"
	h.onRun = func(action string) error {
		if action != "/status/start" {
			return nil
		}
		cancel()
		return ctx.Err()
	}
	h.maintenance = answers
	require.ErrorIs(t, freeID(ctx, h, wanted), context.Canceled)
	assert.Equal(t, []string{"POST /status/start", shutDown}, h.done)
}

func TestReclaim_LeavesAMachineOnThatAnotherRunHasStarted(t *testing.T) {
	h := &fakeHost{vm: leftover()}
	h.vm.status = "stopped"
	h.onRun = func(string) error {
		h.vm.status = "running"
		return errors.New("VM 1111 already running")
	}
	require.ErrorIs(t, try(t, h, keeps["configured"]), errHoldsTalos)
	assert.Equal(t, []string{"POST /status/start"}, h.done)
}

func TestReclaim_NeverDeletesAMachineThatDoesNotStart(t *testing.T) {
	h := &fakeHost{vm: leftover(), onRun: func(string) error { return errors.New("volume does not exist") }}
	h.vm.status = "stopped"
	require.ErrorContains(t, try(t, h, answers), "volume does not exist")
	assert.Equal(t, []string{"POST /status/start"}, h.done)
}

func TestReclaim_AsksAgainWhileAMachineIsCreatedOrDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{vm: leftover(), inspect1: &statusError{code: http.StatusInternalServerError}}
		require.NoError(t, try(t, h, answers))
		assert.Equal(t, []string{"POST /status/stop", deleted}, h.done)
	})
	h := &fakeHost{vm: leftover(), inspect1: &statusError{code: http.StatusForbidden, status: "403 Forbidden"}}
	require.ErrorContains(t, try(t, h, answers), "403 Forbidden")
	assert.Empty(t, h.done)
}

func TestReclaim_GivesUpOnALockThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{vm: leftover(), unlockAt: time.Now().Add(time.Hour)}
		require.ErrorContains(t, try(t, h, answers), "stays locked (create)")
		assert.Empty(t, h.done)
	})
}

func TestReclaim_KeepsTheMachinesOfOthers(t *testing.T) {
	for name, change := range map[string]func(*machine){
		"another description": func(m *machine) { m.description = "mail server" },
		"another name":        func(m *machine) { m.name = "mail" },
	} {
		t.Run(name, func(t *testing.T) {
			h := &fakeHost{vm: leftover()}
			change(h.vm)
			require.ErrorContains(t, try(t, h, answers), "vmId: 1111 is taken")
			assert.Empty(t, h.done)
		})
	}
}

// Talos sees neither a disk that somebody has detached, to rescue its data, nor a snapshot, and the deletion would take them along.
func TestReclaim_KeepsAMachineThatSomebodyHasUsed(t *testing.T) {
	config := map[string]any{"scsi0": "local-lvm:vm-1111-disk-0,size=64G", "unused1": "local-lvm:vm-1111-disk-9", "parent": "before"}
	for name, status := range map[string]string{"running": "running", "off": "stopped"} {
		h := &fakeHost{vm: leftover()}
		h.vm.status, h.vm.later = status, laterThanCreation(config)
		err := try(t, h, answers)
		require.ErrorContains(t, err, "and has the snapshot before and the detached disk local-lvm:vm-1111-disk-9", name)
		require.ErrorIs(t, err, errMayHoldData, name)
		require.Error(t, wanted.check(t.Context(), h), name)
		assert.Empty(t, h.done, name)
	}
	assert.Empty(t, laterThanCreation(map[string]any{"scsi0": "local-lvm:vm-1111-disk-0", "efidisk0": "local-lvm:vm-1111-disk-1"}))
}

// A pin or maintenance may have come into the stack file between the run that was killed and the next.
func TestReclaim_RemovesWhatWasCreatedOnAnotherProxmoxNode(t *testing.T) {
	h := &fakeHost{vm: leftover()}
	h.vm.node = "pve2"
	require.NoError(t, try(t, h, answers))
	assert.Equal(t, []string{"POST /status/stop", deleted}, h.done)
}

// TestReclaim_SendsRequestsOfProxmoxsAPI checks the requests themselves, against replies in Proxmox's form.
func TestReclaim_SendsRequestsOfProxmoxsAPI(t *testing.T) {
	var requests []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "PVEAPIToken=root@pam!slipway=s3cret", r.Header.Get("Authorization"))
		requests = append(requests, r.Method+" "+r.URL.EscapedPath())
		switch r.Method + " " + r.URL.Path {
		case "GET /api2/json/cluster/resources":
			fmt.Fprint(w, `{"data":[{"vmid":1111,"node":"pve1","status":"unknown","type":"qemu"},{"vmid":7,"type":"lxc"}]}`)
		case "GET /api2/json/nodes/pve1/qemu/1111/config":
			fmt.Fprint(w, `{"data":{"name":"infra-cp-1","description":"Talos controlplane of cluster infra\n","memory":"8192"}}`)
		case "GET /api2/json/nodes/pve1/qemu/1111/status/current":
			fmt.Fprint(w, `{"data":{"status":"running","qmpstatus":"running","vmid":1111}}`)
		case "POST /api2/json/nodes/pve1/qemu/1111/status/stop", "DELETE /api2/json/nodes/pve1/qemu/1111":
			fmt.Fprint(w, `{"data":"UPID:pve1:0001:0002:65000000:qm:1111:root@pam!slipway:"}`)
		case "GET /api2/json/nodes/pve1/tasks/UPID:pve1:0001:0002:65000000:qm:1111:root@pam!slipway:/status":
			fmt.Fprint(w, `{"data":{"status":"stopped","exitstatus":"OK"}}`)
		default:
			http.Error(w, "no such thing", http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	pve, err := API{Endpoint: server.URL + "/", Token: "root@pam!slipway=s3cret", Insecure: true}.connect()
	require.NoError(t, err)
	require.NoError(t, freeID(t.Context(), inMaintenance{pve}, wanted))
	assert.Len(t, requests, 7)

	err = pve.do(t.Context(), http.MethodGet, "nodes/pve9/status", nil)
	require.ErrorContains(t, err, "500 Internal Server Error")
	assert.NotContains(t, err.Error(), "s3cret")
}

func TestReclaim_AFailedTaskIsAnError(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			fmt.Fprint(w, `{"data":"UPID:x"}`)
			return
		}
		fmt.Fprint(w, `{"data":{"status":"stopped","exitstatus":"VM is locked (backup)"}}`)
	}))
	defer server.Close()
	pve, err := API{Endpoint: server.URL, Token: "t", Insecure: true}.connect()
	require.NoError(t, err)
	err = pve.run(t.Context(), "pve1", 1111, http.MethodPost, "/status/stop")
	require.ErrorAs(t, err, new(*taskError))
	require.ErrorContains(t, err, "VM is locked (backup)")
}

func TestAPI_SaysWhatToDoAboutACertificateThatIsNotTrusted(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	pve, err := API{Endpoint: server.URL, Token: "t"}.connect()
	require.NoError(t, err)
	err = pve.do(t.Context(), http.MethodGet, "version", nil)
	require.ErrorContains(t, err, "certificate signed by unknown authority; copy /etc/pve/pve-root-ca.pem from a Proxmox node and export "+
		"SSL_CERT_FILE with its path (macOS: trust it in the keychain), or set proxmox.insecure: true")
	assert.False(t, temporary(err), "nothing waits for that")

	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	pve, err = API{Endpoint: "https://localhost:" + address.Port(), Token: "t"}.connect()
	require.NoError(t, err)
	pve.http.Transport.(*http.Transport).TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	err = pve.do(t.Context(), http.MethodGet, "version", nil)
	require.ErrorContains(t, err, "not localhost; write a name or an address of the certificate in proxmox.endpoint")

	pve, err = API{Endpoint: server.URL, Token: "t", Insecure: true}.connect()
	require.NoError(t, err)
	require.ErrorAs(t, pve.do(t.Context(), http.MethodGet, "version", nil), new(*statusError))
}

func TestAPI_ReadsAnUnsetTokenFromTheEnvironment(t *testing.T) {
	t.Setenv(tokenVariable, "")
	_, err := API{Endpoint: "https://pve.home.arpa:8006/"}.connect()
	require.ErrorContains(t, err, tokenVariable)
	t.Setenv(tokenVariable, "from-env")
	c, err := API{Endpoint: "https://pve.home.arpa:8006/"}.connect()
	require.NoError(t, err)
	assert.Equal(t, "from-env", c.token)
	assert.Equal(t, "https://pve.home.arpa:8006/api2/json/", c.base)
}
