//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// moreDisk gives one worker a bigger disk, and another one a disk more.
var moreDisk = run{
	rows: []row{{
		cell: "`nodePools[].disk`, `nodePools[].dataDisks`", does: "drain, node by node; the running VM gets the space or the disk",
		edit: func(s settings) {
			s.pool(1)["disk"] = "110GiB"
			s.pool(2)["dataDisks"] = []any{map[string]any{"name": "scratch", "size": "10GiB"}}
		},
	}},
	effect: effect{rebooted: []string{"infra-worker-1"}, drained: []string{"infra-spare-1"}},
	says:   `cannot ignore changes in added or removed elements of the path: "disks\[1\]\.speed"`,
}

// manyDatastores gives the last pool another datastore than the others, and all machines their image from a shared one: the lab's Proxmox
// VE has the datastores that stack files name when it starts, and its own.
func (s settings) manyDatastores() {
	s.set("proxmox", map[string]any{"datastores": map[string]any{"iso": "nas", "isoShared": true}})
	s.pool(2)["datastore"] = "fast"
}

// fullDatastore moves the disk of a worker to a datastore that is full at first. The provider has then stored what was declared, and the VM
// is off. A person does what docs/nodes.md says.
func fullDatastore(load *load) func(*lab) {
	const name = "infra-worker-1"
	return func(l *lab) {
		before, began := l.survey(), time.Now()
		l.must("fault", "datastore-full", "fast")
		editStackFile(l.t, l.stackFile("infra"), func(s settings) { s.pool(1)["datastore"] = "fast" })
		l.fails(regexp.QuoteMeta("storage migration failed: rbd create"))
		l.must("fault", "--off", "datastore-full", "fast")
		l.fails(name + `: VM 1121 has scsi0 on local-lvm, and the state says fast: .*; run pulumi refresh, then up again`)
		require.Equal(l.t, "efidisk0 local-lvm, ide2 local-lvm, scsi0 local-lvm", l.datastores(before.machines[name]))

		var upid string
		l.proxmox("POST", fmt.Sprintf("nodes/%s/qemu/1121/status/start", before.machines[name].Host), &upid)
		l.hands++
		l.pulumi("refresh", "--yes", "--skip-preview", "--stack", "infra")
		l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
		assert.Equal(l.t, "efidisk0 local-lvm, ide2 local-lvm, scsi0 fast", l.datastores(before.machines[name]))
		effect{rebooted: []string{name}}.check(l.t, before, l.survey(), load.served(l.t, began))
	}
}

// otherDatastore moves the disks of the control planes, and those of a machine with a data disk. The other worker keeps its datastore.
// Machines keep the image in their drives, which is downloaded to another datastore.
var otherDatastore = run{
	rows: []row{{
		cell: "`proxmox.datastores`, `nodePools[].datastore`: another datastore", does: "for disks: reboot, after a copy of the disks",
		edit: func(s settings) {
			s.set("proxmox", map[string]any{"datastores": map[string]any{"disks": "fast"}})
			s.pool(1)["datastore"], s.pool(2)["datastore"] = "fast", "local-lvm"
		},
		arrived: func(l *lab) bool {
			const moved = "efidisk0 local-lvm, ide2 local-lvm, scsi0 fast"
			machines := l.machines()
			for name, want := range map[string]string{
				"infra-cp-1": moved, "infra-cp-2": moved, "infra-cp-3": moved,
				"infra-spare-1": "efidisk0 fast, ide2 fast, scsi0 local-lvm, scsi1 local-lvm",
			} {
				if has := l.datastores(machines[name]); has != want {
					l.t.Logf("%s has %s", name, has)
					return false
				}
			}
			return slices.ContainsFunc(l.images(), func(image string) bool { return strings.Contains(image, "/local:iso/") })
		},
		stays: func(l *lab) string { // no disk stays behind
			disks := slices.DeleteFunc(l.status().Volumes, func(volume string) bool { return strings.Contains(volume, "/local:iso/") })
			return fmt.Sprint(len(disks))
		},
	}},
	effect: effect{rebooted: []string{"infra-cp-1", "infra-cp-2", "infra-cp-3", "infra-spare-1"}},
}

// ofDisks matches the drives of a VM that are on the datastore of its disks when it is created.
var ofDisks = regexp.MustCompile(`^(scsi\d+|efidisk0|ide2)$`)

// datastores returns the drives of a VM, each with its datastore.
func (l *lab) datastores(of machine) string {
	l.t.Helper()
	var config map[string]any
	l.proxmox("GET", fmt.Sprintf("nodes/%s/qemu/%d/config?current=1", of.Host, of.ID), &config)
	var drives []string
	for option, value := range config {
		if ofDisks.MatchString(option) {
			datastore, _, _ := strings.Cut(fmt.Sprint(value), ":")
			drives = append(drives, option+" "+datastore)
		}
	}
	slices.Sort(drives)
	return strings.Join(drives, ", ")
}
