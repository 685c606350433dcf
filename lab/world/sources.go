package world

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/lab/bucket"
	"github.com/slipway-platform/slipway/lab/git"
	"github.com/slipway-platform/slipway/lab/home"
	"github.com/slipway-platform/slipway/lab/registry"
	"github.com/slipway-platform/slipway/lab/stackfile"
)

// Where Flux finds the checkout's tree if no stack file says it, so that a running lab has every kind of source.
const (
	defaultGit      = "https://git.home.arpa/platform/slipway.git"
	defaultArtifact = "oci://registry.home.arpa/platform/slipway"
	defaultEndpoint = "s3.home.arpa"
	defaultBucket   = "platform"

	defaultSnapshots = "etcd" // the bucket at the default endpoint

	defaultApp          = 123456
	defaultInstallation = 78901234
)

// privatePort is the port on which each source has a certificate of the private CA.
const privatePort = "8443"

// sourceHosts serve the checkout's tree in every form in which Flux can fetch it: as Git repositories, an OCI artifact and a bucket, at the
// names of the stack files. All have the user and the password of the Git host.
func (w *World) sourceHosts(ctx context.Context) ([]host, error) {
	var hosts []host
	var first *git.Server
	var origin string
	sources := w.sources(func(g stackfile.GitOps) bool { return g.URL != "" })
	for _, source := range append(sources, stackfile.GitOps{URL: defaultGit, Username: home.SourceUser}) {
		u, err := url.Parse(source.URL)
		if err != nil {
			return nil, fmt.Errorf("lab: Git host: %w", err)
		}
		if first != nil && (source.URL == defaultGit || slices.ContainsFunc(hosts, func(h host) bool { return h.name == u.Hostname() })) {
			continue // not needed, or one of two stacks with the same host, which has one repository
		}
		server, served, err := w.gitHosts(ctx, source, u)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, served...)
		if first == nil {
			first, origin = server, source.URL
		}
	}
	artifacts, err := w.registryHosts(first, origin)
	if err != nil {
		return nil, err
	}
	hosts = append(append(hosts, artifacts...), w.bucketHosts(first)...)
	for _, one := range w.snapshotHosts() {
		hosts = join(hosts, one)
	}
	for _, h := range slices.Clone(hosts) {
		if h.handler != nil {
			h.port, h.what, h.private = privatePort, h.what+", certificate of the private CA", true
			hosts = append(hosts, h)
		}
	}
	return hosts, nil
}

// sources returns the sources of the stacks that are of a kind.
func (w *World) sources(kind func(stackfile.GitOps) bool) []stackfile.GitOps {
	var all []stackfile.GitOps
	for _, stack := range w.stacks {
		if kind(stack.GitOps) {
			all = append(all, stack.GitOps)
		}
	}
	return all
}

// gitHosts are the Git host of a stack over HTTPS and over SSH, and the API of its GitHub App. It has one repository, with all stacks'
// branches.
func (w *World) gitHosts(ctx context.Context, source stackfile.GitOps, u *url.URL) (*git.Server, []host, error) {
	branches := []string{"main"}
	for _, other := range w.stacks {
		if branch := other.GitOps.Branch; branch != "" && !slices.Contains(branches, branch) {
			branches = append(branches, branch)
		}
	}
	api, app, err := w.gitHubApp(source, u)
	if err != nil {
		return nil, nil, err
	}
	server := &git.Server{
		Checkout: w.settings.Checkout, Dir: w.Home.Git(u.Hostname()), Path: u.Path, Branches: branches,
		Username: source.Username, Password: w.settings.Secrets.GitPassword, Public: source.Public, App: app, Faults: w.faults, Log: w.Log,
	}
	handler, err := server.Handler(ctx)
	if err != nil {
		return nil, nil, err
	}
	web := host{name: u.Hostname(), port: cmp.Or(u.Port(), "443"), what: "Git host", handler: handler,
		owns: below(u.Path, git.PublicPath+u.Path)}
	shell := host{name: u.Hostname(), port: "22", what: "Git host over SSH"}
	shell.serve = (&git.SSH{
		Server: server, Dir: w.Home.GitSSH(u.Hostname()), Hosts: []string{net.JoinHostPort(shell.name, shell.port)},
	}).Serve
	return server, []host{web, api, shell}, nil
}

