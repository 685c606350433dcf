package mesh

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/healthtest"
)

// declared is infra, of three nodes, with the peers apps and edge.
func declared() *Spec {
	spec := &Spec{
		Target: health.Target{Cluster: "infra", Kubeconfig: "k"}, Name: "infra", ID: 1, CA: "given",
		Address: netip.MustParseAddr("10.25.11.100"),
		Nodes:   []string{"infra-cp-1", "infra-cp-2", "infra-worker-1"},
		Peers: []Peer{
			{Name: "apps", ID: 2, Nodes: 5, Address: netip.MustParseAddr("10.25.12.100")},
			{Name: "edge", ID: 3, Nodes: 1, Address: netip.MustParseAddr("10.25.13.100")},
		},
	}
	spec.SetDefaults()
	return spec
}

const (
	server = "clustermesh-apiserver-a"
	year   = 365 * 24 * time.Hour
)

// connected is what is seen of infra while both peers exist and all is well.
func connected() *Cluster {
	seen := &Cluster{
		Services: health.Seen[Service]{Synced: true, Items: []Service{{
			Namespace: "kube-system", Name: ServerName, Type: "LoadBalancer", Addresses: []string{"10.25.11.100"}}}},
		Servers: health.Seen[kube.Workload]{Synced: true, Items: []kube.Workload{{
			Kind: "Deployment", Namespace: "kube-system", Name: ServerName, Selector: map[string]string{"k8s-app": ServerName}, Observed: true,
			Desired: 1, Updated: 1}}},
		Pods: health.Seen[kube.Pod]{Synced: true, Items: []kube.Pod{{
			Namespace: "kube-system", Name: server, Node: "infra-worker-1", Phase: "Running", Ready: true,
			Labels:     map[string]string{"k8s-app": ServerName},
			Containers: []kube.Container{{Name: "etcd"}, {Name: "apiserver"}, {Name: CopyContainer}}}}},
		Agents:  health.Seen[kube.Pod]{Synced: true},
		Answers: map[string]Answer{}, Copies: map[string]Report{server: saw()}, Reports: map[string]Report{},
	}
	for _, name := range []string{"infra", "apps", "edge"} {
		seen.Answers[name] = Answer{Asked: true, Left: year, Expires: "2030-01-01"}
	}
	for _, node := range declared().Nodes {
		seen.Agents.Items = append(seen.Agents.Items, kube.Pod{
			Namespace: "kube-system", Name: "cilium-" + node, Node: node, Phase: "Running", Ready: true,
		})
		seen.Reports["cilium-"+node] = saw()
	}
	return seen
}

// saw is a report in which all is well.
func saw() Report {
	return Report{Asked: true, Peers: map[string]Remote{
		"apps": {Connected: true, Ready: true, Retrieved: true, ID: 2, Nodes: 5, Status: "etcd: 1/1 connected, ID: 3a"},
		"edge": {Connected: true, Ready: true, Retrieved: true, ID: 3, Nodes: 1, Status: "etcd: 1/1 connected, ID: 3b"},
	}}
}

// remote changes what a report says about apps.
func remote(report Report, change func(*Remote)) {
	one := report.Peers["apps"]
	change(&one)
	report.Peers["apps"] = one
}

// never is apps as kvstoremesh sees it if it never existed.
func never(one *Remote) { *one = Remote{Status: "Waiting for initial connection to be established"} }

// failing is apps as kvstoremesh sees it while it cannot connect.
func failing(why string) func(*Remote) {
	return func(one *Remote) {
		never(one)
		one.Errors = []string{why}
	}
}

// uncopied is a peer as an agent sees it while kvstoremesh has not copied it.
func uncopied(one *Remote) { *one = Remote{Connected: true, Status: "etcd: 1/1 connected, ID: 3a"} }

