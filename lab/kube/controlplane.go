// Package kube runs the Kubernetes control plane of one simulated cluster: a real etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler as processes, with the PKI of a Talos machine configuration.
//
// There is one process of each, however many control planes the cluster has, but one API server for each version and
// set of flags and CAs of the control planes. The simulated Talos nodes decide on etcd members, quorum, leaders and the holder of the VIP;
// they call Prepare, Serve, Manage, ManageTalosAPI, Suspend and Resume. The audit log, extra volumes and resource limits of the static pods
// are not modelled.
package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	sx509 "github.com/siderolabs/crypto/x509"
	machinery "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"golang.org/x/mod/semver"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/kube/authority"
	"github.com/slipway-platform/slipway/lab/kube/process"
)

const (
	apiPort   = 6443
	stopGrace = 5 * time.Second // SIGTERM until SIGKILL, per process
)

// Options configure a control plane.
type Options struct {
	Name      string         // cluster name, also the target of the faults api-server-gone and api-server-flaps
	Dir       string         // state, PKI and logs; a cluster that is started again in the same directory continues
	Loopback  netip.Addr     // 127.x address of this cluster only; everything listens there on its default port
	Advertise netip.Addr     // address in the endpoints of the service "kubernetes"; none if it is loopback or zero
	Config    config.Config  // machine configuration of a control plane
	Talos     string         // version that this control plane runs, e.g. "v1.13.9"; "" means one before 1.13
	Binary    string         // the multi-call binary `kube`, which runs what Minors has nothing for, and etcd
	Faults    *fault.Set     // nil: none
	Processes *process.Table // nil: not listed
	Log       *slog.Logger   // nil: slog.Default

	// Minors are the binaries of other minor versions of Kubernetes, e.g. by "v1.35". Binary runs a component of a version that has none
	// here, and reports its own version.
	Minors map[string]string
}

// ControlPlane is a running control plane. Its methods are safe for concurrent use.
type ControlPlane struct {
	o     Options
	labCA *sx509.CertificateAuthority
	admin *rest.Config
	log   *slog.Logger
	ready chan struct{}
	// manifests holds what is applied next, if there is something.
	manifests chan manifests
	managed   chan struct{} // managers has changed
	life      context.Context
	cancel    context.CancelFunc
	front     *passthrough // at the loopback address, to any API server that answers
	work      sync.WaitGroup
	stop      func()

	mu         sync.Mutex
	processes  []*process.Supervisor // in start order: etcd first
	servers    map[string]*apiServer // by version and extraArgs
	newest     string                // the API server that was asked for last, by the same
	managers   map[string]config.ClusterConfig
	candidates map[string]*candidate     // those that run, and those that have answered
	signer     config.ClusterConfig      // of the kube-controller-manager that leads, or has led last
	pkis       map[string]*pki           // by the CAs of a control plane's configuration
	kubelets   map[string]*sx509.KeyPair // client certificates, by node
	sans       []string                  // of the API servers' certificates
	listeners  map[*passthrough]struct{}
	suspended  bool
	stopped    bool
	supersede  context.CancelFunc // stops applying the current manifests; nil before the first
	endAccess  context.CancelFunc // ends the access of pods to Talos's API; nil if there is none
	gone       bool               // a fault is on: the nodes' addresses are closed
}

// Start writes the PKI and starts the processes. It returns before the API server answers; see Ready. ctx limits this
// call only; Stop ends the control plane.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("control plane of %s: %w", o.Name, err)
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	c := &ControlPlane{o: o, log: o.Log.With("cluster", o.Name), ready: make(chan struct{}), manifests: make(chan manifests, 1),
		managed: make(chan struct{}, 1), listeners: map[*passthrough]struct{}{}, servers: map[string]*apiServer{},
		signer: o.Config.Cluster(), pkis: map[string]*pki{}, kubelets: map[string]*sx509.KeyPair{},
		candidates: map[string]*candidate{},
		managers:   map[string]config.ClusterConfig{controllerManager: o.Config.Cluster(), schedulerName: o.Config.Cluster()}}
	c.life, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.stop = sync.OnceFunc(c.shutdown)
	if err := c.writeFiles(); err != nil {
		return nil, fmt.Errorf("control plane of %s: %w", o.Name, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := c.startFirst(); err != nil {
		c.Stop()
		return nil, err
	}
	c.work.Go(func() { c.startRest(c.life) })
	c.work.Go(func() { c.followFaults(c.life) })
	return c, nil
}

// startFirst starts etcd and the API server.
func (c *ControlPlane) startFirst() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.start("etcd", c.logOf("etcd"), etcdFlags(filepath.Join(c.o.Dir, "etcd"), c.o.Loopback), nil, ""); err != nil {
		return err
	}
	first, err := c.apiServer(c.o.Config.Cluster())
	if err != nil {
		return err
	}
	c.newest = first.spec
	c.front, err = newPassthrough(c.o.Loopback, apiPort, c.anyServer)
	return err
}

