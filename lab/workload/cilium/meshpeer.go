package cilium

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	etcd "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/lab/wait"
)

// Cilium 1.18's keys, times and limits of the connection to a peer.
const (
	heartbeatKey   = "cilium/.heartbeat"
	configPrefix   = "cilium/cluster-config/"
	syncedPrefix   = "cilium/synced/"
	statePrefix    = "cilium/state/"
	cachePrefix    = "cilium/cache/"
	meshNodes      = "nodes/v1"
	meshServices   = "services/v1"
	meshAddresses  = "ip/v1"
	meshIdentities = "identities/v1"
	maxClusters    = 255
	configTimeout  = 3 * time.Minute  // for the peer's configuration to appear, before the agent connects again
	configPause    = 30 * time.Second // longest pause between two looks for it
	statusEvery    = 30 * time.Second
	heartbeatEnds  = 2 * time.Minute // an older heartbeat is an error
)

// peer is an agent's view of one other cluster in the mesh, as in Cilium's pkg/clustermesh: it reads about this cluster from the etcd in
// its configuration.
type peer struct {
	agent  *agent
	name   string
	file   []byte // configuration: endpoints and certificates
	cancel context.CancelFunc

	mu          sync.Mutex
	connected   bool
	message     string // of the connection
	etcdID      uint64
	config      *remoteClusterConfig
	reads       map[string]*reading // by kind
	failures    int64               // connections that were lost
	lastFailure time.Time
	connecting  controllerState // of the controller that connects
	looking     *controllerState
}

// reading is what a peer's objects of one kind look like.
type reading struct {
	keys   map[string][]byte // and what is written there
	synced bool
}

// clusterConfig is what a cluster writes about itself.
type clusterConfig struct {
	ID           uint32 `json:"id"`
	Capabilities struct {
		SyncedCanaries        bool  `json:"syncedCanaries"`
		Cached                bool  `json:"cached"`
		ServiceExportsEnabled *bool `json:"serviceExportsEnabled"`
	} `json:"capabilities"`
}

func number(id uint32) string { return strconv.FormatUint(uint64(id), 10) }

// run connects, reads until the connection is lost, and connects again, as Cilium's controller does.
func (p *peer) run(ctx context.Context) {
	for tries := 0; ctx.Err() == nil; {
		began := time.Now()
		err := p.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		p.release(err)
		p.agent.logf("warn", `msg="Connection to remote cluster failed" clusterName=%s error=%q subsys=clustermesh`, p.name, err)
		if time.Since(began) > time.Minute {
			tries = 0
		}
		tries++
		if !wait.Pause(ctx, time.Duration(tries)*time.Second) {
			return
		}
	}
}

// errLost is the loss of a connection that was established. It is no failure of the controller that connects.
type errLost struct{ error }

// release forgets the connection.
func (p *peer) release(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connected, p.config, p.message, p.etcdID, p.looking = false, nil, "", 0, nil
	for _, r := range p.reads {
		r.synced = false
	}
	if lost := (errLost{}); errors.As(err, &lost) {
		p.failures, p.lastFailure = p.failures+1, time.Now()
		return
	}
	p.connecting.failed(err)
}

// connect makes a connection and follows the peer's state. It returns when the connection is lost or useless.
func (p *peer) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	w := &watching{peer: p, client: client, lost: make(chan error, 8)}
	var heartbeat heartbeat
	connected := make(chan struct{})
	go w.follow(ctx, heartbeatKey, func(*mvccpb.KeyValue, bool) { heartbeat.beat() }, func() { close(connected) })
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-w.lost:
		return err
	case <-connected:
	}
	heartbeat.start()
	p.mu.Lock()
	p.connected, p.message = true, "Waiting for initial connection to be established"
	p.mu.Unlock()
	go w.check(ctx, &heartbeat)
	config, err := p.lookForConfig(ctx, client, w.lost)
	if err != nil {
		return err
	}
	own, _ := strconv.ParseUint(p.agent.settings().get("cluster-id", "0"), 10, 32) // 0: no mesh
	if problem := p.agent.mesh.reserve(config.ID, uint32(own), p.name); problem != "" {
		return errors.New(problem)
	}
	p.mu.Lock()
	p.connecting.succeeded()
	p.mu.Unlock()
	w.readAll(ctx, config)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-w.lost:
		return errLost{err}
	}
}