// silent makes an address not answer here. Without the own one, kvstoremesh tries its connections anew.
func (seen *Cluster) silent(names ...string) {
	for _, name := range names {
		seen.Answers[name] = Answer{Asked: true, Err: NoRoute}
	}
	if report, is := seen.Copies[server]; is {
		report.Tried = slices.Contains(names, "infra")
		seen.Copies[server] = report
	}
}

// everywhere changes what kvstoremesh and all agents say about apps.
func (seen *Cluster) everywhere(copied, agents func(*Remote)) {
	remote(seen.Copies[server], copied)
	for _, report := range seen.Reports {
		remote(report, agents)
	}
}

// states are clusters for which the gate opens.
var states = map[string]func(*Spec, *Cluster){
	"peer-never-existed": func(_ *Spec, seen *Cluster) { seen.silent("apps"); seen.everywhere(never, uncopied) },
	"peer-destroyed-a-while-ago": func(_ *Spec, seen *Cluster) {
		seen.silent("apps")
		seen.everywhere(never, func(*Remote) {}) // the agents still read the copy
	},
	"peer-has-just-died": func(_ *Spec, seen *Cluster) { seen.silent("apps") },
	"no-peer-exists":     func(_ *Spec, seen *Cluster) { seen.silent("apps", "edge"); seen.Copies[server] = Report{Asked: true} },
	"no-route-from-here": func(_ *Spec, seen *Cluster) { seen.silent("infra", "apps", "edge") },
	"no-route-and-has-just-died": func(_ *Spec, seen *Cluster) {
		seen.silent("infra", "apps", "edge")
		remote(seen.Copies[server], func(one *Remote) {
			one.Errors = []string{"Cannot establish TCP connection to apps.mesh.cilium.io:2379: dial tcp 10.25.12.100:2379: i/o timeout"}
		})
	},
	"no-route-and-absent": func(_ *Spec, seen *Cluster) {
		seen.silent("infra", "apps", "edge")
		seen.everywhere(failing("Cannot establish TCP connection to apps.mesh.cilium.io:2379: dial tcp 10.25.12.100:2379: "+
			"connect: no route to host"), uncopied)
	},
	"peer-has-more-nodes": func(_ *Spec, seen *Cluster) {
		more := func(one *Remote) { one.Nodes = 6 }
		seen.everywhere(more, more)
	},
	"certificate-ends-soon": func(_ *Spec, seen *Cluster) {
		seen.Answers["apps"] = Answer{Asked: true, Left: 20 * 24 * time.Hour, Expires: "2027-01-01"}
	},
	"no-ca-given":            func(spec *Spec, _ *Cluster) { spec.CA = "" },
	"no-pool-and-no-address": func(spec *Spec, seen *Cluster) { spec.NoPool = true; seen.Services.Items[0].Addresses = nil },
	"no-nodes-declared":      func(spec *Spec, _ *Cluster) { spec.Nodes, spec.Peers[0].Nodes = nil, 0 },
	"without-kvstoremesh": func(_ *Spec, seen *Cluster) {
		seen.Pods.Items[0].Containers = seen.Pods.Items[0].Containers[:2]
		seen.Copies = nil
	},
	"without-kvstoremesh-absent": func(_ *Spec, seen *Cluster) {
		seen.Pods.Items[0].Containers, seen.Copies = seen.Pods.Items[0].Containers[:2], nil
		seen.silent("apps")
		for _, report := range seen.Reports {
			remote(report, never)
		}
	},
}

