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

	"github.com/slipway-platform/slipway/lab/control"
	"github.com/slipway-platform/slipway/lab/git"
	"github.com/slipway-platform/slipway/lab/namespace"
	"github.com/slipway-platform/slipway/lab/proxmox"
	"github.com/slipway-platform/slipway/lab/registry"
	"github.com/slipway-platform/slipway/lab/stackfile"
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
		} else if err := w.listen(net.JoinHostPort(ip.String(), h.port), h.handler); err != nil {
			return err
		}
		w.endpoints = append(w.endpoints, control.Endpoint{Name: h.what, URL: scheme + net.JoinHostPort(h.name, h.port)})
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
	chartRepository, err := registry.HelmRepository(archives...)
	if err != nil {
		return nil, err
	}
	hosts := []host{
		{factoryHost, "443", "Talos image factory", w.factory.Handler(), nil},
		{ciliumHost, "443", "Cilium chart repository", chartRepository, nil},
	}
	core, err := w.coreHosts()
	if err != nil {
		return nil, err
	}
	hosts = append(hosts, core...)
	for _, stack := range w.stacks {
		for _, server := range []struct {
			url, what string
			build     func(context.Context, stackfile.File) ([]host, error)
		}{
			{stack.Proxmox.Endpoint, "Proxmox VE API", w.proxmoxHost},
			{stack.GitOps.URL, "Git host", w.gitHosts},
		} {
			h, err := hostOf(server.url, server.what)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(hosts, func(o host) bool { return o.name == h.name && o.port == h.port }) {
				continue // two stacks with the same endpoint share its server
			}
			built, err := server.build(ctx, stack)
			if err != nil {
				return nil, err
			}
			hosts = append(hosts, built...)
		}
	}
	return hosts, nil
}

// proxmoxHost is the Proxmox VE cluster at a stack's endpoint.
func (w *World) proxmoxHost(_ context.Context, stack stackfile.File) ([]host, error) {
	h, err := hostOf(stack.Proxmox.Endpoint, "Proxmox VE API")
	if err != nil {
		return nil, err
	}
	cluster := proxmox.New(w.proxmoxConfig(stack))
	w.proxmox = append(w.proxmox, cluster)
	h.handler = cluster.Handler()
	return []host{h}, nil
}

// gitHosts are the Git host of a stack over HTTPS and over SSH. It has one repository, with the branches that any stack uses.
func (w *World) gitHosts(ctx context.Context, stack stackfile.File) ([]host, error) {
	u, err := url.Parse(stack.GitOps.URL)
	if err != nil {
		return nil, fmt.Errorf("lab: Git host: %w", err)
	}
	var branches []string
	for _, other := range w.stacks {
		if other.GitOps.URL == stack.GitOps.URL && !slices.Contains(branches, other.GitOps.Branch) {
			branches = append(branches, other.GitOps.Branch)
		}
	}
	dir := filepath.Join(w.Home.Dir, "git", u.Hostname())
	server := &git.Server{
		Checkout: w.settings.Checkout, Dir: dir, Path: u.Path, Branches: branches,
		Username: stack.GitOps.Username, Password: w.settings.Secrets.GitPassword, Public: stack.GitOps.Public, Faults: w.faults, Log: w.Log,
	}
	handler, err := server.Handler(ctx)
	if err != nil {
		return nil, err
	}
	web := host{name: u.Hostname(), port: "443", what: "Git host", handler: handler}
	shell := host{name: u.Hostname(), port: "22", what: "Git host over SSH"}
	switch {
	case u.Port() == "":
	case u.Scheme == "ssh":
		shell.port = u.Port()
	default:
		web.port = u.Port()
	}
	shell.serve = (&git.SSH{Server: server, Dir: dir + "-ssh", Hosts: []string{net.JoinHostPort(shell.name, shell.port)}}).Serve
	return []host{web, shell}, nil
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
