package qemu

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/kube/process"
	"github.com/slipway-platform/slipway/lab/network"
	"github.com/slipway-platform/slipway/lab/vm"
)

// asQEMU is set where this test binary acts as QEMU. Its value is the file to which it appends the commands that it gets.
const asQEMU = "SLIPWAY_LAB_FAKE_QEMU"

func TestMain(m *testing.M) {
	if log := os.Getenv(asQEMU); log != "" {
		if err := fakeQEMU(os.Args[1:], log); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fakeQEMU is a QEMU without a machine. Its guest obeys ACPI, gives every disk back, and has an agent. A guest whose kernel QEMU boots
// installs a boot sector on the first disk, and reboots.
func fakeQEMU(args []string, log string) error {
	record(log, "start "+strings.Join(args, " "))
	qmp, err := net.Dial("unix", monitorSocket)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, agentSocket) }) {
		conn, err := net.Dial("unix", agentSocket)
		if err != nil {
			return err
		}
		go fakeAgent(conn)
	}
	fmt.Fprintln(qmp, `{"QMP": {"version": {}, "capabilities": []}}`)
	end := func(reason string) error {
		_, err := fmt.Fprintf(qmp, `{"event": "SHUTDOWN", "data": {"guest": true, "reason": %q}}`+"\n", reason)
		return err
	}
	lines := bufio.NewScanner(qmp)
	for lines.Scan() {
		var command struct {
			Execute   string
			Arguments json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &command); err != nil {
			return err
		}
		record(log, strings.TrimSpace(command.Execute+" "+string(command.Arguments)))
		fmt.Fprintln(qmp, `{"return": {}}`)
		switch {
		case command.Execute == "qmp_capabilities" && slices.Contains(args, "-kernel"):
			if err := install(args); err != nil {
				return err
			}
			return end("guest-reset")
		case command.Execute == "system_powerdown":
			return end("guest-shutdown")
		case command.Execute == "device_del":
			var device struct{ ID string }
			_ = json.Unmarshal(command.Arguments, &device)
			fmt.Fprintf(qmp, `{"event": "DEVICE_DELETED", "data": {"device": %q}}`+"\n", device.ID)
		}
	}
	return nil
}

// install writes a boot sector to the first disk.
func install(args []string) error {
	var disk struct{ File struct{ Filename string } }
	if err := json.Unmarshal([]byte(args[slices.Index(args, "-blockdev")+1]), &disk); err != nil {
		return err
	}
	return os.WriteFile(disk.File.Filename, append(make([]byte, 510), 0x55, 0xaa), 0o600)
}

func fakeAgent(conn net.Conn) {
	lines := bufio.NewScanner(conn)
	fmt.Fprintln(conn, `{"return": 99}`) // the answer to somebody who has gone
	for lines.Scan() {
		if _, id, sync := strings.Cut(lines.Text(), `"id":`); sync {
			fmt.Fprintf(conn, `{"return": %s}`+"\n", id[:strings.Index(id, "}")])
		} else {
			fmt.Fprintln(conn, `{"return": [{"name": "eth0", "hardware-address": "bc:24:11:00:01:0b", "ip-addresses": `+
				`[{"ip-address": "10.25.11.11", "ip-address-type": "ipv4", "prefix": 24}]}]}`)
		}
	}
}

func record(log, line string) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, line)
		_ = f.Close()
	}
}

// fakePrograms act as qemu-img, with raw files, and as genisoimage.
var fakePrograms = map[string]string{
	"qemu-img": `#!/bin/sh
case $1 in
create | resize) truncate -s "$6" "$5" ;;
dd) shift 5 && dd "$@" 2>/dev/null ;;
esac
`,
	"genisoimage": `#!/bin/sh
for content; do :; done
cat "$content"/* >"$8"
`,
}

// bench is a host whose QEMU is this test binary.
type bench struct {
	*Host
	t        *testing.T
	commands string // file with the commands that QEMU got
}

// noTaps makes no taps.
type noTaps struct{}