// faults are clusters for which it does not.
var faults = map[string]func(*Spec, *Cluster){
	"values-without-mesh": func(_ *Spec, seen *Cluster) {
		seen.Services.Items, seen.Servers.Items, seen.Pods.Items = nil, nil, nil
		for pod := range seen.Reports {
			seen.Reports[pod] = Report{Asked: true}
		}
	},
	"services-forbidden": func(_ *Spec, seen *Cluster) {
		seen.Services = health.Seen[Service]{Err: &health.Broken{Reason: "forbidden", Hopeless: true}}
	},
	"no-address": func(_ *Spec, seen *Cluster) {
		seen.Services.Items[0].Addresses, seen.Services.Items[0].Refusal = nil, "There are no enabled CiliumLoadBalancerIPPools"
	},
	"another-address":    func(_ *Spec, seen *Cluster) { seen.Services.Items[0].Addresses = []string{"10.25.11.101"} },
	"service-inside":     func(_ *Spec, seen *Cluster) { seen.Services.Items[0].Type = "ClusterIP" },
	"deployment-missing": func(_ *Spec, seen *Cluster) { seen.Servers.Items, seen.Pods.Items = nil, nil },
	"server-not-ready": func(_ *Spec, seen *Cluster) {
		pod := &seen.Pods.Items[0]
		pod.Ready, pod.Containers[0].State = false, "waiting: ImagePullBackOff: back-off"
	},
	"certificate-of-another-ca": func(_ *Spec, seen *Cluster) {
		seen.Answers["apps"] = Answer{Asked: true, TLS: OtherCA}
		seen.everywhere(never, uncopied)
	},
	"own-certificate-expired": func(_ *Spec, seen *Cluster) { seen.Answers["infra"] = Answer{Asked: true, TLS: Expired} },
	"kvstoremesh-not-connected": func(_ *Spec, seen *Cluster) {
		seen.everywhere(func(one *Remote) {
			*one = Remote{Status: "Waiting for initial connection to be established", Failures: 3}
		}, uncopied)
	},
	"kvstoremesh-silent": func(_ *Spec, seen *Cluster) { seen.Copies[server] = Report{Asked: true, Err: "exit code 1"} },
	"peer-not-copied-yet": func(_ *Spec, seen *Cluster) {
		seen.everywhere(func(one *Remote) { one.Retrieved, one.Ready, one.ID = false, false, 0 }, uncopied)
	},
	"peer-of-another-id": func(_ *Spec, seen *Cluster) {
		other := func(one *Remote) { one.ID = 7 }
		seen.everywhere(other, other)
	},
	"peer-with-our-id": func(_ *Spec, seen *Cluster) {
		seen.everywhere(func(one *Remote) { one.ID = 1 }, func(one *Remote) { one.ID, one.Ready = 1, false })
	},
	"peers-of-one-id": func(_ *Spec, seen *Cluster) {
		for _, report := range seen.Reports {
			remote(report, func(one *Remote) { one.Ready, one.Errors = false, []string{"clusterID 2 is already used"} })
		}
	},
	"peer-not-in-the-values": func(_ *Spec, seen *Cluster) {
		delete(seen.Copies[server].Peers, "apps")
		for _, report := range seen.Reports {
			delete(report.Peers, "apps")
		}
	},
	"peer-without-nodes": func(_ *Spec, seen *Cluster) {
		none := func(one *Remote) { one.Nodes = 0 }
		seen.everywhere(none, none)
	},
	"one-agent-not-connected": func(_ *Spec, seen *Cluster) {
		remote(seen.Reports["cilium-infra-cp-2"], func(one *Remote) {
			*one = Remote{Status: "Waiting for initial connection to be established",
				Errors: []string{"transport: authentication handshake failed: tls: failed to verify certificate: " +
					"x509: certificate signed by unknown authority"}}
		})
	},
	"one-agent-not-ready": func(_ *Spec, seen *Cluster) {
		remote(seen.Reports["cilium-infra-cp-2"], func(one *Remote) { one.Ready = false })
	},
	"one-agent-knows-less-nodes": func(_ *Spec, seen *Cluster) {
		remote(seen.Reports["cilium-infra-cp-2"], func(one *Remote) { one.Nodes = 4 })
	},
	"one-agent-silent": func(_ *Spec, seen *Cluster) {
		seen.Reports["cilium-infra-cp-2"] = Report{Asked: true, Err: "exit code 1"}
	},
	"one-agent-missing": func(_ *Spec, seen *Cluster) { seen.Agents.Items = seen.Agents.Items[:2] },
	"no-agent":          func(spec *Spec, seen *Cluster) { spec.Nodes, seen.Agents.Items = nil, nil },
	"agents-forbidden": func(_ *Spec, seen *Cluster) {
		seen.Agents = health.Seen[kube.Pod]{Err: &health.Broken{Reason: "forbidden"}}
	},
	"strict-and-absent": func(spec *Spec, seen *Cluster) {
		spec.Strict = true
		seen.silent("apps")
		seen.everywhere(never, uncopied)
	},
	"strict-and-more-nodes": func(spec *Spec, seen *Cluster) {
		spec.Strict = true
		more := func(one *Remote) { one.Nodes = 6 }
		seen.everywhere(more, more)
	},
	"no-route-from-here-and-an-agent-not-ready": func(_ *Spec, seen *Cluster) {
		seen.silent("infra", "apps", "edge")
		remote(seen.Reports["cilium-infra-cp-2"], func(one *Remote) { one.Ready = false })
	},
	"no-route-from-here-and-another-ca": func(_ *Spec, seen *Cluster) {
		seen.silent("infra", "apps", "edge")
		seen.everywhere(failing("Cannot establish TLS connection to apps.mesh.cilium.io:2379: tls: failed to verify certificate: "+
			"x509: certificate signed by unknown authority"), uncopied)
	},
	"no-route-from-here-and-not-tried-yet": func(_ *Spec, seen *Cluster) {
		seen.silent("infra", "apps", "edge")
		seen.everywhere(never, uncopied)
	},
	"without-kvstoremesh-another-ca": func(_ *Spec, seen *Cluster) {
		seen.Pods.Items[0].Containers, seen.Copies = seen.Pods.Items[0].Containers[:2], nil
		seen.Answers["apps"] = Answer{Asked: true, TLS: OtherCA}
		for _, report := range seen.Reports {
			remote(report, never)
		}
	},
}

