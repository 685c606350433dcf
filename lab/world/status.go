package world

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/slipway-platform/slipway/lab/control"
	"github.com/slipway-platform/slipway/lab/talos"
)

// Status returns everything that exists in the lab.
func (w *World) Status() control.Status {
	s := control.Status{Started: w.started, Endpoints: w.endpoints, Faults: w.faults.List()}
	s.Memory, s.PeakMemory = w.memory.get()
	for _, cluster := range w.proxmox {
		s.Volumes = append(s.Volumes, cluster.Volumes()...)
		for _, vm := range cluster.VMs() {
			out := control.VM{ID: vm.ID, Name: vm.Name, Host: vm.Node, Status: vm.Status, Stage: "off", Log: filepath.Join(w.Home.Logs(), "lab.log")}
			if w.real != nil {
				w.real.describe(&out)
			} else {
				w.describe(&out)
			}
			s.VMs = append(s.VMs, out)
		}
	}
	for _, p := range w.processes.List() {
		s.Processes = append(s.Processes, control.Process{
			Name: p.Name, Cluster: p.Cluster, Node: p.Node, PID: p.PID, Log: p.Log, RSS: rss(p.PID),
		})
	}
	return s
}

// describe adds what the simulator knows about a machine.
func (w *World) describe(out *control.VM) {
	machines := w.site.Machines()
	i := slices.IndexFunc(machines, func(m talos.MachineStatus) bool { return m.VMID == out.ID })
	if i < 0 {
		return
	}
	m := machines[i]
	out.Stage, out.Reason, out.Cluster, out.Addresses = string(m.Stage), m.Reason, m.Cluster, texts(m.Addresses)
}

// texts are addresses without the lengths of their prefixes.
func texts(addresses []netip.Prefix) (out []string) {
	for _, a := range addresses {
		out = append(out, a.Addr().String())
	}
	return out
}

// rss is the resident memory of a process in bytes; 0 if it has ended.
func rss(pid int) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(data), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}