// gitHubApp is the API of the GitHub App that a stack declares, or of another app, at the Git host, as in GitHub Enterprise Server.
func (w *World) gitHubApp(source stackfile.GitOps, repository *url.URL) (host, *git.App, error) {
	owner, _, _ := strings.Cut(strings.TrimPrefix(repository.Path, "/"), "/")
	declared, base := stackfile.GitHubApp{}, "https://"+repository.Host+"/api/v3"
	if source.GitHubApp != nil {
		declared = *source.GitHubApp
		base = cmp.Or(declared.BaseURL, "https://api.github.com")
	}
	app := &git.App{
		ID: cmp.Or(declared.ID, defaultApp), Installation: cmp.Or(declared.InstallationID, defaultInstallation),
		Owner: cmp.Or(declared.Owner, owner), Dir: w.Home.GitApp(repository.Hostname()),
	}
	if err := app.Open(); err != nil {
		return host{}, nil, err
	}
	u, err := url.Parse(base)
	if err != nil {
		return host{}, nil, fmt.Errorf("lab: GitHub's API: %w", err)
	}
	path := strings.TrimSuffix(u.Path, "/")
	return host{name: u.Hostname(), port: cmp.Or(u.Port(), "443"), what: "GitHub's API for apps",
		handler: http.StripPrefix(path, app.Handler()), owns: below(path)}, app, nil
}

// registryHosts are the registries of the stacks' artifacts.
func (w *World) registryHosts(repository *git.Server, origin string) ([]host, error) {
	sources := w.sources(func(g stackfile.GitOps) bool { return g.OCI != nil })
	if len(sources) == 0 {
		sources = []stackfile.GitOps{{OCI: &stackfile.OCI{URL: defaultArtifact}}}
	}
	tags := []string{"latest"}
	for _, source := range sources {
		if tag := source.OCI.Tag; tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	var hosts []host
	for _, source := range sources {
		u, err := url.Parse(source.OCI.URL)
		if err != nil {
			return nil, fmt.Errorf("lab: OCI artifact: %w", err)
		}
		artifacts := &registry.Artifacts{
			Repository: strings.Trim(u.Path, "/"), Tags: tags, Username: home.SourceUser, Password: w.settings.Secrets.GitPassword,
			Public: source.Public, Origin: origin, Snapshot: repository.Snapshot, Log: w.Log,
		}
		own := below("/v2/"+artifacts.Repository, "/v2/"+registry.PublicRepository)
		hosts = append(hosts, host{name: u.Hostname(), port: cmp.Or(u.Port(), "443"), what: "registry of the tree's OCI artifact",
			handler: artifacts.Handler(), owns: func(path string) bool { return path == "/v2/" || own(path) }})
	}
	return hosts, nil
}

// bucketHosts are the servers of the stacks' buckets.
func (w *World) bucketHosts(repository *git.Server) []host {
	sources := w.sources(func(g stackfile.GitOps) bool { return g.Bucket != nil })
	if len(sources) == 0 {
		sources = []stackfile.GitOps{{Bucket: &stackfile.Bucket{Endpoint: defaultEndpoint, Name: defaultBucket}}}
	}
	var hosts []host
	for _, source := range sources {
		server := &bucket.Server{
			Name: source.Bucket.Name, AccessKey: home.AccessKey, SecretKey: w.settings.Secrets.GitPassword, Public: source.Public,
			Snapshot: repository.Snapshot, Log: w.Log,
		}
		hosts = append(hosts, bucketHost(*source.Bucket, "S3 bucket of the tree", server.Handler(), bucket.PublicName))
	}
	return hosts
}

// bucketHost is the server of a bucket, at its endpoint, and of the endpoint's other buckets.
func bucketHost(of stackfile.Bucket, what string, handler http.Handler, others ...string) host {
	name, port, err := net.SplitHostPort(of.Endpoint)
	if err != nil {
		name, port = of.Endpoint, "443"
	}
	var paths []string
	for _, bucket := range append(others, of.Name) {
		paths = append(paths, "/"+bucket)
	}
	return host{name: name, port: port, what: what, handler: handler, owns: below(paths...)}
}

// snapshotItem is the item in 1Password with the keys of the buckets for snapshots of etcd; snapshotKeys are its fields.
const snapshotItem = "etcd-backup"

func (w *World) snapshotKeys() map[string]string {
	return map[string]string{"id": home.SnapshotKey, "secret": w.settings.Secrets.GitPassword}
}

// snapshotHosts are the servers of the buckets for snapshots of etcd that the stacks' settings name, and of a default one.
func (w *World) snapshotHosts() []host {
	var hosts []host
	served := map[stackfile.Bucket]bool{}
	for _, of := range append(slices.Clone(w.stacks), stackfile.File{}) {
		to, region, named := of.GitOps.Snapshots()
		if !named {
			to = stackfile.Bucket{Endpoint: defaultEndpoint, Name: defaultSnapshots}
		}
		if served[to] {
			continue
		}
		served[to] = true
		inbox := &bucket.Inbox{
			Name: to.Name, AccessKey: home.SnapshotKey, ReaderKey: home.SnapshotReaderKey, SecretKey: w.snapshotKeys()["secret"],
			Region: region, Folder: w.Home.Bucket(to.Name), Log: w.Log,
		}
		hosts = append(hosts, bucketHost(to, "S3 bucket for snapshots of etcd", inbox.Handler()))
	}
	return hosts
}

// below reports whether a path is one of these, or below one.
func below(paths ...string) func(string) bool {
	return func(path string) bool {
		return slices.ContainsFunc(paths, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
	}
}