func TestMesh_HoldsIfEveryAgentSeesEveryPeer(t *testing.T) {
	results := Evaluate(declared(), connected())
	assert.True(t, health.Hold(results), "%+v", results)
	for _, result := range results {
		assert.Equal(t, health.Passed, result.Verdict, result.Check)
	}
}

func TestMesh_DoesNotHoldBeforeAnythingWasRead(t *testing.T) {
	for _, result := range Evaluate(declared(), &Cluster{}) {
		assert.Equal(t, health.Failed, result.Verdict, result.Check)
		assert.True(t, result.Unseen, "%s: nothing is printed before the first look", result.Check)
	}
}

// The golden file has the report of a connected cluster, and for each state and fault the lines that differ from it.
func TestMesh_AFailureNamesAgentPeerAndReason(t *testing.T) {
	healthtest.All(t, "mesh", "(connected)", func() (*Spec, *Cluster) { return declared(), connected() }, Evaluate, states, faults)
}

// A peer must be known to exist or not before the gate opens.
func TestMesh_WaitsUntilItIsKnownWhetherAPeerExists(t *testing.T) {
	for name, change := range map[string]func(*Cluster){
		"address not tried": func(seen *Cluster) { delete(seen.Answers, "apps") },
		"own address not tried": func(seen *Cluster) {
			seen.silent("apps")
			delete(seen.Answers, "infra")
		},
		"kvstoremesh not asked": func(seen *Cluster) {
			seen.silent("apps")
			delete(seen.Copies, server)
		},
		"pods not read": func(seen *Cluster) {
			seen.silent("apps")
			seen.Pods = health.Seen[kube.Pod]{}
		},
		"kvstoremesh's connections not tried": func(seen *Cluster) {
			seen.silent("infra", "apps", "edge")
			seen.Copies[server] = saw()
		},
	} {
		spec, seen := declared(), connected()
		change(seen)
		results := Evaluate(spec, seen)
		assert.False(t, health.Hold(results), name)
		for _, result := range results {
			assert.False(t, strings.Contains(result.Reason, "absent"), "%s: %s", name, result.Reason)
		}
	}
}

