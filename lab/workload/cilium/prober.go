package cilium

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/lab/wait"
)

// Times of Cilium's health server, in Cilium's seconds.
const (
	probeTimeout   = 10 // of an HTTP and of an ICMP probe
	publishEvery   = 60 // how often results are published within a round
	probesAtOnce   = 8  // the probes of a round are sent in at most this many groups; a real server sends each by itself
	usualFrequency = "0.5"
)

// prober is the part of an agent's health server that probes all nodes it knows. It probes in rounds, whose probes it spreads over
// the interval, and answers questions with the published results only: nothing makes it probe at once. The zero value is ready
// for use.
type prober struct {
	mu        sync.Mutex
	peers     []probePeer
	results   map[string]*pathStatus // by address; the probes of an address are nil until they have ended
	interval  time.Duration          // in Cilium's time
	started   time.Time              // of the round
	published healthStatus
}

// probePeer is a node that the prober knows, with its addresses at the time.
type probePeer struct {
	node, name      string
	hosts, endpoint []string
	remote          bool // of another cluster
}

// health is the last published report. It is empty for some time after the start.
func (a *agent) health() healthStatus {
	p := &a.prober
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.published
}

// startProbes begins the first round, with the nodes that the agent knows now. Nodes that it learns of later are probed in the next round.
func (a *agent) startProbes(ctx context.Context) {
	p := &a.prober
	self := selfStatus{fullName(a.settings().cluster(), a.Node)}
	p.mu.Lock()
	p.results = map[string]*pathStatus{}
	p.published = healthStatus{Local: self, ProbeInterval: "0s", Timestamp: time.Now().Format(time.RFC3339)}
	p.mu.Unlock()
	p.setPeers(a.probePeers())
	go a.probeRounds(ctx)
	go func() {
		ticker := time.NewTicker(publishEvery * a.second())
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.setPeers(a.probePeers())
				p.publish()
			case <-ctx.Done():
				return
			}
		}
	}()
}

func (a *agent) probeRounds(ctx context.Context) {
	p := &a.prober
	ratio, err := strconv.ParseFloat(a.settings().get("connectivity-probe-frequency-ratio", usualFrequency), 64)
	if err != nil || ratio < 0 || ratio > 1 {
		ratio = 0.5
	}
	for ctx.Err() == nil {
		interval := p.begin(ratio)
		next := time.NewTimer(a.scaled(interval))
		a.probeRound(ctx, a.scaled(interval))
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return
		}
		p.setPeers(a.probePeers())
		p.publish()
	}
}

// second is how long one of Cilium's seconds takes in the lab; scaled is how long d takes.
func (a *agent) second() time.Duration { return cmp.Or(a.shared.Second, time.Millisecond) }

func (a *agent) scaled(d time.Duration) time.Duration {
	return time.Duration(d.Seconds() * float64(a.second()))
}

// begin starts a round and returns its interval, which depends on the number of addresses.
func (p *prober) begin(ratio float64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	base, addresses := (10+ratio*100)*float64(time.Second), 0
	for _, peer := range p.peers {
		addresses += len(peer.hosts) + len(peer.endpoint)
	}
	p.interval = time.Duration(base)
	if addresses > 0 {
		p.interval = time.Duration(base * math.Log1p(float64(addresses)))
	}
	p.started = time.Now()
	return p.interval
}

// probeRound sends one probe of each kind to each address, evenly over the interval, and returns when all have ended.
func (a *agent) probeRound(ctx context.Context, interval time.Duration) {
	p := &a.prober
	type target struct {
		node, ip string
		host     bool
		remote   string // address of a machine of another cluster
	}
	var targets []target
	p.mu.Lock()
	peers := slices.Clone(p.peers)
	p.mu.Unlock()
	rand.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
	for _, peer := range peers {
		remote := ""
		if peer.remote && len(peer.hosts) > 0 {
			remote = peer.hosts[0]
		}
		for _, ip := range peer.hosts {
			targets = append(targets, target{peer.node, ip, true, remote})
		}
		for _, ip := range peer.endpoint {
			targets = append(targets, target{peer.node, ip, false, remote})
		}
	}
	var ending sync.WaitGroup
	defer ending.Wait()
	groups := min(len(targets), probesAtOnce)
	for group := range groups {
		for _, t := range targets[group*len(targets)/groups : (group+1)*len(targets)/groups] {
			if t.remote != "" {
				ending.Go(func() { p.store(t.ip, a.probeRemote(ctx, t.remote, t.ip)) })
				continue
			}
			results := a.probe(t.node, t.ip, t.host)
			if !results.late {
				p.store(t.ip, results)
				continue
			}
			ending.Go(func() {
				wait.Pause(ctx, probeTimeout*a.second())
				p.store(t.ip, results)
			})
		}
		if group < groups-1 && !wait.Pause(ctx, interval/time.Duration(groups)) {
			return
		}
	}
}

