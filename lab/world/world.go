// Package world assembles a lab inside its namespaces: the link and the names, the simulated servers, and the machines.
// It is the only package that depends on all others.
package world

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/lab/ca"
	"github.com/slipway-platform/slipway/lab/ceph"
	"github.com/slipway-platform/slipway/lab/connect"
	"github.com/slipway-platform/slipway/lab/control"
	"github.com/slipway-platform/slipway/lab/factory"
	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/home"
	"github.com/slipway-platform/slipway/lab/kube/process"
	"github.com/slipway-platform/slipway/lab/latency"
	"github.com/slipway-platform/slipway/lab/namespace"
	"github.com/slipway-platform/slipway/lab/network"
	"github.com/slipway-platform/slipway/lab/proxmox"
	"github.com/slipway-platform/slipway/lab/stackfile"
	"github.com/slipway-platform/slipway/lab/talos"
	"github.com/slipway-platform/slipway/lab/workload/rook"
	"github.com/slipway-platform/slipway/lab/workload/services"
)

// Options configure a world.
type Options struct {
	Home    *home.Home
	Tools   Tools
	Latency latency.Latencies
	Log     *slog.Logger
}

// World is a running lab, inside its namespaces.
type World struct {
	Options
	settings  home.Settings
	stacks    []stackfile.File
	started   time.Time
	authority *ca.Authority
	private   *ca.Authority // which nothing in the lab trusts by itself
	link      *network.Link
	faults    *fault.Set
	processes *process.Table
	kube      *kubernetes
	site      *talos.Site   // nil with the real Talos
	real      *realMachines // nil with simulated nodes
	factory   *factory.Factory
	proxmox   []*proxmox.Cluster
	endpoints []control.Endpoint
	servers   []*http.Server
	memory    memory

	onePassword *services.Connect // of all clusters
	rook        *rook.Rook        // of all clusters
}

// Start starts the world. It must run in the lab's namespaces. Close ends it.
func Start(ctx context.Context, o Options) (*World, error) {
	w := &World{Options: o, started: time.Now(), faults: &fault.Set{}, processes: &process.Table{}}
	for _, step := range []func(context.Context) error{w.read, w.createCA, w.connect, w.machines, w.serve, w.control} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	go w.memory.sample(ctx)
	return w, nil
}

// Close powers every machine off, ends every process and server, and waits for that.
func (w *World) Close() error {
	for _, c := range w.proxmox {
		c.Close()
	}
	if w.site != nil {
		w.site.Close()
	}
	if w.real != nil {
		w.real.close()
	}
	if w.kube != nil {
		w.kube.close()
	}
	var errs []error
	for _, s := range w.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

func (w *World) read(context.Context) error {
	var err error
	if w.settings, err = w.Home.Settings(); err != nil {
		return err
	}
	if w.stacks, err = stackfile.Find(w.settings.Checkout); err != nil || w.settings.Talos == "" {
		return err
	}
	w.real, err = w.openReal(w.settings.Talos)
	return err
}

// createCA creates the lab's certificate authority, whose certificate is in the file of SSL_CERT_FILE, and a private one.
func (w *World) createCA(context.Context) error {
	var err error
	if w.authority, err = w.newAuthority(); err != nil {
		return err
	}
	if w.private, err = ca.New("Private CA in the Slipway lab"); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(w.Home.CA(), w.authority.PEM(), 0o600), os.WriteFile(w.Home.PrivateCA(), w.private.PEM(), 0o600))
}

// newAuthority returns a new CA, or that of the real Talos, which trusts no other one.
func (w *World) newAuthority() (*ca.Authority, error) {
	if w.real != nil {
		return w.real.authority()
	}
	return ca.New("Slipway lab CA")
}

// connect creates the link, writes the resolver configuration, and makes the checkout read-only.
func (w *World) connect(context.Context) error {
	var err error
	if w.link, err = network.NewLink(); err != nil {
		return err
	}
	for _, stack := range w.stacks {
		for _, gateway := range stack.Network.Gateways() {
			if err := w.link.Add(gateway); err != nil {
				return err
			}
		}
	}
	if err := os.WriteFile(w.Home.Resolv(), []byte("# The lab's names stand in its hosts file; nothing else can be resolved.\n"), 0o600); err != nil {
		return err
	}
	return namespace.ReadOnly(w.settings.Checkout)
}

// machines creates what the VMs run in: the simulator of Talos, or QEMU. No machine is powered on yet.
func (w *World) machines(context.Context) error {
	account, err := connect.OpenAccount(w.Home.OnePassword())
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	for _, stack := range w.stacks {
		if one := stack.OnePassword; one != nil {
			for _, vault := range one.Vaults {
				err := errors.Join(
					account.Require(vault, one.Probe.Item, map[string]string{one.Probe.Field: rand.Text()}),
					account.Require(vault, snapshotItem, w.snapshotKeys()),
				)
				if err != nil {
					return fmt.Errorf("lab: %w", err)
				}
			}
		}
	}
	for _, stack := range w.stacks {
		if stack.StorageVault == "" {
			continue
		}
		// The provider writes the items that matter.
		if err := account.Require(stack.StorageVault, "of the storage", nil); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
	}
	w.onePassword = &services.Connect{Account: account}
	w.rook = &rook.Rook{Ceph: &ceph.World{Dir: w.Home.Ceph(), Recovery: 20 * time.Second, Log: w.Log}}
	w.kube = &kubernetes{world: w, clusters: map[string]*cluster{}, indices: map[string]int{}}
	w.factory = factory.New(w.Log)
	if w.real != nil {
		w.real.start(w)
		return nil
	}
	w.site = talos.New(talos.Config{
		Addresses: w.link, Kubernetes: w.kube, Latency: w.Latency, Faults: w.faults,
		Log: w.Log, Extensions: w.factory.Extensions, Installer: w.installer, Fetch: w.client(),
	})
	return nil
}

// installer returns the extensions of an installer image. In the lab, only the image factory has installers.
func (w *World) installer(image string) ([]string, error) {
	host, _, _ := strings.Cut(image, "/")
	if host != factoryHost {
		return nil, fmt.Errorf("failed to do request: Head %q: dial tcp: lookup %s: no such host", "https://"+host+"/v2/", host)
	}
	return w.factory.Installer(image)
}

// client is the HTTPS client of a simulated machine.
func (w *World) client() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.authority.PEM())
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

// listen serves HTTPS on an address, with the authority's certificate of the name that the client asks for. It supports only
// HTTP/1.1: Proxmox VE puts its error texts into the status line, which HTTP/2 does not have.
func (w *World) listen(address string, handler http.Handler, authority *ca.Authority) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	server := &http.Server{
		Handler: handler, TLSConfig: authority.Server(), ReadHeaderTimeout: 30 * time.Second,
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ErrorLog:     slog.NewLogLogger(w.Log.Handler(), slog.LevelDebug),
	}
	w.servers = append(w.servers, server)
	go func() {
		if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
			w.Log.Error("server ended", "address", address, "err", err)
		}
	}()
	return nil
}

// control serves the API for commands outside the lab.
func (w *World) control(context.Context) error {
	if err := os.Remove(w.Home.Socket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("lab: %w", err)
	}
	l, err := net.Listen("unix", w.Home.Socket())
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	server := &http.Server{Handler: control.Handler(w.Status, w.faults)}
	w.servers = append(w.servers, server)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			w.Log.Error("control ended", "err", err)
		}
	}()
	return nil
}