func (noTaps) NewTap() (*network.Tap, error) { panic("the VM has no card") }

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := shortDir(t)
	for name, script := range fakePrograms {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700)) //nolint:gosec // it is executed
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	commands := filepath.Join(dir, "commands")
	t.Setenv(asQEMU, commands)
	self, err := os.Executable()
	require.NoError(t, err)
	for name, text := range map[string]string{"talos.json": `{"version": "v1.12.6"}`, "cmdline": "talos.platform=nocloud\n", "vars": "new"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	talos, err := Open(filepath.Join(dir, "talos.json"))
	require.NoError(t, err)
	h := New(Config{
		Dir: filepath.Join(dir, "vm"), Logs: filepath.Join(dir, "logs"), Talos: []Built{talos}, Taps: noTaps{}, Program: self,
		Firmware: Firmware{Code: "code", Variables: filepath.Join(dir, "vars")}, Processes: &process.Table{},
	})
	t.Cleanup(h.Close)
	return &bench{h, t, commands}
}

// shortDir is a temporary folder whose path is short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "qemu")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// on powers a VM on and waits until QEMU runs.
func (b *bench) on(hw vm.Hardware) *guest {
	b.t.Helper()
	g := b.PowerOn(hw).(*guest)
	require.NotNil(b.t, g.running(b.t.Context()), "%s", g.status().Reason)
	return g
}

// got waits until QEMU has got a command with this text.
func (b *bench) got(text string) string {
	b.t.Helper()
	var all []byte
	require.Eventually(b.t, func() bool {
		all, _ = os.ReadFile(b.commands)
		return strings.Contains(string(all), text)
	}, time.Minute, 10*time.Millisecond, "%s", text)
	return string(all)
}

func hardware() vm.Hardware {
	return vm.Hardware{
		ID: 1111, Name: "infra-cp-1", Cores: 2, MemoryMiB: 4096, UEFI: true, Q35: true, Agent: true,
		UUID:      "e1d514c4-47a5-40ec-a5d7-c371f8e4e2b5",
		BootOrder: []string{"scsi0", "ide3"},
		Disks:     map[string]*vm.Disk{"scsi0": {Volume: "local-lvm:vm-1111-disk-0", Size: 20 << 30}},
		EFI:       &vm.Disk{Volume: "local-lvm:vm-1111-disk-1", Size: 4 << 20},
		ISO:       &vm.Image{Drive: "ide3", Version: "v1.12.6"},
		CloudInit: &vm.CloudInit{Drive: "ide2"},
	}
}

func TestGuest_KeepsItsDisksWhileTheirVolumesExist(t *testing.T) {
	b, hw := newBench(t), hardware()
	g := b.on(hw)
	require.Equal(t, StageOn, b.Machines()[0].Stage)
	require.Len(t, b.cfg.Processes.List(), 1)
	disk, variables := hw.Disks["scsi0"].Content.(*file), hw.EFI.Content.(*file)
	require.NoError(t, os.WriteFile(variables.path, []byte("changed"), 0o600))
	require.NoError(t, g.Shutdown(t.Context()))
	<-g.Done()
	require.Equal(t, StageOff, b.Machines()[0].Stage)

	hw.Disks["scsi0"].Size = 30 << 30
	again := b.on(hw)
	require.Same(t, disk, hw.Disks["scsi0"].Content)
	info, err := os.Stat(disk.path)
	require.NoError(t, err)
	require.Equal(t, int64(30<<30), info.Size())
	kept, err := os.ReadFile(variables.path)
	require.NoError(t, err)
	require.Equal(t, "changed", string(kept))

	again.PowerOff()
	left, err := filepath.Glob(filepath.Join(b.cfg.Dir, "run-*"))
	require.NoError(t, err)
	require.Empty(t, left, "nothing of a run stays")
	require.NoError(t, disk.Close())
	require.NoError(t, disk.Close())
	require.NoFileExists(t, disk.path)
}

func TestGuest_DisksGrowAndComeAndGoWhileItRuns(t *testing.T) {
	b, hw := newBench(t), hardware()
	g := b.on(hw)
	g.Grown("scsi0", 30<<30)
	b.got(`block_resize {"node-name":"drive-scsi0","size":32212254720}`)
	data := &vm.Disk{Volume: "local-lvm:vm-1111-disk-2", Size: 1 << 30, Serial: "data"}
	both := map[string]*vm.Disk{"scsi0": hw.Disks["scsi0"], "scsi1": data}
	g.Plug(both)
	all := b.got(`device_add {"bus":"scsihw0.0","device_id":"drive-scsi1","drive":"drive-scsi1","driver":"scsi-hd",` +
		`"id":"scsi1","scsi-id":1,"serial":"data"}`)
	require.Contains(t, all, data.Content.(*file).path)
	g.Plug(hw.Disks)
	b.got(`blockdev-del {"node-name":"drive-scsi1"}`)
}

