package probe

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/mesh"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

// meshRig is infra, a cluster of two nodes whose peer is apps, on addresses of the loopback.
type meshRig struct {
	kube          *fakecluster.Kube
	ca            *fakecluster.MeshCA
	spec          mesh.Spec
	stop, stopOwn func() // stop the mesh API servers of apps and infra

	mu      sync.Mutex
	finding string                        // of kvstoremesh's own command about apps
	copied  fakecluster.Remote            // apps, as kvstoremesh sees it
	seen    map[string]fakecluster.Remote // apps, by the agent's pod
}

func newMeshRig(t *testing.T) *meshRig {
	r := &meshRig{kube: fakecluster.NewKube(t), ca: fakecluster.NewMeshCA(t), seen: map[string]fakecluster.Remote{}, finding: "dropped"}
	const own, peer = "127.0.0.1", "127.0.0.2"
	port, stopOwn := r.ca.Serve(t, own, 0, nil)
	r.stopOwn = stopOwn
	_, r.stop = r.ca.Serve(t, peer, port, nil)
	r.copied = fakecluster.Remote{Name: "apps", Connected: true, Ready: true, ID: 2, Nodes: 5}
	r.kube.Serves(fakecluster.Events)
	fakecluster.PutMesh(t, r.kube, own)
	r.spec = mesh.Spec{
		Target: targetOf(r.kube, 20*time.Second),
		Name:   "infra", ID: 1, Address: netip.MustParseAddr(own), Port: port, CA: r.ca.Certificate,
		Peers: []mesh.Peer{{Name: "apps", ID: 2, Nodes: 5, Address: netip.MustParseAddr(peer)}},
	}
	for _, member := range members {
		fakecluster.PutAgent(t, r.kube, member, true)
		r.spec.Nodes = append(r.spec.Nodes, member.Name)
		r.seen["cilium-"+member.Name] = r.copied
	}
	r.kube.OnExec(r.answer)
	return r
}

// answer answers the commands that the probe runs in pods.
func (r *meshRig) answer(pod string, command []string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch joined := strings.Join(command, " "); joined {
	case "clustermesh-apiserver kvstoremesh-dbg status -o json":
		return fakecluster.CopiedPeers(r.copied)
	case "cilium-dbg status -o json":
		return fakecluster.SeenPeers(r.seen[pod])
	case "clustermesh-apiserver kvstoremesh-dbg troubleshoot --timeout 3s apps":
		return "Remote cluster apps:\n  ✅ Hostname resolved to: 127.0.0.2\n" +
			"  ❌ Cannot establish TCP connection to apps.mesh.cilium.io:2379: " + r.finding + "\n", nil
	case "cilium-dbg troubleshoot clustermesh --timeout 3s apps":
		return "  ❌ TLS client authentication failed: remote error: tls: unknown certificate authority\n", nil
	default:
		return "", errors.New("unknown command " + joined)
	}
}

// change changes what Cilium reports.
func (r *meshRig) change(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *meshRig) probe(t *testing.T, stderr *until, args ...string) (int, health.Report, string) {
	t.Helper()
	text := encode(t, &r.spec)
	return executeUntil(t, stderr, text, append([]string{"mesh"}, args...)...)
}

func TestMesh_OpensOnAConnectedMesh(t *testing.T) {
	t.Parallel()
	code, report, progress := newMeshRig(t).probe(t, new(until))
	assert.Equal(t, exitOpen, code, progress)
	assert.Equal(t, "mesh", report.Kind)
	assert.Empty(t, report.Problems)
	assert.Len(t, report.Results, 8, "service, deployment, peer, two certificates, copy, two agents")
}

func TestMesh_OpensWithinASecondAfterTheLastAgentIsReady(t *testing.T) {
	t.Parallel()
	r := newMeshRig(t)
	pod, ready := "cilium-"+members[1].Name, r.copied
	r.spec.StableFor = 0
	r.seen[pod] = fakecluster.Remote{Name: "apps", Connected: true}
	repaired := &until{text: "apps on infra-worker-1: every agent sees every peer as connected and ready, with all of its nodes: " +
		"its configuration was not read yet", then: func() { r.change(func() { r.seen[pod] = ready }) }}
	code, report, progress := r.probe(t, repaired)
	assert.Equal(t, exitOpen, code, progress)
	assert.Contains(t, report.Last, "apps on infra-worker-1")
	assert.Less(t, time.Duration(report.Since), 10*time.Second, "a second, and more on a busy machine")
}

