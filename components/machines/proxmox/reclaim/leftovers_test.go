package reclaim

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// removes removes leftovers of wanted, and returns what was said.
func removes(t *testing.T, h *fakeHost, maintenance func(context.Context, string) error) (said []string) {
	t.Helper()
	h.maintenance = maintenance
	require.NoError(t, removeLeftoverVMs(t.Context(), h, []VM{wanted}, func(line string) { said = append(said, line) }))
	return said
}

func TestRemove_RemovesAMachineThatIsInNoState(t *testing.T) {
	h := &fakeHost{vm: leftover()}
	said := removes(t, h, answers)
	assert.Equal(t, []string{"POST /status/stop", deleted}, h.done)
	assert.Equal(t, []string{"removed VM 1111 (infra-cp-1) on Proxmox node pve1, which an interrupted run has left"}, said)
}

func TestRemove_DoesNothingWhereThereIsNoVM(t *testing.T) {
	h := &fakeHost{}
	assert.Empty(t, removes(t, h, refuses))
	assert.Empty(t, h.done)
}

// A destroy must end, so what it keeps is no error.
func TestRemove_KeepsAMachineThatMayHoldData(t *testing.T) {
	for name, maintenance := range keeps {
		for status, done := range map[string][]string{"running": nil, "stopped": {"POST /status/start", shutDown}} {
			t.Run(name+", "+status, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := &fakeHost{vm: leftover()}
					h.vm.status = status
					said := removes(t, h, maintenance)
					assert.Equal(t, done, h.done)
					require.Len(t, said, 1)
					assert.Contains(t, said[0], "stays: VM 1111 (infra-cp-1) on Proxmox node pve1")
					assert.Contains(t, said[0], "remove it by hand")
				})
			})
		}
	}
}

// Proxmox VE cannot start it, for example because somebody has deleted the image in its drive.
func TestRemove_KeepsAMachineThatDoesNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{vm: leftover()}
		h.vm.status = "stopped"
		h.onRun = func(action string) error {
			return &taskError{"POST", action, wanted.ID, "volume 'local:iso/talos.iso' does not exist"}
		}
		said := removes(t, h, answers)
		assert.Equal(t, []string{"POST /status/start"}, slices.Compact(h.done))
		require.Len(t, said, 1)
		assert.Contains(t, said[0], "stays: VM 1111 (infra-cp-1) on Proxmox node pve1")
		assert.Contains(t, said[0], "POST /status/start of VM 1111: volume 'local:iso/talos.iso' does not exist")
		assert.Contains(t, said[0], "remove it by hand")
	})
}

func TestRemove_StartsAMachineAgainThatDidNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{vm: leftover()}
		h.vm.status = "stopped"
		h.onRun = func(action string) error {
			if len(h.done) > 1 {
				return nil
			}
			return &taskError{"POST", action, wanted.ID, "can't lock file '/var/lock/qemu-server/lock-1111.conf' - got timeout"}
		}
		assert.Len(t, removes(t, h, answers), 1)
		assert.Equal(t, []string{"POST /status/start", "POST /status/start", "POST /status/stop", deleted}, h.done)
	})
}

func TestRemove_IgnoresTheMachinesOfOthers(t *testing.T) {
	h := &fakeHost{vm: leftover()}
	h.vm.description = "mail server"
	assert.Empty(t, removes(t, h, answers))
	assert.Empty(t, h.done)
}

