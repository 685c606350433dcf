//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// proxmox sends a request to the simulated Proxmox VE, as a person would, and decodes the data of the reply. parameters are KEY=VALUE.
func (l *lab) proxmox(method, path string, data any, parameters ...string) {
	l.t.Helper()
	const script = `exec curl --silent --show-error --fail --request "$1" --header "Authorization: PVEAPIToken=$PROXMOX_VE_API_TOKEN" ` +
		`"https://pve.home.arpa:8006/api2/json/$2" "${@:3}"`
	argv := []string{"bash", "-c", script, "bash", method, path}
	for _, parameter := range parameters {
		argv = append(argv, "--data-urlencode", parameter)
	}
	out := l.in(argv...)
	require.NoError(l.t, json.Unmarshal([]byte(out), &struct{ Data any }{data}), "%s", out)
}

// machine is what a VM and its node are. A move changes only the host, and leaves a drive empty that had a local image.
type machine struct {
	ID    int    // VM id
	Host  string // Proxmox node
	Drive string // CD drive with the boot image

	// SMBIOS, Generation and Meta are set when Proxmox VE creates the VM.
	SMBIOS, Generation, Meta string
	// UID and Boot are those of the node in Kubernetes.
	UID, Boot string
}

// moved returns the machine on another host. An image that only its host has is not in the drive any more.
func (m machine) moved(host string) machine {
	if strings.Contains(m.Drive, "-"+m.Host+"-") {
		m.Drive = "none"
	}
	m.Host = host
	return m
}

// machines returns the machines of the infra cluster by name.
func (l *lab) machines() map[string]machine {
	l.t.Helper()
	all := map[string]machine{}
	var vms []struct {
		VMID       int
		Name, Node string
	}
	l.proxmox("GET", "cluster/resources?type=vm", &vms)
	nodes := l.kubectl("get", "nodes", "--output",
		`jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.nodeInfo.bootID}{"\n"}{end}`)
	for line := range strings.Lines(nodes) {
		fields := strings.Fields(line)
		require.Len(l.t, fields, 3, "node, uid, boot id")
		for _, vm := range vms {
			if vm.Name != fields[0] {
				continue
			}
			var config struct{ SMBIOS1, VMGenID, Meta, IDE0 string }
			l.proxmox("GET", fmt.Sprintf("nodes/%s/qemu/%d/config", vm.Node, vm.VMID), &config)
			drive, _, _ := strings.Cut(config.IDE0, ",")
			all[vm.Name] = machine{
				ID: vm.VMID, Host: vm.Node, Drive: drive,
				SMBIOS: config.SMBIOS1, Generation: config.VMGenID, Meta: config.Meta, UID: fields[1], Boot: fields[2],
			}
			require.NotEmpty(l.t, config.SMBIOS1+config.VMGenID+config.Meta)
		}
	}
	require.NotEmpty(l.t, all)
	return all
}

// task is a task of Proxmox VE.
type task struct {
	UPID, Node, Type, ID, Status string
}

// tasks returns all tasks of Proxmox VE of some types; without types, of all.
func (l *lab) tasks(types ...string) []task {
	l.t.Helper()
	var nodes []struct{ Node string }
	l.proxmox("GET", "nodes", &nodes)
	var all []task
	for _, node := range nodes {
		var tasks []task
		l.proxmox("GET", "nodes/"+node.Node+"/tasks?source=all&limit=1000", &tasks)
		all = append(all, tasks...)
	}
	if len(types) > 0 {
		all = slices.DeleteFunc(all, func(t task) bool { return !slices.Contains(types, t.Type) })
	}
	return all
}

// machineTasks leaves out what is done with boot images.
func (l *lab) machineTasks() []task {
	l.t.Helper()
	return slices.DeleteFunc(l.tasks(), func(t task) bool { return t.Type == "download" || t.Type == "imgdel" })
}

// images returns the volumes with boot images.
func (l *lab) images() []string {
	l.t.Helper()
	return slices.DeleteFunc(l.status().Volumes, func(volume string) bool { return !strings.Contains(volume, ":iso/") })
}