func TestMesh_DoesNotWaitForAPeerThatNeverExisted(t *testing.T) {
	t.Parallel()
	r := newMeshRig(t)
	r.stop()
	r.copied = fakecluster.Remote{Name: "apps"}
	for pod := range r.seen {
		r.seen[pod] = fakecluster.Remote{Name: "apps", Connected: true}
	}
	code, report, progress := r.probe(t, new(until))
	assert.Equal(t, exitOpen, code, progress)
	assert.Less(t, time.Duration(report.Waited), time.Duration(r.spec.Timeout))
	absent := problem(t, report, "apps", "answers")
	assert.Equal(t, health.Skipped, absent.Verdict)
	assert.Contains(t, absent.Reason, "is absent: 127.0.0.2 port")
	assert.Contains(t, absent.Reason, mesh.Refused)
	assert.Contains(t, progress, "skips  apps: every peer answers")

	code, report, _ = execute(t, "", "mesh", "--kubeconfig", saved(t, "kubeconfig", r.kube.Config),
		"--spec", r.public(t), "--once", "--strict")
	assert.Equal(t, exitUnhealthy, code)
	assert.Equal(t, health.Failed, problem(t, report, "apps", "answers").Verdict)
}

func (r *meshRig) public(t *testing.T) string {
	t.Helper()
	text, err := health.Public(&r.spec)
	require.NoError(t, err)
	return saved(t, "mesh.json", text)
}

func TestMesh_ReportsAPeerThatDiesWhileItWaitsAsAbsent(t *testing.T) {
	t.Parallel()
	r := newMeshRig(t)
	r.kube.Delete(fakecluster.Services, "kube-system", "clustermesh-apiserver")
	dies := &until{text: "holds  every agent sees every peer", then: func() {
		r.stop()
		// An answer counts as fresh for a second.
		time.AfterFunc(1500*time.Millisecond, func() { fakecluster.PutMesh(t, r.kube, r.spec.Address.String()) })
	}}
	code, report, progress := r.probe(t, dies)
	assert.Equal(t, exitOpen, code, progress)
	assert.Contains(t, problem(t, report, "apps", "answers").Reason, "Cilium still reports a connection")
	for _, result := range report.Results {
		assert.False(t, result.Verdict == health.Passed && strings.HasPrefix(result.Subject, "apps"), "%+v", result)
	}
}

// A machine that reaches no load-balancer address learns from kvstoremesh, which notices after two minutes that a peer has gone.
func TestMesh_ReportsAPeerThatHasJustDiedAsAbsentWithoutARouteToTheAddresses(t *testing.T) {
	t.Parallel()
	r := newMeshRig(t)
	r.stop()
	r.stopOwn()
	r.finding = "dial tcp 127.0.0.2:2379: connect: no route to host"
	code, report, progress := r.probe(t, new(until))
	assert.Equal(t, exitOpen, code, progress)
	absent := problem(t, report, "apps", "answers")
	assert.Contains(t, absent.Reason, "is absent: 127.0.0.2 port")
	assert.Contains(t, absent.Reason, "this cluster does not reach it either: "+mesh.NoRoute)
}

func TestMesh_NamesAgentPeerAndReason(t *testing.T) {
	t.Parallel()
	r := newMeshRig(t)
	r.seen["cilium-"+members[1].Name] = fakecluster.Remote{
		Name: "apps", Error: "transport: authentication handshake failed: tls: x509: certificate signed by unknown authority",
	}
	code, report, progress := r.probe(t, new(until), "--once")
	assert.Equal(t, exitUnhealthy, code, progress)
	require.Len(t, report.Problems, 1, "%+v", report.Problems)
	failed := report.Problems[0]
	assert.Equal(t, "apps on infra-worker-1", failed.Subject)
	assert.Equal(t, "is not connected: "+mesh.OtherCA, failed.Reason)
	assert.Contains(t, failed.Evidence, "cilium-agent of cilium-infra-worker-1: "+
		"TLS client authentication failed: remote error: tls: unknown certificate authority")
	assert.Equal(t, "kubectl --context fake -n kube-system exec cilium-infra-worker-1 -c cilium-agent -- "+
		"cilium-dbg troubleshoot clustermesh apps", failed.Command)
}

func TestMesh_NamesWhatKeepsKvstoremeshFromAPeer(t *testing.T) {
	t.Parallel()
	r := newMeshRig(t)
	r.copied = fakecluster.Remote{Name: "apps"}
	r.kube.Log(fakecluster.MeshServer,
		`level=warn msg="Unable to establish etcd connection to remote cluster" error="context deadline exceeded"`)
	code, report, progress := r.probe(t, new(until), "--once")
	assert.Equal(t, exitUnhealthy, code, progress)
	require.Len(t, report.Problems, 1, "the agents only wait: %+v", report.Problems)
	assert.Equal(t, "is not connected: Cannot establish TCP connection to apps.mesh.cilium.io:2379: dropped, although its address answers "+
		"to this computer", report.Problems[0].Reason)
	assert.Equal(t, []string{
		"status: Waiting for initial connection to be established",
		"Cannot establish TCP connection to apps.mesh.cilium.io:2379: dropped",
		"log of clustermesh-apiserver-0/kvstoremesh:",
		`| level=warn msg="Unable to establish etcd connection to remote cluster" error="context deadline exceeded"`,
	}, report.Problems[0].Evidence)
}