// One cause is one failure, however many agents it affects.
func TestMesh_WhatFollowsFromACauseIsBlocked(t *testing.T) {
	for name, subject := range map[string]string{
		"certificate-of-another-ca": "apps", "kvstoremesh-not-connected": "apps",
		"server-not-ready":    "Deployment kube-system/clustermesh-apiserver",
		"values-without-mesh": "Service kube-system/clustermesh-apiserver",
	} {
		spec, seen := declared(), connected()
		faults[name](spec, seen)
		var failed []string
		for _, result := range Evaluate(spec, seen) {
			if result.Verdict == health.Failed {
				failed = append(failed, result.Subject)
			}
		}
		assert.Equal(t, []string{subject}, failed, name)
	}
}

func TestMesh_AFailureAsksForCiliumsOwnFindings(t *testing.T) {
	spec, seen := declared(), connected()
	faults["one-agent-not-connected"](spec, seen)
	found := false
	for _, result := range Evaluate(spec, seen) {
		for _, question := range result.Ask {
			found = found || question.Kind == health.MeshFindings && question.Container == cluster.CiliumAgentContainer && question.Object == "apps"
		}
	}
	assert.True(t, found)
}

func TestMesh_AReportThatHoldsNeedNotBeAskedAgain(t *testing.T) {
	spec, seen := declared(), connected()
	assert.True(t, seen.CopyHolds(spec, server))
	assert.True(t, seen.AgentHolds(spec, "cilium-infra-cp-2"))
	assert.False(t, seen.AgentHolds(spec, "cilium-another"))
	remote(seen.Reports["cilium-infra-cp-2"], uncopied)
	assert.False(t, seen.AgentHolds(spec, "cilium-infra-cp-2"))
	seen.silent("apps")
	remote(seen.Copies[server], never)
	assert.True(t, seen.AgentHolds(spec, "cilium-infra-cp-2"), "an absent peer is not waited for")
	seen = connected()
	seen.silent("infra", "apps", "edge")
	assert.True(t, seen.CopyHolds(spec, server))
	seen.Copies[server] = saw()
	assert.False(t, seen.CopyHolds(spec, server), "its connections were not tried anew")
}

func TestMesh_ACopyThatAnAgentContradictsIsAskedAgain(t *testing.T) {
	spec, seen := declared(), connected()
	remote(seen.Reports["cilium-infra-cp-2"], func(one *Remote) { one.Nodes++ })
	assert.False(t, seen.CopyHolds(spec, server), "the peer may have another node since")
	seen.silent("apps")
	remote(seen.Copies[server], never)
	assert.True(t, seen.CopyHolds(spec, server), "what agents remember of an absent peer says nothing")
}

func TestPlainly_TranslatesTheErrorsOfCilium(t *testing.T) {
	for says, means := range map[string]string{
		`transport: Error while dialing: dial tcp 10.25.12.100:2379: connect: connection refused`: Refused,
		`transport: Error while dialing: dial tcp 10.25.12.100:2379: connect: no route to host`:   NoRoute,
		`transport: Error while dialing: dial tcp 10.25.12.100:2379: i/o timeout`:                 Silent,
		`context deadline exceeded`: Silent,
		`transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority`: OtherCA,
		`tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time …`:                         Expired,
		`remote error: tls: unknown certificate authority`:                                                                             Unknown,
		`clusterID 2 is already used`:                  SameID,
		`clusterID 1 is assigned to the local cluster`: SameID,
		`etcdserver: something else`:                   `etcdserver: something else`,
	} {
		assert.Equal(t, means, plainly([]string{says}), says)
	}
	assert.Empty(t, plainly(nil))
	assert.Equal(t, OtherCA, plainly([]string{"context deadline exceeded", "x509: certificate signed by unknown authority"}),
		"the more exact one")
}

