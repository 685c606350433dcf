package vmchange

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/stretchr/testify/assert"
)

func TestLists_NameInputsOfTheVM(t *testing.T) {
	known := map[string]bool{}
	args := reflect.TypeFor[vm.VirtualMachineState]()
	for i := range args.NumField() {
		known[lowered(args.Field(i).Name)] = true
	}
	assert.Greater(t, len(known), 40)
	for _, input := range slices.Concat(rebooting, replacing) {
		assert.True(t, known[input], input)
	}
	assert.True(t, slices.IsSorted(rebooting))
}

// lowered returns the name of an input by the name of its field in the SDK.
func lowered(field string) string { return strings.ToLower(field[:1]) + field[1:] }

func TestRebooting_NamesWhatReboots(t *testing.T) {
	inputs := func(memory int, discard, tag string) map[string]any {
		return map[string]any{
			"memory": map[string]any{"dedicated": memory, "__defaults": []any{tag}}, "tags": []any{tag}, "nodeName": tag, "description": tag,
			"disks": []any{map[string]any{"interface": "scsi0", "size": 20, "discard": discard, "speed": tag, "__defaults": []any{tag}}},
		}
	}
	assert.Empty(t, Rebooting(inputs(4096, "ignore", "a"), inputs(4096, "ignore", "b")),
		"tags, host, description, and what Pulumi has filled in")
	assert.Equal(t, []string{"disks", "memory"}, Rebooting(inputs(4096, "ignore", "a"), inputs(8192, "on", "a")))
	assert.Empty(t, Rebooting(nil, map[string]any{"usbs": []any{}, "vga": map[string]any{}}))
	assert.Equal(t, []string{"disks", "memory"}, Rebooting(nil, inputs(1, "ignore", "a")))

	ignored := inputs(4096, "ignore", "a")
	ignored["memory"].(map[string]any)["hugepages"] = nil
	assert.Empty(t, Rebooting(ignored, inputs(4096, "ignore", "a")), "Pulumi writes null for a property whose changes it ignores")
}

// A plugin of another release has other defaults. Without this, its first run would drain every node.
func TestRebooting_TakesNoDefaultOfAnotherReleaseForAChange(t *testing.T) {
	older := func() map[string]any {
		return map[string]any{
			"__defaults": []any{"vga", "tpmState"}, "tpmState": nil, "vga": map[string]any{"__defaults": []any{"type"}, "type": "std"},
			"cpu":            map[string]any{"__defaults": []any{"units", "numa"}, "cores": 4.0, "units": 1024.0, "numa": false},
			"networkDevices": []any{map[string]any{"__defaults": []any{"mtu"}, "mtu": 0.0, "vlanId": 40.0}},
		}
	}
	newer := func() map[string]any {
		return map[string]any{
			"__defaults":     []any{"rngs"},
			"cpu":            map[string]any{"__defaults": []any{"numa"}, "cores": 4.0, "numa": false},
			"networkDevices": []any{map[string]any{"__defaults": []any{"queues"}, "queues": 0.0, "vlanId": 40.0}},
		}
	}
	assert.Empty(t, Rebooting(older(), newer()))
	assert.Empty(t, Rebooting(newer(), older()))

	declared := older()
	declared["cpu"] = map[string]any{"__defaults": []any{"numa"}, "cores": 4.0, "numa": false, "units": 2048.0}
	declared["vga"], declared["__defaults"] = map[string]any{"type": "serial0"}, []any{"tpmState"}
	assert.Equal(t, []string{"cpu", "vga"}, Rebooting(newer(), declared))
	assert.Equal(t, []string{"cpu", "vga"}, Rebooting(declared, newer()))

	untagged := older()
	untagged["networkDevices"] = []any{map[string]any{"__defaults": []any{"mtu", "vlanId"}, "mtu": 0.0, "vlanId": 0.0}}
	assert.Equal(t, []string{"networkDevices"}, Rebooting(older(), untagged), "a value that a default replaces")
	stated := newer()
	stated["cpu"] = map[string]any{"__defaults": []any{}, "cores": 4.0, "numa": false}
	assert.Empty(t, Rebooting(newer(), stated), "a default that is stated now")
}

func TestGrown_NamesTheDisksThatBecomeBigger(t *testing.T) {
	disks := func(sizes ...float64) map[string]any {
		var list []any
		for i, size := range sizes {
			list = append(list, map[string]any{"interface": fmt.Sprintf("scsi%d", i), "size": size})
		}
		return map[string]any{"disks": list}
	}
	assert.Equal(t, []string{"scsi0", "scsi2"}, Grown(disks(20, 50, 50), disks(30, 50, 60, 10)))
	assert.Empty(t, Grown(disks(20, 50), disks(20, 50, 10)), "Talos takes a new disk while it runs")
	assert.Empty(t, Grown(disks(20, 50), disks(10)))
	assert.Empty(t, Grown(nil, disks(20)))
}

func TestNewMAC_IsThatOfACardWhichHadAnother(t *testing.T) {
	card := func(mac string, bridge string) map[string]any {
		return map[string]any{"networkDevices": []any{map[string]any{"macAddress": mac, "bridge": bridge}}}
	}
	assert.Equal(t, "BC:24:11:00:01:39", NewMAC(card("BC:24:11:00:01:29", "vmbr0"), card("BC:24:11:00:01:39", "vmbr0")))
	assert.Empty(t, NewMAC(card("BC:24:11:00:01:29", "vmbr0"), card("bc:24:11:00:01:29", "vmbr1")))
	assert.Empty(t, NewMAC(nil, card("BC:24:11:00:01:39", "vmbr0")), "the former one is not known")
	assert.Empty(t, NewMAC(card("BC:24:11:00:01:29", "vmbr0"), nil))
}

func TestReplaces_NamesNoChangeThatTheProviderMakesInPlace(t *testing.T) {
	for input, replaces := range map[string]bool{"vmId": true, "template": true, "tpmState": false, "efiDisk": false, "nodeName": false} {
		assert.Equal(t, replaces, Replaces(input), input)
	}
}
