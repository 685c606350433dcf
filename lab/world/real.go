package world

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/lab/ca"
	"github.com/slipway-platform/slipway/lab/control"
	"github.com/slipway-platform/slipway/lab/network"
	"github.com/slipway-platform/slipway/lab/qemu"
	"github.com/slipway-platform/slipway/lab/registry"
)

// imagesHost is the name of the server that answers for every name that no other server has.
const imagesHost = "registry.lab.internal"

// realMachines are VMs that run a real Talos in QEMU, with their special needs: DNS, the time, and images.
type realMachines struct {
	built []qemu.Built // that machines boot, and can be upgraded to
	host  *qemu.Host   // nil before start
}

// openReal reads built Talos: names of tools, or folders, with commas between them.
func (w *World) openReal(names string) (*realMachines, error) {
	real := &realMachines{}
	errs := []error{qemu.Check()}
	for name := range strings.SplitSeq(names, ",") {
		path := w.Tools.Programs[name]
		if path == "" {
			if !strings.Contains(name, "/") {
				return nil, fmt.Errorf("the Talos %q is not built; build it: lab tools %s", name, name)
			}
			path = name
		}
		built, err := qemu.Open(path)
		real.built, errs = append(real.built, built), append(errs, err)
	}
	return real, errors.Join(errs...)
}

// authority is the only CA that every built Talos trusts.
func (r *realMachines) authority() (*ca.Authority, error) {
	blocks, err := os.ReadFile(r.built[0].CA())
	if err != nil {
		return nil, fmt.Errorf("lab CA: %w", err)
	}
	return ca.Load(blocks)
}

// start makes QEMU ready for VMs.
func (r *realMachines) start(w *World) {
	r.host = qemu.New(qemu.Config{
		Dir: w.Home.Machines(), Logs: w.Home.Logs(), Talos: r.built, Taps: w.link, Processes: w.processes, Log: w.Log,
	})
}

func (r *realMachines) close() {
	if r.host != nil {
		r.host.Close()
	}
}

// withImages adds the registry of the images: at every name that another server has, for the paths of the images, and a server for all
// other names.
func (r *realMachines) withImages(hosts []host) ([]host, error) {
	var lists []string
	for _, built := range r.built {
		lists = append(lists, built.Images())
	}
	images, err := registry.OpenImages(lists...)
	if err != nil {
		return nil, err
	}
	all := host{port: "443", what: "container images", handler: images, owns: images.Owns}
	for _, h := range slices.Clone(hosts) {
		if h.port == all.port && h.handler != nil && !h.private {
			all.name = h.name
			hosts = join(hosts, all)
		}
	}
	all.name = imagesHost
	return append(hosts, all), nil
}

// serve starts DNS and the time. names are the addresses of the servers.
func (r *realMachines) serve(ctx context.Context, w *World, names map[string]netip.Addr) error {
	known := network.Names{Hosts: map[string][]netip.Addr{}, Other: names[imagesHost]}
	for name, address := range names {
		known.Hosts[strings.ToLower(name)] = []netip.Addr{address}
	}
	asked, err := w.asked()
	if err != nil {
		return err
	}
	for _, at := range asked {
		if err := network.ServeDNS(ctx, at, known, w.Log); err != nil {
			return err
		}
	}
	for _, at := range append(asked, known.Other) {
		if err := network.ServeTime(ctx, at, w.Log); err != nil {
			return err
		}
	}
	return nil
}

// asked are the addresses at which machines ask for names and the time: of the gateways, and of the servers in the stack files. Those of
// the servers are on the link then.
func (w *World) asked() (out []netip.Addr, err error) {
	for _, stack := range w.stacks {
		for _, gateway := range stack.Network.Gateways() {
			out = append(out, gateway.Addr())
		}
		for _, server := range stack.Network.Servers() {
			if slices.Contains(out, server) {
				continue
			}
			if err := w.link.Add(prefix(server, server.BitLen())); err != nil {
				return nil, err
			}
			out = append(out, server)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out), nil
}

// describe adds what QEMU knows about a machine.
func (r *realMachines) describe(out *control.VM) {
	machines := r.host.Machines()
	if i := slices.IndexFunc(machines, func(m qemu.Status) bool { return m.VMID == out.ID }); i >= 0 {
		m := machines[i]
		out.Stage, out.Reason, out.Addresses, out.Log = string(m.Stage), m.Reason, texts(m.Addresses), m.Console
	}
}
