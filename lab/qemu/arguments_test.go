package qemu

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/vm"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with a file.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

// lines writes each option with its value in a line.
func lines(args []string) string {
	return strings.TrimPrefix(strings.ReplaceAll("\n"+strings.Join(args, "\n"), "\n-", "\x00-"), "\x00")
}

func TestArguments_AreThoseOfTheHardware(t *testing.T) {
	product := hardware()
	product.NICs = []vm.NIC{{MAC: "BC:24:11:00:01:0B", Bridge: "vmbr0"}}
	product.Disks["scsi1"] = &vm.Disk{Serial: "data"}
	other := hardware()
	other.UEFI, other.EFI, other.Q35, other.Agent, other.UUID, other.CloudInit = false, nil, false, false, "", nil
	other.BootOrder = []string{"sata0", "virtio1", "ide3"}
	other.Disks = map[string]*vm.Disk{"sata0": {}, "virtio1": {}, "ide0": {}}
	for name, hw := range map[string]vm.Hardware{"uefi": product, "bios": other} {
		p := parts{disks: map[string]string{}, iso: "/talos/talos.iso", console: "/logs/a,b.log"}
		for key := range hw.Disks {
			p.disks[key] = "/disks/" + key
		}
		for range hw.NICs {
			p.taps = append(p.taps, "tap1")
		}
		if hw.CloudInit != nil {
			p.cloudInit = "/run/cloudinit.iso"
		}
		if hw.UEFI {
			p.firmware, p.variables = Firmware{Code: "/ovmf/code.fd"}, "/disks/variables.fd"
		} else {
			p.kernel = &kernel{"/talos/vmlinuz", "/talos/initramfs.cpio", "talos.platform=nocloud console=ttyS0"}
		}
		text := strings.ReplaceAll(lines(arguments(hw, p)), "\n", " ")
		golden(t, name+".txt", strings.ReplaceAll(text, "\x00", "\n")+"\n")
	}
}

func TestCloudInit_IsThatOfProxmoxVE(t *testing.T) {
	hw := hardware()
	hw.NICs = []vm.NIC{{MAC: "BC:24:11:00:01:0B"}}
	hw.CloudInit = &vm.CloudInit{
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.25.11.11/20"), netip.MustParsePrefix("fd25:11::11/64")},
		Gateways:  []netip.Addr{netip.MustParseAddr("10.25.11.1"), netip.MustParseAddr("fd25:11::1")},
		DNS:       []netip.Addr{netip.MustParseAddr("10.25.11.1")}, Search: []string{"home.arpa"},
	}
	var text strings.Builder
	for _, name := range []string{"meta-data", "network-config", "user-data"} {
		text.WriteString("== " + name + "\n" + cloudInitFiles(hw)[name])
	}
	golden(t, "cloudinit.txt", text.String())
	hw.CloudInit = &vm.CloudInit{}
	require.Equal(t, "version: 1\nconfig:\n", cloudInitFiles(hw)["network-config"], "with DHCP it has no address")
}