func TestMesh_NamesACertificateOfAnotherCA(t *testing.T) {
	t.Parallel()
	r := newMeshRig(t)
	r.spec.CA = fakecluster.NewMeshCA(t).Certificate
	code, report, progress := r.probe(t, new(until), "--once")
	assert.Equal(t, exitUnhealthy, code, progress)
	assert.Equal(t, mesh.OtherCA, problem(t, report, "apps", "certificates").Reason)
	assert.Equal(t, mesh.OtherCA, problem(t, report, "infra", "certificates").Reason)
}

func TestMesh_NamesWhyTheAddressIsMissing(t *testing.T) {
	t.Parallel()
	r := newMeshRig(t)
	r.kube.Put(t, fakecluster.Services, `{apiVersion: v1, kind: Service, metadata: {name: clustermesh-apiserver, namespace: kube-system},
  spec: {type: LoadBalancer}, status: {conditions: [{type: cilium.io/IPAMRequestSatisfied, status: "False", reason: no_pool,
    message: There are no enabled CiliumLoadBalancerIPPools that match this service}]}}`)
	_, report, _ := r.probe(t, new(until), "--once")
	require.Len(t, report.Problems, 1)
	assert.Equal(t, "has no address yet: There are no enabled CiliumLoadBalancerIPPools that match this service", report.Problems[0].Reason)
}

// The probe may be run against any cluster at any time. This test lists all requests it sends; each only reads, and none reads a Secret.
func TestMesh_OnlyReadsAndNoSecret(t *testing.T) {
	t.Parallel()
	r := newMeshRig(t)
	r.seen["cilium-"+members[1].Name] = fakecluster.Remote{Name: "apps"}
	_, _, _ = r.probe(t, new(until), "--once")
	allowed := []string{
		"GET readyz", "GET " + fakecluster.Services, "GET " + fakecluster.Deployments, "GET " + fakecluster.Pods, "GET " + fakecluster.Events,
		"GET exec clustermesh-apiserver kvstoremesh-dbg status -o json", "GET exec cilium-dbg status -o json",
		"GET exec cilium-dbg troubleshoot clustermesh --timeout 3s apps",
	}
	requests := r.kube.Requests()
	for request := range requests {
		assert.Contains(t, allowed, request)
	}
	assert.Positive(t, requests[allowed[len(allowed)-1]], "no evidence was looked up")
}

func TestMesh_ByHandTakesTheMeshFromTheStacksOutput(t *testing.T) {
	t.Parallel()
	r := newMeshRig(t)
	kubeconfig := saved(t, "kubeconfig", r.kube.Config)
	code, report, progress := execute(t, "", "mesh", "--kubeconfig", kubeconfig, "--spec", r.public(t), "--timeout", "20s")
	assert.Equal(t, exitOpen, code, progress)
	assert.Equal(t, "infra", report.Cluster)

	r.spec.Port = 0
	_, report, progress = execute(t, "", "mesh", "--kubeconfig", kubeconfig, "--spec", r.public(t), "--cluster", "home", "--once")
	assert.Equal(t, "home", report.Cluster, progress)
	assert.Contains(t, problem(t, report, "apps", "certificates").Reason, "127.0.0.2 port 2379", "the port is that of a mesh")

	public, err := os.ReadFile(r.public(t))
	require.NoError(t, err)
	bad := strings.Replace(string(public), "BEGIN", "END", 1)
	for name, args := range map[string][]string{
		"no mesh": {"mesh", "--kubeconfig", kubeconfig},
		"no peer": {"mesh", "--kubeconfig", kubeconfig, "--spec",
			saved(t, "empty.json", `{"cluster":"infra","name":"infra","id":1,"address":"127.0.0.1"}`)},
		"no file":      {"mesh", "--kubeconfig", kubeconfig, "--spec", kubeconfig + "x"},
		"ca of no use": {"mesh", "--kubeconfig", kubeconfig, "--spec", saved(t, "bad.json", bad)},
	} {
		code, _, said := execute(t, "", args...)
		assert.Equal(t, exitUsage, code, name)
		assert.NotEmpty(t, said, name)
	}
}

func TestMesh_ThatLooksOnceAsksAgainWhatWasNotAnswered(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"GET", "WATCH"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			r := newMeshRig(t)
			r.kube.Failing(firstOf(verb))
			code, _, progress := r.probe(t, new(until), "--once")
			assert.Equal(t, exitOpen, code, progress)
		})
	}
	t.Run("agents and kvstoremesh", func(t *testing.T) {
		t.Parallel()
		r, first := newMeshRig(t), firstOf("")
		r.kube.OnExec(func(pod string, command []string) (string, error) {
			if first(pod + strings.Join(command, " ")) {
				return "", errors.New("busy")
			}
			return r.answer(pod, command)
		})
		code, _, progress := r.probe(t, new(until), "--once")
		assert.Equal(t, exitOpen, code, progress)
	})
}