func TestGuest_WithABIOSBootsTheKernelUntilItsDiskBoots(t *testing.T) {
	b, hw := newBench(t), hardware()
	hw.UEFI, hw.EFI, hw.Q35 = false, nil, false
	b.on(hw)
	require.Eventually(t, func() bool {
		all, _ := os.ReadFile(b.commands)
		return strings.Count(string(all), "start ") == 2
	}, time.Minute, 10*time.Millisecond, "after the reboot QEMU starts again")
	first, second, _ := strings.Cut(strings.TrimPrefix(b.got("qmp"), "start "), "start ")
	require.Contains(t, first, "-append talos.platform=nocloud")
	require.NotContains(t, second, "-kernel")
}

func TestGuest_WhoseQEMUDoesNotStartIsOffAndSaysWhy(t *testing.T) {
	b := newBench(t)
	b.cfg.Program = "/bin/false"
	g := b.PowerOn(hardware())
	<-g.Done()
	require.Equal(t, StageOff, b.Machines()[0].Stage)
	require.Contains(t, b.Machines()[0].Reason, "QEMU has not started")
	require.Contains(t, b.Machines()[0].Reason, "qemu-infra-cp-1-1111.log")
}

func TestGuest_WithAnotherVersionInItsDriveHasNoImage(t *testing.T) {
	b, hw := newBench(t), hardware()
	hw.ISO.Version = "v1.12.7"
	g := b.on(hw)
	require.NotContains(t, b.got("qmp"), "talos.iso")
	require.Equal(t, "the image in ide3 is of Talos v1.12.7, and built are v1.12.6", g.status().Reason)
}

func TestGuest_BootsTheBuiltTalosOfItsImagesVersion(t *testing.T) {
	b, hw := newBench(t), hardware()
	next := Built{Dir: t.TempDir(), Version: "v1.12.7"}
	b.cfg.Talos = append(b.cfg.Talos, next)
	hw.ISO.Version = next.Version
	b.on(hw)
	require.Contains(t, b.got("qmp"), next.iso())
}

func TestGuest_ItsAgentTellsTheInterfaces(t *testing.T) {
	b, hw := newBench(t), hardware()
	got, ok := b.on(hw).Interfaces()
	require.True(t, ok)
	require.Equal(t, "eth0 bc:24:11:00:01:0b [10.25.11.11/24]", fmt.Sprintf("%s %s %s", got[0].Name, got[0].MAC, got[0].Addresses))
	hw.ID, hw.Agent = 1112, false
	hw.Disks = nil
	_, ok = b.on(hw).Interfaces()
	require.False(t, ok, "without the channel there is none")
}

func TestAgent_ThatDoesNotRunIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, guest := net.Pipe()
		defer guest.Close()
		go func() { _, _ = bufio.NewReader(guest).ReadBytes('\n') }()
		_, err := newAgent(host).interfaces()
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, host.Close())
	})
}

func TestMonitor_AnAnswerCountsThoughQEMUHasEndedSince(t *testing.T) {
	for range 20 {
		ours, qemu := net.Pipe()
		go func() {
			fmt.Fprintln(qemu, `{"return": {}}`)
			_ = qemu.Close()
		}()
		m := &monitor{conn: ours, answers: make(chan answer, 1), ended: make(chan struct{}), sent: json.NewEncoder(io.Discard)}
		m.read(func(answer) {})
		require.NoError(t, m.execute(t.Context(), "qmp_capabilities", nil))
		require.ErrorIs(t, m.execute(t.Context(), "system_powerdown", nil), errMonitorEnded)
	}
}

func TestGuest_IsShutDownWhileQEMUStartsAgain(t *testing.T) {
	b := newBench(t)
	g := newGuest(b.Host, hardware())
	first, qemu := net.Pipe()
	g.monitor = &monitor{conn: first, ended: make(chan struct{})}
	close(g.ready)
	close(g.monitor.ended)
	g.disconnect()
	running := make(chan *monitor)
	go func() { running <- g.running(t.Context()) }()
	select {
	case <-running:
		t.Fatal("QEMU does not run")
	case <-time.After(10 * time.Millisecond):
	}
	g.mu.Lock()
	g.monitor = &monitor{conn: qemu}
	close(g.ready)
	g.mu.Unlock()
	require.NotNil(t, <-running)
}
