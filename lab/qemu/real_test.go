package qemu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/vm"
)

// bootSector writes the text at its end to the first serial port, and then waits for ever.
const bootSector = "\x31\xc0" + // xor ax, ax
	"\x8e\xd8" + // mov ds, ax
	"\xbe\x15\x7c" + // mov si, text
	"\xba\xf8\x03" + // mov dx, COM1
	"\xac" + // next: lodsb
	"\x84\xc0" + // test al, al
	"\x74\x03" + // jz end
	"\xee" + // out dx, al
	"\xeb\xf8" + // jmp next
	"\xf4" + // end: hlt
	"\xeb\xfd" + // jmp end
	greeting

const greeting = "a guest runs"

// TestQEMU_BootsADiskThatGrowsAndComesBack runs the real QEMU.
func TestQEMU_BootsADiskThatGrowsAndComesBack(t *testing.T) {
	if err := Check(); err != nil {
		t.Skip(err)
	}
	dir := shortDir(t)
	raw, path := filepath.Join(dir, "raw"), filepath.Join(dir, "disk.qcow2")
	sector := append([]byte(bootSector), make([]byte, 510-len(bootSector))...)
	require.NoError(t, os.WriteFile(raw, append(sector, 0x55, 0xaa), 0o600))
	require.NoError(t, image(t.Context(), "convert", "-f", "raw", "-O", "qcow2", raw, path))
	h := New(Config{Dir: filepath.Join(dir, "vm"), Logs: filepath.Join(dir, "logs"), Taps: noTaps{}})
	defer h.Close()
	hw := hardware()
	hw.UEFI, hw.EFI, hw.Q35, hw.ISO, hw.MemoryMiB, hw.Cores = false, nil, false, nil, 64, 1
	hw.Disks = map[string]*vm.Disk{"scsi0": {Size: 1 << 20, Content: &file{path}}}
	greetings := func(n int) func() bool {
		return func() bool {
			text, _ := os.ReadFile(h.console(hw))
			return strings.Count(string(text), greeting) == n
		}
	}
	g := h.PowerOn(hw).(*guest)
	require.Eventually(t, greetings(1), time.Minute, 20*time.Millisecond, "%+v", h.Machines())
	m := g.running(t.Context())
	require.NoError(t, m.execute(t.Context(), "block_resize", map[string]any{"node-name": "drive-scsi0", "size": 2 << 20}))
	data := &vm.Disk{Volume: "data", Size: 1 << 20}
	require.NoError(t, g.plug(t.Context(), m, "scsi1", data))
	require.FileExists(t, data.Content.(*file).path)
	_, answers := g.Interfaces()
	require.False(t, answers, "nothing in the guest serves the agent's channel")
	g.PowerOff()
	require.Equal(t, StageOff, h.Machines()[0].Stage)

	hw.Disks["scsi0"].Size = 2 << 20
	h.PowerOn(hw)
	require.Eventually(t, greetings(2), time.Minute, 20*time.Millisecond)
}
