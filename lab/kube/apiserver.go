package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	machinery "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"golang.org/x/mod/semver"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/lab/kube/authority"
	"github.com/slipway-platform/slipway/lab/kube/process"
)

// apiServer is a process of the API server. Control planes with the same version and flags share it. Guarded by
// ControlPlane.mu.
type apiServer struct {
	spec    string // version, extraArgs and CAs
	version string // e.g. v1.36.4; empty if its image has none
	address netip.Addr
	log     string // path of its log
	process *process.Supervisor
	users   int           // addresses that answer with it
	ready   chan struct{} // closed once it has answered
	cancel  context.CancelFunc
}

// ProgramVersion is the tag of an image of Kubernetes, e.g. v1.35.8; empty if it has none.
func ProgramVersion(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		return image[colon+1:]
	}
	return ""
}

// stamp is the environment variable that gives a component its version, because its program may be of another patch release: see
// tools/kube.
func stamp(version string) []string {
	if version == "" {
		return nil
	}
	return []string{"LAB_KUBERNETES_VERSION=" + version}
}

// specOf distinguishes the processes of a component.
func specOf(cluster config.ClusterConfig, image string, extra map[string]string) string {
	spec := []string{ProgramVersion(image), authority.Checksum(cluster)}
	for _, flag := range slices.Sorted(maps.Keys(extra)) {
		spec = append(spec, "--"+flag+"="+extra[flag])
	}
	return strings.Join(spec, " ")
}

// Prepare starts a component of a control plane with this configuration, and returns once its program has answered; it calls ended if the
// program ends before. An API server stays, and those that no address needs any more end. The others end, until they lead by Manage.
func (c *ControlPlane) Prepare(ctx context.Context, component string, cfg machinery.Provider, ended func()) error {
	if component != "kube-apiserver" {
		return c.prepareManager(ctx, component, cfg.Cluster(), ended)
	}
	c.mu.Lock()
	s, err := c.apiServer(cfg.Cluster())
	if err == nil {
		c.newest = s.spec
		c.endUnused()
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return awaitStart(ctx, s.process, s.ready, ended)
}

// awaitStart returns once a program has answered. It calls ended if the program ends before.
func awaitStart(ctx context.Context, p *process.Supervisor, ready <-chan struct{}, ended func()) error {
	end := p.Ended()
	for {
		select {
		case <-ready:
			return nil
		case <-end:
			end = nil
			ended()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// apiServer returns the API server of a configuration, and starts it if necessary. The caller holds the lock.
func (c *ControlPlane) apiServer(cluster config.ClusterConfig) (*apiServer, error) {
	spec := specOf(cluster, cluster.APIServer().Image(), oneEach(cluster.APIServer().ExtraArgs()))
	if s := c.servers[spec]; s != nil {
		return s, nil
	}
	if c.stopped {
		return nil, fmt.Errorf("control plane of %s: %w", c.o.Name, errStopped)
	}
	p, err := c.pkiOf(cluster)
	if err != nil {
		return nil, err
	}
	s := &apiServer{spec: spec, version: ProgramVersion(cluster.APIServer().Image()), address: c.freeAddress(), ready: make(chan struct{})}
	s.log = c.apiServerLog(s.address)
	s.process, err = c.start("kube-apiserver", s.log, apiServerFlags(cluster, p.dir, c.o.Loopback, s.address, c.o.Advertise),
		oneEach(cluster.APIServer().ExtraArgs()), s.version)
	if err != nil {
		return nil, err
	}
	c.servers[spec] = s
	var life context.Context
	life, s.cancel = context.WithCancel(c.life)
	direct := rest.CopyConfig(c.admin)
	direct.Host, direct.ServerName = "https://"+netip.AddrPortFrom(s.address, apiPort).String(), c.o.Loopback.String()
	c.work.Go(func() {
		if waitReady(life, direct, "/readyz") == nil {
			close(s.ready)
		}
	})
	return s, nil
}

// apiServerLog is the path of the log of the API server with an address. Each has its own log, for the last lines of a server that does not
// start.
func (c *ControlPlane) apiServerLog(address netip.Addr) string {
	name := "kube-apiserver"
	if first := c.firstAddress(); address != first {
		name += "-" + address.String()
	}
	return c.logOf(name)
}

// KubeletError is why a kubelet of a version may not work with the API servers of the nodes: its minor version is newer than an API
// server's. Kubernetes supports older kubelets only, but does not check; how a newer kubelet fails is not modelled.
func (c *ControlPlane) KubeletError(version string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		if s.users > 0 && semver.Compare(semver.MajorMinor(version), semver.MajorMinor(s.version)) > 0 {
			return fmt.Errorf("kubelet %s is newer than the API server %s of a control plane, which the lab refuses", version, s.version)
		}
	}
	return nil
}

// freeAddress is a loopback address for another API server. Each has its own, because the port is part of the endpoints of the Service
// kubernetes. The caller holds the lock.
func (c *ControlPlane) freeAddress() netip.Addr {
	address := c.firstAddress()
	for slices.ContainsFunc(slices.Collect(maps.Values(c.servers)), func(s *apiServer) bool { return s.address == address }) {
		address = address.Next()
	}
	return address
}

// firstAddress is the address of an API server while there is no other.
func (c *ControlPlane) firstAddress() netip.Addr {
	a := c.o.Loopback.As4()
	a[1] ^= 128
	return netip.AddrFrom4(a)
}

// endUnused stops the API servers that no address answers with, but for the newest. The caller holds the lock.
func (c *ControlPlane) endUnused() {
	if c.stopped {
		return
	}
	for spec, s := range c.servers {
		if s.users > 0 || spec == c.newest {
			continue
		}
		s.cancel()
		delete(c.servers, spec)
		c.processes = slices.DeleteFunc(c.processes, func(p *process.Supervisor) bool { return p == s.process })
		c.work.Go(func() { s.process.Stop(stopGrace) })
	}
}

// anyServer is the address of an API server that answers, for the lab's own programs: they ask any that runs, as a node's programs do by
// KubePrism.
func (c *ControlPlane) anyServer() (netip.AddrPort, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, spec := range slices.Sorted(maps.Keys(c.servers)) {
		s := c.servers[spec]
		select {
		case <-s.ready:
			return netip.AddrPortFrom(s.address, apiPort), true
		default:
		}
	}
	if s := c.servers[c.newest]; s != nil {
		return netip.AddrPortFrom(s.address, apiPort), true
	}
	return netip.AddrPort{}, false
}

// Serve answers on addr:6443 with the API server of this configuration, until stop is called, which closes the open connections. A nil
// configuration is that of the start.
func (c *ControlPlane) Serve(addr netip.Addr, cfg machinery.Provider) (stop func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.sans, addr.String()) {
		c.sans = append(c.sans, addr.String())
	}
	for _, p := range c.pkis {
		if err := p.addSAN(addr.String()); err != nil {
			return nil, err
		}
	}
	cluster := c.o.Config.Cluster()
	if cfg != nil {
		cluster = cfg.Cluster()
	}
	server, err := c.apiServer(cluster)
	if err != nil {
		return nil, err
	}
	target := netip.AddrPortFrom(server.address, apiPort)
	p, err := newPassthrough(addr, apiPort, func() (netip.AddrPort, bool) { return target, true })
	if err != nil {
		return nil, err
	}
	server.users++
	c.listeners[p] = struct{}{}
	if c.gone {
		p.shut()
	}
	return sync.OnceFunc(func() {
		p.stop()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, p)
		server.users--
		c.endUnused()
	}), nil
}

// errStopped is the error of a control plane that has ended.
var errStopped = errors.New("stopped")