func (o Options) validate() error {
	var errs []error
	switch {
	case o.Config == nil || o.Config.Cluster() == nil || o.Config.Machine() == nil:
		errs = append(errs, errors.New("config: no machine configuration"))
	case !o.Config.Machine().Type().IsControlPlane():
		errs = append(errs, fmt.Errorf("config: machine.type is %s; the PKI needs a control plane's", o.Config.Machine().Type()))
	case o.Config.Cluster().Endpoint() == nil:
		errs = append(errs, errors.New("config: cluster.controlPlane.endpoint: missing"))
	}
	if !o.Loopback.IsLoopback() {
		errs = append(errs, fmt.Errorf("loopback: %s is not a loopback address; etcd has no authentication here", o.Loopback))
	}
	if _, err := os.Stat(o.Binary); err != nil {
		errs = append(errs, fmt.Errorf("binary: %w", err))
	}
	return errors.Join(errs...)
}

func (c *ControlPlane) writeFiles() error {
	cluster := c.o.Config.Cluster()
	var err error
	if c.sans, err = serverSANs(cluster, c.o.Loopback, c.o.Advertise); err != nil {
		return err
	}
	if c.labCA, err = newLabCA(); err != nil {
		return err
	}
	if c.admin, err = labConfig(c.Server(), c.labCA); err != nil {
		return err
	}
	_, err = c.pkiOf(cluster)
	return err
}

// pkiOf returns the PKI of a control plane's configuration, and writes its files if it is new. The caller holds the lock.
func (c *ControlPlane) pkiOf(cluster config.ClusterConfig) (*pki, error) {
	key := authority.Checksum(cluster)
	if p := c.pkis[key]; p != nil {
		return p, nil
	}
	p, err := newPKI(filepath.Join(c.o.Dir, "pki", key), cluster, slices.Clone(c.sans))
	if err != nil {
		return nil, err
	}
	if err := p.writeAll(cluster, c.Server(), c.labCA.CrtPEM); err != nil {
		return nil, err
	}
	files, err := componentConfigs(cluster, filepath.Join(p.dir, "scheduler.kubeconfig"))
	if err != nil {
		return nil, err
	}
	for name, raw := range files {
		if err := p.write(name, raw); err != nil {
			return nil, err
		}
	}
	c.pkis[key] = p
	return p, nil
}

// serverSANs are the names of the API server's certificate: those of Talos, and the lab's loopback address.
func serverSANs(cluster config.ClusterConfig, loopback, advertise netip.Addr) ([]string, error) {
	sans := []string{cluster.Endpoint().Hostname(), "localhost", "127.0.0.1", loopback.String(),
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + cluster.Network().DNSDomain()}
	if advertise.IsValid() {
		sans = append(sans, advertise.String())
	}
	service, err := cluster.Network().APIServerIPs()
	if err != nil {
		return nil, fmt.Errorf("cluster.network.serviceSubnets: %w", err)
	}
	for _, ip := range service {
		sans = append(sans, ip.String())
	}
	return append(sans, cluster.CertSANs()...), nil
}

// program is the binary that runs a component of a version.
func (o Options) program(version string) string {
	return cmp.Or(o.Minors[semver.MajorMinor(version)], o.Binary)
}

// start starts one component, in a version unless that is empty, and keeps it running. The caller holds the lock.
func (c *ControlPlane) start(name, log string, f flags, extra map[string]string, version string) (*process.Supervisor, error) {
	if refused := f.merge(extra); len(refused) > 0 {
		c.log.Warn("extraArgs that the lab does not take", "component", name, "flags", refused)
	}
	if c.stopped {
		return nil, errStopped
	}
	s, err := process.Supervise(process.Spec{
		Cluster: c.o.Name, Name: name, Path: c.o.program(version), Args: append([]string{name}, f.args()...),
		Env: append(stamp(version), "PATH="+os.Getenv("PATH")), Dir: c.o.Dir,
		Log: log, Table: c.o.Processes,
	}, c.log)
	if err != nil {
		return nil, fmt.Errorf("control plane of %s: %w", c.o.Name, err)
	}
	c.processes = append(c.processes, s)
	return s, nil
}

// logOf is the path of a component's log.
func (c *ControlPlane) logOf(name string) string { return filepath.Join(c.o.Dir, "logs", name+".log") }

// Log returns what the process of a component has written, with which a control plane of this configuration works.
func (c *ControlPlane) Log(component string, cfg machinery.Provider) ([]byte, error) {
	path, cluster := c.logOf(component), cfg.Cluster()
	c.mu.Lock()
	if component == "kube-apiserver" {
		if s := c.servers[specOf(cluster, cluster.APIServer().Image(), oneEach(cluster.APIServer().ExtraArgs()))]; s != nil {
			path = s.log
		}
	} else if one := c.candidates[candidateKey(component, cluster)]; one != nil && one.users > 0 {
		path = one.log
	}
	c.mu.Unlock()
	return os.ReadFile(path)
}