// TestRemove_StopsADownloadAndDeletesTheImage checks the requests, against replies in Proxmox's form.
func TestRemove_StopsADownloadAndDeletesTheImage(t *testing.T) {
	const (
		running = "UPID:pve1:0001:0002:65000000:download:talos-a.iso:root@pam!slipway:"
		delete  = "UPID:pve1:0001:0002:65000000:imgdel:local@iso:root@pam!slipway:"
	)
	var changes []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			changes = append(changes, r.Method+" "+r.URL.Path)
		}
		switch r.Method + " " + r.URL.Path {
		case "GET /api2/json/version":
			fmt.Fprint(w, `{"data":{"version":"8.4.1"}}`)
		case "GET /api2/json/nodes/pve1/tasks":
			fmt.Fprintf(w, `{"data":[{"upid":%q,"type":"download","id":"talos-a.iso","status":"RUNNING"},
				{"upid":"UPID:old","type":"download","id":"talos-a.iso","status":"OK","endtime":1795401399},
				{"upid":"UPID:other","type":"download","id":"debian.iso","status":"RUNNING"}]}`, running)
		case "GET /api2/json/cluster/tasks":
			fmt.Fprint(w, `{"data":[{"upid":"UPID:pve3:x","type":"imgdel","id":"local","status":"OK","endtime":"1795401399"},
				{"upid":"UPID:pve3:y","type":"imgdel","id":"other"}]}`)
		case "GET /api2/json/nodes/pve1/storage/local/content":
			fmt.Fprint(w, `{"data":[{"volid":"local:iso/talos-a.iso","content":"iso"},{"volid":"local:iso/debian.iso","content":"iso"}]}`)
		case "DELETE /api2/json/nodes/pve1/tasks/" + running:
			fmt.Fprint(w, `{"data":null}`)
		case "DELETE /api2/json/nodes/pve1/storage/local/content/local:iso/talos-a.iso":
			fmt.Fprintf(w, `{"data":%q}`, delete)
		case "GET /api2/json/nodes/pve1/tasks/" + running + "/status":
			fmt.Fprint(w, `{"data":{"status":"stopped","exitstatus":"interrupted by signal"}}`)
		case "GET /api2/json/nodes/pve1/tasks/" + delete + "/status":
			fmt.Fprint(w, `{"data":{"status":"stopped","exitstatus":"OK"}}`)
		default:
			http.Error(w, "no such thing: "+r.URL.Path, http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	leftovers := &Leftovers{
		API:    API{Endpoint: server.URL, Token: "t", Insecure: true},
		Images: []Image{{Host: "pve1", Storage: "local", File: "talos-a.iso"}, {Host: "pve1", Storage: "local", File: "talos-b.iso"}},
	}
	gone := []string{
		"DELETE /api2/json/nodes/pve1/tasks/" + running,
		"DELETE /api2/json/nodes/pve1/storage/local/content/local:iso/talos-a.iso",
	}
	require.NoError(t, MakeRoom(t.Context(), leftovers.API, leftovers.Images[0]))
	require.Equal(t, gone, changes)
	changes = nil

	var said []string
	require.NoError(t, leftovers.Validate())
	require.NoError(t, Remove(t.Context(), leftovers, func(line string) { said = append(said, line) }))
	assert.Equal(t, gone, changes)
	assert.Equal(t, []string{"removed image local:iso/talos-a.iso on Proxmox node pve1"}, said)
	assert.ErrorContains(t, (&Leftovers{}).Validate(), "api.endpoint")
}

// imageOnNAS is a leftover image on a shared storage.
func imageOnNAS(server *httptest.Server) *Leftovers {
	return &Leftovers{
		API:    API{Endpoint: server.URL, Token: "t", Insecure: true},
		Images: []Image{{Host: "pve1", Storage: "nas", File: "talos-a.iso"}},
	}
}

// The provider's deletion of an image goes on when the provider has reported it, and may not be in the list of tasks.
func TestRemove_TakesAnImageThatIsGoneForRemoved(t *testing.T) {
	for name, gone := range map[string]bool{"gone": true, "in use": false} {
		t.Run(name, func(t *testing.T) {
			tried := false
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/api2/json/version":
					fmt.Fprint(w, `{"data":{"version":"8.4.1"}}`)
				case r.Method == http.MethodDelete:
					tried = true
					fmt.Fprint(w, `{"data":"UPID:pve1:delete:"}`)
				case r.URL.Path == "/api2/json/nodes/pve1/tasks/UPID:pve1:delete:/status":
					fmt.Fprint(w, `{"data":{"status":"stopped","exitstatus":"unlink failed"}}`)
				case r.URL.Path == "/api2/json/nodes/pve1/storage/nas/content" && !(tried && gone):
					fmt.Fprint(w, `{"data":[{"volid":"nas:iso/talos-a.iso","content":"iso"}]}`)
				default:
					fmt.Fprint(w, `{"data":[]}`)
				}
			}))
			defer server.Close()
			var said []string
			err := Remove(t.Context(), imageOnNAS(server), func(line string) { said = append(said, line) })
			assert.Empty(t, said)
			if gone {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, "image nas:iso/talos-a.iso on Proxmox node pve1: unlink failed")
			}
		})
	}
}

// The deletion may run on another Proxmox node, where the file was downloaded.
func TestRemove_WaitsForTheDeletionThatTheProviderHasBegun(t *testing.T) {
	asked := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("%s %s", r.Method, r.URL.Path)
		case r.URL.Path == "/api2/json/version":
			fmt.Fprint(w, `{"data":{"version":"9.1.7"}}`)
		case r.URL.Path == "/api2/json/cluster/tasks" && asked == 0:
			asked++
			fmt.Fprint(w, `{"data":[{"upid":"UPID:pve3:x","node":"pve3","type":"imgdel","id":"nas","starttime":1795401398}]}`)
		case r.URL.Path == "/api2/json/nodes/pve1/storage/nas/content" && asked == 0:
			fmt.Fprint(w, `{"data":[{"volid":"nas:iso/talos-a.iso","content":"iso"}]}`)
		default:
			fmt.Fprint(w, `{"data":[]}`)
		}
	}))
	defer server.Close()
	assert.NoError(t, Remove(t.Context(), imageOnNAS(server), func(line string) { t.Error(line) }))
	assert.Equal(t, 1, asked)
}
