package proxmox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
)

// hardware returns the properties of a VM with a network card and some disks on local-lvm, which have these sizes in GiB.
func hardware(memory, vlan float64, disks ...float64) resource.PropertyMap {
	list := []any{}
	for i, size := range disks {
		list = append(list, map[string]any{"interface": []string{"scsi0", "scsi1"}[i], "size": size, "datastoreId": "local-lvm"})
	}
	card := map[string]any{"bridge": "vmbr0", "vlanId": vlan}
	return resource.NewPropertyMapFromMap(map[string]any{
		"nodeName": "pve1", "memory": map[string]any{"dedicated": memory}, "cpu": map[string]any{"cores": 4.0},
		"scsiHardware": "virtio-scsi-single", "networkDevices": []any{card}, "disks": list,
	})
}

// on returns the properties with all disks on another datastore.
func on(datastore string, properties resource.PropertyMap) resource.PropertyMap {
	for _, disk := range properties["disks"].ArrayValue() {
		disk.ObjectValue()["datastoreId"] = resource.NewProperty(datastore)
	}
	return properties
}

func seenWith(changes map[string]string) reclaim.Seen {
	options := map[string]string{"memory": "8192", "cores": "4", "scsihw": "virtio-scsi-single", "net0": "vmbr0", "scsi0": "64",
		"scsi0 on": "local-lvm"}
	for option, value := range changes {
		if options[option] = value; value == "" {
			delete(options, option)
		}
	}
	return reclaim.Seen{Node: "pve1", Options: options}
}

func TestCheckState_RefusesAVMThatIsNotAsTheStateSays(t *testing.T) {
	node := worker1(declared(t))
	const end = ": an update or a migration has failed, or somebody has changed the VM; run pulumi refresh, then up again"
	is, tagged, grown, more := hardware(8192, 0, 64), hardware(8192, 7, 64), hardware(8192, 0, 99), hardware(8192, 0, 64, 9)
	large, moved := hardware(2097152, 0, 64), on("fast", hardware(8192, 0, 64))
	with := func(option, value string) reclaim.Seen { return seenWith(map[string]string{option: value}) }
	for name, one := range map[string]struct {
		given, stored, becomes resource.PropertyMap
		seen                   reclaim.Seen
		says                   string // "" if the VM is updated
	}{
		"nothing has happened":                     {is, is, large, seenWith(nil), ""},
		"an interrupted update has done it":        {is, is, large, with("memory", "2097152"), ""},
		"a disk is added":                          {is, is, more, seenWith(nil), ""},
		"a disk of an interrupted update":          {is, is, more, with("scsi1", "9"), ""},
		"an option has Proxmox VE's default":       {is, is, is, with("scsihw", ""), ""},
		"an interrupted update has moved the disk": {is, is, moved, with("scsi0 on", "fast"), ""},
		"a disk has no datastore":                  {is, is, moved, with("scsi0 on", ""), ""},
		"the VM does not exist":                    {is, is, is, reclaim.Seen{}, ""},
		"a migration was refused":                  {is, is, is, reclaim.Seen{Node: "pve2"}, "is on Proxmox node pve2, and the state says pve1"},
		"more memory was refused":                  {large, large, large, seenWith(nil), "has memory of 8192 MiB, and the state says 2097152"},
		"another VLAN was refused":                 {tagged, tagged, tagged, seenWith(nil), "has net0 vmbr0, and the state says vmbr0, VLAN 7"},
		"a bigger disk was refused":                {grown, grown, grown, seenWith(nil), "has scsi0 of 64 GiB, and the state says 99"},
		"another disk was refused":                 {more, more, more, seenWith(nil), "has no scsi1, and the state says 9"},
		"a move to a full datastore has failed":    {moved, moved, moved, seenWith(nil), "has scsi0 on local-lvm, and the state says fast"},
		"somebody has moved a disk":                {is, is, is, with("scsi0 on", "nas"), "has scsi0 on nas, and the state says local-lvm"},
		"somebody has given it memory":             {is, is, is, with("memory", "9000"), "has memory of 9000 MiB, and the state says 8192"},
		"an update has stored what somebody has changed": {
			is, large, is, with("memory", "2097152"), "was to have memory of 8192 MiB, and the state says 2097152"},
	} {
		err := checkState(node, &pulumi.ResourceHookArgs{OldInputs: one.given, OldOutputs: one.stored, NewInputs: one.becomes}, one.seen)
		if one.says == "" {
			assert.NoError(t, err, name)
			continue
		}
		require.Error(t, err, name)
		assert.Equal(t, node.Name+": VM 1121 "+one.says+end, err.Error(), name)
	}
}

// The provider would detach a volume of a CSI driver, or make it the declared disk of that number.
func TestNotOurs_NamesADiskThatIsNotDeclared(t *testing.T) {
	node := worker1(declared(t))
	is, grown, more := hardware(8192, 0, 64), hardware(8192, 0, 99), hardware(8192, 0, 64, 9)
	for name, one := range map[string]struct {
		becomes    resource.PropertyMap
		disk, size string // that the VM has beside scsi0
		foreign    bool
		refused    bool
	}{
		"another disk grows":                         {grown, "scsi1", "5", true, true},
		"a disk of the number is added":              {more, "scsi1", "5", false, true},
		"a volume has the number and the size of it": {more, "scsi1", "9", true, true},
		"an interrupted update has added it":         {more, "scsi1", "9", false, false},
		"a disk is added beside":                     {more, "scsi2", "5", false, true},
		"one is on another bus":                      {grown, "virtio0", "5", false, true},
		"a network card":                             {grown, "net1", "vmbr1", false, false},
	} {
		change := &pulumi.ResourceHookArgs{OldInputs: is, OldOutputs: is, NewInputs: one.becomes}
		seen := seenWith(map[string]string{one.disk: one.size})
		if one.foreign {
			seen.Foreign = []string{one.disk}
		}
		says := ""
		if one.refused {
			says = "VM 1121 has a disk " + one.disk + ", which is neither declared nor in the state, and the Proxmox provider would take it out " +
				"of the running VM when it changes the others; a drain detaches volumes of a CSI driver; detach any other disk in Proxmox VE"
		}
		assert.Equal(t, says, notOurs(node, change, seen), name)
	}
}

// Everything that checkState compares is declared under the names that it looks for.
func TestOptionsOf_FindsWhatTheProgramDeclares(t *testing.T) {
	vm := up(t).Resource(t, "infra-infra-worker-1-vm")
	options := optionsOf(mappable(vm.Inputs))
	for _, option := range []string{"memory", "cores", "scsihw", "net0", "scsi0", "scsi0 on"} {
		assert.NotEmpty(t, options[option], option)
	}
}

func TestErrNotSeen_NamesWhatToDoWhileAProxmoxNodeIsAwayAndWhenItIsGone(t *testing.T) {
	err := errNotSeen(worker1(declared(t)), errors.New("595 No route to host"))
	assert.ErrorContains(t, err, "595 No route to host; if its Proxmox node is away for long, name the machine in lifecycle.skip; "+
		"if it is gone "+
		"for good: docs/nodes.md, A Proxmox node that is gone")
	text, readErr := os.ReadFile(filepath.Join("..", "..", "..", "docs", "nodes.md"))
	require.NoError(t, readErr)
	assert.True(t, strings.Contains(string(text), "\n## A Proxmox node that is gone\n"), "the section that the message names")
}
