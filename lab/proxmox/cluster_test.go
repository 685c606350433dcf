package proxmox

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/factory"
	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/latency"
	"github.com/slipway-platform/slipway/lab/vm"
)

// board is a Firmware that records the machines that it powers on.
type board struct {
	mu     sync.Mutex
	guests []*guest
}

func (b *board) PowerOn(hw vm.Hardware) vm.Guest {
	g := &guest{hw: hw, done: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.guests = append(b.guests, g)
	return g
}

func (b *board) last(t *testing.T) *guest {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NotEmpty(t, b.guests)
	return b.guests[len(b.guests)-1]
}

func (b *board) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.guests)
}

// guest shuts down at once, unless it is deaf. Its agent answers if the VM has the channel.
type guest struct {
	hw   vm.Hardware
	deaf bool
	once sync.Once
	done chan struct{}

	mu      sync.Mutex
	plugged map[string]*vm.Disk // as it was told last; nil: never
	grown   map[string]int64    // disks that have grown, by drive key
}

func (g *guest) Grown(key string, size int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grown = map[string]int64{key: size}
}

func (g *guest) Plug(disks map[string]*vm.Disk) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.plugged = disks
}

// disks are the keys of the disks that the guest was told last.
func (g *guest) disks() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.plugged))
}

func (g *guest) Shutdown(ctx context.Context) error {
	if g.deaf {
		<-ctx.Done()
		return ctx.Err()
	}
	g.PowerOff()
	return nil
}
func (g *guest) Moved(host string)     { g.hw.Host = host }
func (g *guest) PowerOff()             { g.once.Do(func() { close(g.done) }) }
func (g *guest) Done() <-chan struct{} { return g.done }
func (g *guest) Interfaces() ([]vm.Interface, bool) {
	return []vm.Interface{{Name: "eth0", MAC: g.hw.NICs[0].MAC, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.11/24")}}}, true
}

const (
	admin  = "root@pam!lab=secret"
	lesser = "ci@pve!plan=other"
)

// world is a cluster of three nodes with an image factory.
type world struct {
	t       *testing.T
	c       *Cluster
	board   *board
	faults  *fault.Set
	srv     *httptest.Server
	factory *httptest.Server
	iso     string // URL of an image
	token   string
}

func newWorld(t *testing.T, adjust ...func(*Config)) *world {
	t.Helper()
	f := factory.New(slog.New(slog.DiscardHandler))
	id, err := f.Add(factory.Schematic{Customization: factory.Customization{
		SystemExtensions: factory.SystemExtensions{OfficialExtensions: []string{"siderolabs/qemu-guest-agent"}},
	}})
	require.NoError(t, err)
	w := &world{t: t, board: &board{}, faults: &fault.Set{}, factory: httptest.NewServer(f.Handler()), token: admin}
	t.Cleanup(w.factory.Close)
	w.iso = w.factory.URL + "/image/" + id + "/v1.12.7/nocloud-amd64.iso"

	times, err := latency.Default().Scale(1e-6) // a millisecond each
	require.NoError(t, err)
	cfg := Config{
		Nodes: []Node{{Name: "pve1"}, {Name: "pve2"}, {Name: "pve3", CPUs: 2}},
		Tokens: []Token{
			{ID: "root@pam!lab", Secret: "secret"},
			{ID: "ci@pve!plan", Secret: "other", Privileges: readOnly},
		},
		Firmware: w.board, Latency: times, Faults: w.faults, Fetch: w.factory.Client(), Image: factory.Parse,
	}
	for _, a := range adjust {
		a(&cfg)
	}
	w.c = New(cfg)
	t.Cleanup(w.c.Close)
	w.srv = httptest.NewServer(w.c.Handler())
	t.Cleanup(w.srv.Close)
	return w
}

// reply is an answer of the API.
type reply struct {
	code   int
	reason string
	data   any
	errors map[string]string
}

// call sends a request; for GET and DELETE the parameters are in the path.
func (w *world) call(method, path string, form url.Values) reply {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.srv.URL+"/api2/json/"+path, strings.NewReader(form.Encode()))
	require.NoError(w.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if w.token != "" {
		req.Header.Set("Authorization", "PVEAPIToken="+w.token)
	}
	res, err := w.srv.Client().Do(req)
	require.NoError(w.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(w.t, err)
	var out struct {
		Data   any
		Errors map[string]string
	}
	if res.StatusCode < firstProxyError { // whose answers have no body
		require.NoError(w.t, json.Unmarshal(body, &out), "%s", body)
	}
	return reply{res.StatusCode, strings.TrimPrefix(res.Status, res.Status[:4]), out.Data, out.Errors}
}

// get requires an answer without error.
func (w *world) get(path string) any {
	w.t.Helper()
	r := w.call(http.MethodGet, path, nil)
	require.Equal(w.t, http.StatusOK, r.code, "%s: %s %v", path, r.reason, r.errors)
	return r.data
}

// do starts a task, waits until it ends and returns its exit status.
func (w *world) do(method, path string, form url.Values) string {
	w.t.Helper()
	r := w.call(method, path, form)
	require.Equal(w.t, http.StatusOK, r.code, "%s %s: %s %v", method, path, r.reason, r.errors)
	upid, ok := r.data.(string)
	require.True(w.t, ok, "%v", r.data)
	return w.exit(upid)
}

func (w *world) exit(upid string) string {
	w.t.Helper()
	w.c.mu.Lock()
	task := w.c.tasks[upid]
	w.c.mu.Unlock()
	require.NotNil(w.t, task, "no task %s", upid)
	select {
	case <-task.done:
	case <-time.After(20 * time.Second):
		require.Fail(w.t, "task does not end", upid)
	}
	status := w.get("nodes/" + task.node + "/tasks/" + url.PathEscape(upid) + "/status").(map[string]any)
	require.Equal(w.t, "stopped", status["status"])
	return status["exitstatus"].(string)
}

func (w *world) ok(method, path string, form url.Values) {
	w.t.Helper()
	require.Equal(w.t, "OK", w.do(method, path, form), "%s %s", method, path)
}

// download downloads the ISO image to a node's local storage.
func (w *world) download(node string) {
	w.t.Helper()
	w.ok(http.MethodPost, "nodes/"+node+"/storage/local/download-url", url.Values{
		"content": {"iso"}, "filename": {"talos.iso"}, "url": {w.iso}, "verify-certificates": {"1"}, "node": {node}, "storage": {"local"},
	})
}

// create creates the machine of the recorded request and powers it on.
func (w *world) create() {
	w.t.Helper()
	w.download("pve1")
	w.ok(http.MethodPost, "nodes/pve1/qemu", recorded(w.t))
	w.ok(http.MethodPost, "nodes/pve1/qemu/1111/status/start", url.Values{"timeout": {"1800"}})
}

// reboot reboots a machine and waits until it runs again, which it does some time after the task has ended.
func (w *world) reboot(machine string) {
	w.t.Helper()
	w.ok(http.MethodPost, machine+"status/reboot", url.Values{"timeout": {"1800"}})
	require.Eventually(w.t, func() bool { return w.get(machine + "status/current").(map[string]any)["status"] == "running" },
		5*time.Second, time.Millisecond)
}

func (w *world) status() string {
	w.t.Helper()
	return w.get("nodes/pve1/qemu/1111/status/current").(map[string]any)["status"].(string)
}

func TestCluster_CloseInterruptsTasksAndPowersEverythingOff(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Latency.SlowFactor = 1e6 })
	w.create()
	require.NoError(t, w.faults.On(fault.Fault{Kind: fault.ProxmoxTaskSlow, Target: "*"}))
	upid := w.call(http.MethodPost, "nodes/pve1/qemu/1111/status/reset", nil).data.(string)
	w.c.Close()
	assert.Equal(t, "interrupted by signal", w.exit(upid))
	<-w.board.last(t).Done()
	assert.Equal(t, "stopped", w.c.VMs()[0].Status)
	assert.Equal(t, http.StatusInternalServerError, w.call(http.MethodPost, "nodes/pve1/qemu/1111/status/start", nil).code)
}

func TestCluster_ListsItsVMs(t *testing.T) {
	w := newWorld(t)
	w.create()
	vms := w.c.VMs()
	require.Len(t, vms, 1)
	assert.False(t, vms[0].Since.IsZero())
	vms[0].Since = time.Time{}
	assert.Equal(t, VMStatus{ID: 1111, Name: "infra-cp-1", Node: "pve1", Status: "running", Cores: 2, MemoryMiB: 2048}, vms[0])
}
