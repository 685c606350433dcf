package world

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/lab/ca"
	"github.com/slipway-platform/slipway/lab/control"
	"github.com/slipway-platform/slipway/lab/namespace"
	"github.com/slipway-platform/slipway/lab/proxmox"
	"github.com/slipway-platform/slipway/lab/registry"
	"github.com/slipway-platform/slipway/lab/registry/charts"
)

// Hosts that every stack uses, whatever its file declares.
const (
	factoryHost = "factory.talos.dev"
	ciliumHost  = "helm.cilium.io"
)

// serverNet is the network of the servers' addresses. RFC 2544 reserves it for tests of network devices.
var serverNet = netip.MustParsePrefix("198.18.0.0/24")

// host is a name or an address that a simulated server answers for.
type host struct {
	name    string // as in the stack files, without port
	port    string
	what    string
	handler http.Handler // nil for another protocol than HTTPS
	serve   func(context.Context, net.Listener) error
	owns    func(path string) bool // the paths that the handler answers at a name that another server has, too; nil means none
	private bool                   // its certificate is of the private CA
}

// join adds a host. An existing server with this name and port keeps all paths that the new server does not own.
func join(hosts []host, h host) []host {
	i := slices.IndexFunc(hosts, func(o host) bool { return o.name == h.name && o.port == h.port })
	if i < 0 {
		return append(hosts, h)
	}
	if h.owns != nil {
		other := hosts[i].handler
		hosts[i].handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h.owns(r.URL.Path) {
				h.handler.ServeHTTP(w, r)
			} else {
				other.ServeHTTP(w, r)
			}
		})
		hosts[i].what += ", " + h.what
	}
	return hosts
}

// serve starts every simulated server and writes its name into the hosts file.
func (w *World) serve(ctx context.Context) error {
	hosts, err := w.hosts(ctx)
	if err != nil {
		return err
	}
	address := serverNet.Addr()
	names := map[string]netip.Addr{}
	file := strings.Builder{}
	file.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for _, h := range hosts {
		ip, known := names[h.name]
		if !known {
			if ip, err = netip.ParseAddr(h.name); err != nil {
				address = address.Next()
				ip = address
				fmt.Fprintf(&file, "%s %s\n", ip, h.name)
			}
			names[h.name] = ip
			if err := w.link.Add(prefix(ip, ip.BitLen())); err != nil {
				return err
			}
		}
		scheme := "https://"
		if h.serve != nil {
			scheme = "ssh://"
			listener, err := net.Listen("tcp", net.JoinHostPort(ip.String(), h.port))
			if err != nil {
				return fmt.Errorf("lab: %s: %w", h.what, err)
			}
			if err := h.serve(ctx, listener); err != nil {
				return err
			}
		} else if err := w.listen(net.JoinHostPort(ip.String(), h.port), h.handler, w.authorityOf(h)); err != nil {
			return err
		}
		w.endpoints = append(w.endpoints, control.Endpoint{Name: h.what, URL: scheme + net.JoinHostPort(h.name, h.port)})
	}
	if w.real != nil {
		if err := w.real.serve(ctx, w, names); err != nil {
			return err
		}
	}
	if err := os.WriteFile(w.Home.Hosts(), []byte(file.String()), 0o600); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return namespace.ReplaceIn("/etc", map[string]string{"hosts": w.Home.Hosts(), "resolv.conf": w.Home.Resolv()})
}

func (w *World) hosts(ctx context.Context) ([]host, error) {
	archives, err := filepath.Glob(filepath.Join(w.Tools.Data["cilium-charts"], "*.tgz"))
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	newest, err := charts.Own(w.Home.Dir, filepath.Join(w.Tools.Data["cilium-charts"], "sources"), "")
	if err != nil {
		return nil, err
	}
	archives = append(archives, newest)
	chartRepository, err := registry.HelmRepository(archives...)
	if err != nil {
		return nil, err
	}
	hosts := []host{
		{name: factoryHost, port: "443", what: "Talos image factory", handler: w.factory.Handler()},
		{name: ciliumHost, port: "443", what: "Cilium chart repository", handler: chartRepository},
	}
	mirrors, err := w.ciliumMirrors(chartRepository)
	if err != nil {
		return nil, err
	}
	core, err := w.coreHosts()
	if err != nil {
		return nil, err
	}
	hosts = append(hosts, core...)
	var endpoints []string
	for _, stack := range w.stacks {
		h, err := hostOf(stack.Proxmox.Endpoint, "Proxmox VE API")
		if err != nil {
			return nil, err
		}
		endpoint := net.JoinHostPort(h.name, h.port)
		if slices.Contains(endpoints, endpoint) {
			continue // two stacks with the same endpoint share its server
		}
		endpoints = append(endpoints, endpoint)
		cluster := proxmox.New(w.proxmoxConfig(stack))
		w.proxmox = append(w.proxmox, cluster)
		h.handler = cluster.Handler()
		hosts = join(hosts, h)
	}
	sources, err := w.sourceHosts(ctx)
	if err != nil {
		return nil, err
	}
	for _, source := range append(mirrors, sources...) {
		hosts = join(hosts, source)
	}
	if w.real != nil {
		return w.real.withImages(hosts)
	}
	return hosts, nil
}

// ciliumMirrors are the repositories with Cilium's chart that the stack files declare in place of Cilium's own.
func (w *World) ciliumMirrors(charts http.Handler) (mirrors []host, err error) {
	for _, stack := range w.stacks {
		if stack.CiliumRepository == "" || strings.Contains(stack.CiliumRepository, "//"+ciliumHost) {
			continue
		}
		mirror, err := hostOf(stack.CiliumRepository, "mirror of Cilium's chart repository")
		if err != nil {
			return nil, err
		}
		at, err := url.Parse(stack.CiliumRepository)
		if err != nil {
			return nil, err
		}
		path := strings.TrimSuffix(at.Path, "/")
		mirror.handler, mirror.owns = http.StripPrefix(path, charts), below(path)
		mirrors = append(mirrors, mirror)
	}
	return mirrors, nil
}

// authorityOf returns the CA of a host's certificate.
func (w *World) authorityOf(h host) *ca.Authority {
	if h.private {
		return w.private
	}
	return w.authority
}

func hostOf(raw, what string) (host, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return host{}, fmt.Errorf("lab: %s: %w", what, err)
	}
	port := u.Port()
	if port == "" {
		port = "443"
		if u.Scheme == "ssh" {
			port = "22"
		}
	}
	return host{name: u.Hostname(), port: port, what: what}, nil
}

func prefix(a netip.Addr, bits int) netip.Prefix { return netip.PrefixFrom(a, bits) }