// probeResults are the results of the two probes of an address.
type probeResults struct {
	icmp, http connectivityStatus
	late       bool // they end with a timeout
}

// answered are the results of probes that were answered.
func answered() probeResults {
	return probeResults{
		icmp: connectivityStatus{Latency: int64(280 * time.Microsecond)}, http: connectivityStatus{Latency: int64(520 * time.Microsecond)},
	}
}

// timedOut are the results of probes that were not answered.
func timedOut(ip string) probeResults {
	return probeResults{late: true, icmp: connectivityStatus{Status: "Connection timed out"}, http: connectivityStatus{Status: fmt.Sprintf(
		"Get \"http://%s/hello\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)", net.JoinHostPort(ip, "4240"))}}
}

// probe sends the probes of one address. The host of a node without an agent answers pings; its health endpoint, which belongs to
// the agent, does not.
func (a *agent) probe(node, ip string, host bool) probeResults {
	if why, cut := a.cannotReach(node); cut {
		r := timedOut(ip)
		r.http.Status = cmp.Or(why, r.http.Status)
		return r
	}
	r := answered()
	if a.shared.Ready(node) {
		return r
	}
	if !host {
		r = timedOut(ip)
	}
	address := net.JoinHostPort(ip, "4240")
	r.http = connectivityStatus{Status: fmt.Sprintf("Get \"http://%s/hello\": dial tcp %s: connect: connection refused", address, address)}
	return r
}

// probeRemote sends the probes of an address of another cluster. The lab looks whether the machine is up, and not for the agent on it.
func (a *agent) probeRemote(ctx context.Context, machine, ip string) probeResults {
	if hostAnswers(ctx, machine) {
		return answered()
	}
	wait.Pause(ctx, probeTimeout*a.second())
	return timedOut(ip)
}

// store keeps the results of an address that the prober still knows.
func (p *prober) store(ip string, r probeResults) {
	now := time.Now().Format(time.RFC3339)
	r.icmp.LastProbed, r.http.LastProbed = now, now
	p.mu.Lock()
	defer p.mu.Unlock()
	if result, known := p.results[ip]; known {
		result.ICMP, result.HTTP = &r.icmp, &r.http
	}
}

// setPeers replaces the nodes that the prober knows. It keeps the results of the addresses that remain.
func (p *prober) setPeers(peers []probePeer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.peers = peers
	results := map[string]*pathStatus{}
	for _, peer := range peers {
		for _, ip := range slices.Concat(peer.hosts, peer.endpoint) {
			results[ip] = cmp.Or(p.results[ip], &pathStatus{IP: ip})
		}
	}
	p.results = results
}

// publish makes the results so far visible.
func (p *prober) publish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	paths := func(ips []string) *addressesHealth {
		if len(ips) == 0 {
			return nil
		}
		out := &addressesHealth{SecondaryAddresses: []*pathStatus{}}
		for i, ip := range ips {
			path := *p.results[ip]
			if i == 0 {
				out.PrimaryAddress = &path
			} else {
				out.SecondaryAddresses = append(out.SecondaryAddresses, &path)
			}
		}
		return out
	}
	report := healthStatus{Local: p.published.Local, ProbeInterval: p.interval.String(), Timestamp: p.started.Format(time.RFC3339)}
	for _, peer := range p.peers {
		health := &nodeHealth{Name: peer.name, Host: paths(peer.hosts), HealthEndpoint: paths(peer.endpoint)}
		if health.HealthEndpoint != nil {
			health.Endpoint = health.HealthEndpoint.PrimaryAddress
		}
		report.Nodes = append(report.Nodes, health)
	}
	p.published = report
}

// probePeers returns the nodes that have a CiliumNode, by name, and those of other clusters.
func (a *agent) probePeers() []probePeer {
	var peers []probePeer
	nodes := slices.Clone(a.Cluster.Nodes())
	slices.SortFunc(nodes, func(x, y *corev1.Node) int { return cmp.Compare(x.Name, y.Name) })
	for _, n := range nodes {
		if a.shared.known(n.Name) {
			peers = append(peers, probePeer{
				node: n.Name, name: fullName(a.settings().cluster(), n.Name),
				hosts: internalIPs(n), endpoint: healthIPs(PodCIDRs(n, a.Cluster.Faults)),
			})
		}
	}
	for _, n := range a.remoteNodes() {
		peers = append(peers, probePeer{
			node: fullName(n.Cluster, n.Name), name: fullName(n.Cluster, n.Name), remote: true,
			hosts: n.addresses("InternalIP"), endpoint: n.health(),
		})
	}
	return peers
}