func TestSpec_NamesEveryProblemAndComesBackAsItWasEncoded(t *testing.T) {
	wrong := &Spec{CA: "no", Port: -1, Peers: []Peer{{ID: 300, Nodes: -1}, {Name: "a", ID: 2, Address: netip.MustParseAddr("10.0.0.1")},
		{Name: "a", ID: 2, Address: netip.MustParseAddr("10.0.0.2")}}}
	for _, problem := range []string{
		"cluster: is empty", "kubeconfig: is empty", "name: is empty", "id: 0 is not a cluster id", "address: is empty",
		"ca: is not a certificate", "port: -1 is not a port", "peers[0].name: is empty", "peers[0].id: 300 is not", "peers[0].nodes: -1",
		"peers[0].address: is empty", "peers[2].name: a is there twice", "peers[2].id: 2 is there twice",
	} {
		require.ErrorContains(t, wrong.Validate(), problem)
	}
	require.ErrorContains(t, new(Spec).Validate(), "peers: is empty")

	spec := declared()
	spec.CA, _, _ = strings.Cut(clusters.Authority(func(*x509.Certificate) {}), "-----BEGIN PRIVATE")
	text, err := probe.Encode(spec)
	require.NoError(t, err)
	read := new(Spec)
	require.NoError(t, probe.Read(strings.NewReader(text), read))
	assert.Equal(t, spec, read)

	public, err := health.Public(spec)
	require.NoError(t, err)
	assert.NotContains(t, public, "kubeconfig")
}

// A hundred agents with five peers are evaluated again with each change that is seen.
func BenchmarkMesh_EvaluatesAHundredNodesAndFivePeers(b *testing.B) {
	spec, seen := declared(), connected()
	for i := range 3 {
		peer := Peer{Name: fmt.Sprintf("more-%d", i), ID: 10 + i, Nodes: 5, Address: netip.AddrFrom4([4]byte{10, 25, byte(20 + i), 100})}
		spec.Peers = append(spec.Peers, peer)
		seen.Answers[peer.Name] = Answer{Asked: true, Left: year}
	}
	for i := range 100 {
		node := fmt.Sprintf("node-%d", i)
		spec.Nodes = append(spec.Nodes, node)
		seen.Agents.Items = append(seen.Agents.Items, kube.Pod{Namespace: "kube-system", Name: "cilium-" + node, Node: node, Ready: true})
		seen.Reports["cilium-"+node] = saw()
	}
	report := func(report Report) {
		for _, peer := range spec.Peers[2:] {
			report.Peers[peer.Name] = Remote{Connected: true, Ready: true, Retrieved: true, ID: peer.ID, Nodes: 5}
		}
	}
	report(seen.Copies[server])
	for _, one := range seen.Reports {
		report(one)
	}
	for b.Loop() {
		if !health.Hold(Evaluate(spec, seen)) {
			b.Fatal("not connected")
		}
	}
}

func TestCheck_NamesWhatAppliesInlineManifests(t *testing.T) {
	seen := &Cluster{}
	seen.Services.Synced = true
	for inline, says := range map[bool]string{true: "talosctl upgrade-k8s", false: "helm -n"} {
		results := addressAssigned.Judge(&Spec{Namespace: "kube-system", Inline: inline}, seen)
		require.Len(t, results, 1)
		assert.Contains(t, results[0].Reason+" "+results[0].Command, says)
	}
}

func TestSees_NamesWhatAppliesInlinePeers(t *testing.T) {
	peer, one := Peer{Name: "apps", ID: 2}, agent{node: "infra-cp-1", pod: kube.Pod{Namespace: "kube-system", Name: "cilium-1"}}
	seen := &Cluster{Reports: map[string]Report{"cilium-1": {Asked: true}}}
	for inline, says := range map[bool]string{true: "talosctl -n ADDRESS upgrade-k8s", false: "troubleshoot clustermesh apps"} {
		result := seen.sees(&Spec{Namespace: "kube-system", ID: 1, Inline: inline}, one, peer)
		assert.Contains(t, result.Reason, "is not configured")
		assert.Contains(t, result.Command, says)
	}
}