// end stops a component.
func (c *ControlPlane) end(p *process.Supervisor) {
	c.mu.Lock()
	c.processes = slices.DeleteFunc(c.processes, func(o *process.Supervisor) bool { return o == p })
	c.mu.Unlock()
	p.Stop(stopGrace)
}

// startRest waits for the API server, starts the other components, and applies the bootstrap manifests as Talos does.
func (c *ControlPlane) startRest(ctx context.Context) {
	if err := waitReady(ctx, c.admin, "/readyz"); err != nil {
		return // stopped meanwhile
	}
	c.work.Go(func() { c.keepManagers(ctx) })
	close(c.ready)
	c.applyManifests(ctx, manifestsOf(c.o.Config, c.o.Talos, nil))
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-c.manifests:
			c.applyManifests(ctx, next)
		}
	}
}

func (c *ControlPlane) applyManifests(ctx context.Context, m manifests) {
	c.mu.Lock()
	applying, cancel := context.WithCancel(ctx)
	c.supersede = cancel
	c.mu.Unlock()
	defer cancel()
	if err := applyManifests(applying, c.admin, m, c.log); err != nil && applying.Err() == nil {
		c.log.Error("bootstrap manifests", "err", err)
	}
}

// ApplyManifests creates the objects of a configuration's manifests that do not exist, in the background, as a version of Talos
// does when a control plane boots, and when its configuration changes. Existing objects are not changed. downloaded are the
// contents of the manifests by URL, by Talos's id; report, if not nil, receives the errors. It stops the applying of
// earlier manifests.
func (c *ControlPlane) ApplyManifests(cfg machinery.Provider, talos string, downloaded map[string][]byte, report func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.manifests:
	default:
	}
	next := manifestsOf(cfg, talos, downloaded)
	next.report = report
	c.manifests <- next
	if c.supersede != nil {
		c.supersede()
	}
}

// Ready is closed once the API server has answered /readyz.
func (c *ControlPlane) Ready() <-chan struct{} { return c.ready }

// Server is the API server's URL on its loopback address. It answers whether or not the control planes' addresses do.
func (c *ControlPlane) Server() string {
	return "https://" + netip.AddrPortFrom(c.o.Loopback, apiPort).String()
}

// RESTConfig is an administrator's client configuration for the loopback address.
func (c *ControlPlane) RESTConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// NodeRESTConfig is the client configuration of a node's kubelet, with a certificate of its own: the node authorizer and the admission
// plugin NodeRestriction recognise the node by it. The kubelet keeps its certificate as long as the node accepts its CA, and then gets
// another one, which kube-controller-manager signs. nil: the node accepts the CA of the start.
func (c *ControlPlane) NodeRESTConfig(node string, accepted []byte) (*rest.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if accepted == nil {
		accepted = c.ClusterCA()
	}
	own := c.kubelets[node]
	if own == nil || !verifies(own, accepted) {
		p, err := c.pkiOf(c.signer)
		if err != nil {
			return nil, err
		}
		if own, err = clientPair(p.cluster, identity{"system:node:" + node, "system:nodes"}); err != nil {
			return nil, err
		}
		c.kubelets[node] = own
	}
	return &rest.Config{Host: c.Server(), QPS: 500, Burst: 1000,
		TLSClientConfig: rest.TLSClientConfig{CAData: accepted, CertData: own.CrtPEM, KeyData: own.KeyPEM}}, nil
}

// ClusterCA are the certificates of the CAs that the configuration of the start accepts, PEM.
func (c *ControlPlane) ClusterCA() []byte { return authority.Accepted(c.o.Config.Cluster()) }

// Suspend freezes etcd. To the API server that looks like a lost quorum: etcd accepts connections, and requests time
// out.
func (c *ControlPlane) Suspend() { c.freeze(true) }

// Resume undoes Suspend.
func (c *ControlPlane) Resume() { c.freeze(false) }

func (c *ControlPlane) freeze(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.suspended == on || c.stopped || len(c.processes) == 0 {
		return
	}
	c.suspended = on
	sig := syscall.SIGCONT
	if on {
		sig = syscall.SIGSTOP
	}
	c.processes[0].Signal(sig)
}

// Stop ends every process, first with SIGTERM, and waits. The state stays in the directory.
func (c *ControlPlane) Stop() { c.stop() }

func (c *ControlPlane) shutdown() {
	c.Resume()
	c.mu.Lock()
	c.stopped = true
	processes, listeners := slices.Clone(c.processes), c.listeners
	c.listeners = map[*passthrough]struct{}{}
	c.mu.Unlock()
	c.cancel()
	for p := range listeners {
		p.stop()
	}
	// etcd is stopped last, because the others write to it when they stop.
	for i := len(processes) - 1; i >= 0; i-- {
		processes[i].Stop(stopGrace)
	}
	if c.front != nil {
		c.front.stop()
	}
	c.work.Wait()
}