// dial makes an etcd client of the peer's configuration. It connects in the background.
func (p *peer) dial(ctx context.Context) (*etcd.Client, error) {
	var file struct {
		Endpoints []string `json:"endpoints"`
		CA        string   `json:"trusted-ca-file"`
		Key       string   `json:"key-file"`
		Cert      string   `json:"cert-file"`
	}
	if err := yaml.Unmarshal(p.file, &file); err != nil {
		return nil, err
	}
	read := func(name string) []byte {
		content, is := p.agent.file(ctx, name)
		if !is {
			return nil
		}
		return content
	}
	pool := x509.NewCertPool()
	for _, needed := range []string{file.CA, file.Cert, file.Key} {
		if read(needed) == nil {
			return nil, fmt.Errorf("open %s: no such file or directory", needed)
		}
	}
	pool.AppendCertsFromPEM(read(file.CA))
	pair := func() (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(read(file.Cert), read(file.Key))
		return &pair, err
	}
	if _, err := pair(); err != nil {
		return nil, err
	}
	return etcd.New(etcd.Config{
		Context: ctx, Endpoints: file.Endpoints, Logger: zap.NewNop(),
		DialKeepAliveTime: 15 * time.Second, DialKeepAliveTimeout: 25 * time.Second,
		TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair() }},
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(p.agent.dialMesh)},
	})
}

// dialMesh connects to an address as an agent does: a Service by one of its Ready pods, and other names by the pod's hosts file.
func (a *agent) dialMesh(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	for _, alias := range a.Pod.Spec.HostAliases {
		if slices.Contains(alias.Hostnames, host) {
			host = alias.IP
		}
	}
	if parts := strings.Split(host, "."); len(parts) == 3 && parts[2] == "svc" {
		if host, err = a.backend(ctx, parts[1], parts[0]); err != nil {
			return nil, err
		}
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
}

// backend is the address of a Ready pod of a Service, whose ports are those of its pods.
func (a *agent) backend(ctx context.Context, namespace, name string) (string, error) {
	list, err := a.Cluster.Client.DiscoveryV1().EndpointSlices(namespace).List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name})
	if err != nil {
		return "", err
	}
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				return e.Addresses[0], nil
			}
		}
	}
	return "", fmt.Errorf("dial tcp: service %s/%s: connect: connection refused", namespace, name)
}

// lookForConfig waits for the peer's configuration.
func (p *peer) lookForConfig(ctx context.Context, client *etcd.Client, lost <-chan error) (clusterConfig, error) {
	var config clusterConfig
	p.mu.Lock()
	p.config, p.looking = &remoteClusterConfig{Required: true}, &controllerState{}
	p.mu.Unlock()
	until := time.Now().Add(configTimeout)
	for tries := 1; ; tries++ {
		reply, err := client.Get(ctx, configPrefix+p.name)
		switch {
		case err == nil && len(reply.Kvs) == 0:
			err = errors.New("not found")
		case err == nil:
			err = json.Unmarshal(reply.Kvs[0].Value, &config)
		}
		p.mu.Lock()
		if err == nil {
			p.looking = nil
			p.config = &remoteClusterConfig{
				ClusterID: int64(config.ID), Kvstoremesh: config.Capabilities.Cached, Required: true, Retrieved: true,
				SyncCanaries: config.Capabilities.SyncedCanaries, ServiceExportsEnabled: config.Capabilities.ServiceExportsEnabled,
			}
			p.mu.Unlock()
			return config, nil
		}
		p.looking.failed(err)
		p.mu.Unlock()
		if time.Now().After(until) {
			return config, fmt.Errorf("failed to retrieve cluster configuration: %w", err)
		}
		select {
		case <-ctx.Done():
			return config, ctx.Err()
		case err := <-lost:
			return config, errLost{err}
		case <-time.After(min(time.Duration(tries)*time.Second, configPause)):
		}
	}
}

// status is the peer in Cilium's own model, and the controllers of its connection.
func (p *peer) status() (remoteCluster, []controllerStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := remoteCluster{
		Name: p.name, Connected: p.connected, Status: "Waiting for initial connection to be established", NumFailures: p.failures,
		LastFailure: ciliumTime(p.lastFailure),
	}
	if p.connected {
		r.Status = fmt.Sprintf("%s, ID: %x", p.message, p.etcdID)
	}
	if p.config != nil {
		config := *p.config
		r.Config = &config
	}
	if nodes := p.reads[meshNodes]; nodes != nil {
		r.NumNodes = int64(len(nodes.keys))
	}
	synced := func(kind string) bool { return p.reads[kind] != nil && p.reads[kind].synced }
	r.Synced = &remoteClusterSynced{
		Nodes: synced(meshNodes), Services: synced(meshServices), Endpoints: synced(meshAddresses), Identities: synced(meshIdentities),
	}
	r.Ready = p.connected && p.config != nil && p.config.Retrieved &&
		r.Synced.Nodes && r.Synced.Services && r.Synced.Endpoints && r.Synced.Identities
	controllers := []controllerStatus{{Name: "remote-etcd-" + p.name, Status: p.connecting}}
	if p.looking != nil {
		controllers = append(controllers, controllerStatus{Name: "remote-etcd-" + p.name + "-cluster-config", Status: *p.looking})
	}
	return r, controllers
}

// heartbeat is when the etcd of a peer last showed that somebody writes to it.
type heartbeat struct {
	mu   sync.Mutex
	last time.Time
}

func (h *heartbeat) beat() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = time.Now()
}

// start counts from now if there was no heartbeat yet.
func (h *heartbeat) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last.IsZero() {
		h.last = time.Now()
	}
}

func (h *heartbeat) age() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.last)
}

// watching is one connection with its watches.
type watching struct {
	peer   *peer
	client *etcd.Client
	lost   chan error // receives why the connection is useless
}

func (w *watching) fail(err error) {
	select {
	case w.lost <- err:
	default: // it was reported already
	}
}

// same notes the id of the etcd that answered. It returns false if the id is another than before: the mesh API server restarted.
func (w *watching) same(id uint64) bool {
	w.peer.mu.Lock()
	defer w.peer.mu.Unlock()
	if w.peer.etcdID == 0 {
		w.peer.etcdID = id
	}
	return w.peer.etcdID == id
}

// follow lists the keys with a prefix, and then watches them, until ctx ends.
func (w *watching) follow(ctx context.Context, prefix string, seen func(*mvccpb.KeyValue, bool), listed func()) {
	for pause := 50 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 30*time.Second) {
		reply, err := w.client.Get(ctx, prefix, etcd.WithPrefix())
		if err != nil {
			if !wait.Pause(ctx, pause) {
				return
			}
			continue
		}
		if !w.same(reply.Header.ClusterId) {
			w.fail(fmt.Errorf("etcd cluster ID has changed: got %d", reply.Header.ClusterId))
			return
		}
		for _, kv := range reply.Kvs {
			seen(kv, true)
		}
		listed()
		listed = func() {}
		for changes := range w.client.Watch(ctx, prefix, etcd.WithPrefix(), etcd.WithRev(reply.Header.Revision+1)) {
			if changes.Header.ClusterId != 0 && !w.same(changes.Header.ClusterId) {
				w.fail(fmt.Errorf("etcd cluster ID has changed: got %d", changes.Header.ClusterId))
				return
			}
			for _, e := range changes.Events {
				seen(e.Kv, e.Type == mvccpb.PUT)
			}
		}
	}
}

// check judges the connection by the heartbeat, as Cilium's status checker does.
func (w *watching) check(ctx context.Context, h *heartbeat) {
	for {
		if h.age() > heartbeatEnds {
			w.fail(errors.New("not able to connect to any etcd endpoints"))
			return
		}
		w.peer.mu.Lock()
		w.peer.message = "etcd: 1/1 connected, leases=0, lock leases=0, has-quorum=true: endpoint status checks are disabled"
		w.peer.mu.Unlock()
		if !wait.Pause(ctx, statusEvery) {
			return
		}
	}
}

// readAll follows the peer's nodes, services, addresses and identities. Where the writer says when it has written all of a kind, that kind
// is read only then.
func (w *watching) readAll(ctx context.Context, config clusterConfig) {
	own := w.peer.name + "/"
	prefix, below := statePrefix, map[string]string{meshNodes: own, meshServices: own, meshAddresses: "default/", meshIdentities: "id/"}
	if config.Capabilities.Cached {
		prefix, below = cachePrefix, map[string]string{meshNodes: own, meshServices: own, meshAddresses: own, meshIdentities: own + "id/"}
	}
	start := map[string]func(){}
	for kind, at := range below {
		start[prefix+kind] = sync.OnceFunc(func() { go w.read(ctx, kind, prefix+kind+"/"+at) })
	}
	if !config.Capabilities.SyncedCanaries {
		for _, now := range start {
			now()
		}
		return
	}
	canaries := syncedPrefix + w.peer.name + "/"
	go w.follow(ctx, canaries, func(kv *mvccpb.KeyValue, is bool) {
		if now := start[strings.TrimPrefix(string(kv.Key), canaries)]; now != nil && is {
			now()
		}
	}, func() {})
}

// read follows the objects of one kind.
func (w *watching) read(ctx context.Context, kind, prefix string) {
	fresh := map[string][]byte{}
	p := w.peer
	w.follow(ctx, prefix, func(kv *mvccpb.KeyValue, is bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if key := strings.TrimPrefix(string(kv.Key), prefix); is {
			fresh[key] = kv.Value
		} else {
			delete(fresh, key)
		}
	}, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.reads == nil {
			p.reads = map[string]*reading{}
		}
		p.reads[kind] = &reading{keys: fresh, synced: ctx.Err() == nil}
	})
}
