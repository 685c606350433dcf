package health

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGate_HoldsForAHealthyCluster(t *testing.T) {
	for _, nodes := range []int{1, 2, 3, 5} {
		spec := only(nodes)
		results := Evaluate(GateChecks(spec), healthy(spec))
		assert.True(t, Hold(results), "%d nodes: %v", nodes, results)
	}
}

func TestGate_OfNothingSeenDoesNotHold(t *testing.T) {
	for _, result := range Evaluate(GateChecks(declared()), &Cluster{}) {
		assert.Equal(t, Failed, result.Verdict, result.Check)
		assert.True(t, result.Unseen, "%s: there is nothing to say before the first look", result.Check)
	}
}

// Each case breaks one thing in a healthy cluster; the golden file is what a person reads.
func TestGate_AFailureNamesTheCulpritAndTheReason(t *testing.T) {
	pod := func(seen *Cluster, node string) *Pod {
		for i := range seen.Agents.Items {
			if seen.Agents.Items[i].Node == node {
				return &seen.Agents.Items[i]
			}
		}
		t.Fatalf("no agent on %s", node)
		return nil
	}
	talos := func(seen *Cluster, node string, change func(*TalosNode)) {
		changed := seen.Talos[node]
		change(&changed)
		seen.Talos[node] = changed
	}
	cases := map[string]func(*Cluster){
		"api-server-refuses-connections": func(c *Cluster) {
			c.API = APIServer{Asked: true, Err: &Broken{Reason: "dial tcp 10.25.11.10:6443: connect: connection refused"}}
		},
		"api-server-without-etcd": func(c *Cluster) { c.API = APIServer{Asked: true, Failing: []string{"etcd failed: reason withheld"}} },
		"nodes-cannot-be-listed":  func(c *Cluster) { c.Nodes.Err = &Broken{Reason: "Unauthorized", Hopeless: true} },
		"node-not-registered":     func(c *Cluster) { c.Nodes.Items = c.Nodes.Items[:4] },
		"node-not-ready": func(c *Cluster) {
			c.Nodes.Items[4] = KubeNode{Name: "infra-worker-2", Ready: "Unknown", Reason: "NodeStatusUnknown",
				Message: "Kubelet stopped posting node status.", Taints: []string{"node.kubernetes.io/unreachable:NoSchedule"}}
		},
		"kubelet-down-on-a-worker": func(c *Cluster) {
			c.Talos["infra-worker-1"].Services["kubelet"] = Service{State: "Failed", LastEvent: "Failed to start: exit status 255"}
		},
		"kubelet-unhealthy": func(c *Cluster) {
			c.Talos["infra-worker-1"].Services["kubelet"] = Service{State: "Running", Known: true, HealthError: "Get \"http://127.0.0.1:10248/healthz\": connection refused"}
		},
		"service-health-unknown": func(c *Cluster) { c.Talos["infra-cp-2"].Services["apid"] = Service{State: "Running"} },
		"etcd-service-missing":   func(c *Cluster) { delete(c.Talos["infra-cp-2"].Services, "etcd") },
		"talos-api-unreachable": func(c *Cluster) {
			talos(c, "infra-worker-2", func(n *TalosNode) { *n = TalosNode{Asked: true, Err: &Broken{Reason: "Unavailable: no route to host"}} })
		},
		"etcd-member-missing": func(c *Cluster) {
			talos(c, "infra-cp-1", func(n *TalosNode) { n.Members = n.Members[:2] })
		},
		"etcd-learner": func(c *Cluster) {
			talos(c, "infra-cp-1", func(n *TalosNode) { n.Members[2].Learner = true })
		},
		"etcd-undeclared-member": func(c *Cluster) {
			talos(c, "infra-cp-3", func(n *TalosNode) { n.Members = append(n.Members, EtcdMember{Name: "old-cp-9"}) })
		},
		"etcd-does-not-answer": func(c *Cluster) {
			talos(c, "infra-cp-3", func(n *TalosNode) { n.EtcdErr = &Broken{Reason: "Unknown: context deadline exceeded"} })
		},
		"agent-missing": func(c *Cluster) { c.Agents.Items = c.Agents.Items[:4] },
		"agent-crashing": func(c *Cluster) {
			p := pod(c, "infra-cp-2")
			p.Ready = false
			p.Containers[1].Ready, p.Containers[1].Restarts = false, 4
			p.Containers[1].State = "waiting: CrashLoopBackOff: back-off 1m20s restarting failed container"
			p.Containers[1].Last = "terminated: Error: exit code 1"
		},
		"agent-of-another-version": func(c *Cluster) { pod(c, "infra-cp-2").Containers[1].Image = "quay.io/cilium/cilium:v1.18.70" },
		"agent-being-replaced":     func(c *Cluster) { pod(c, "infra-cp-2").Deleting = true },
		"agents-not-rolled-out":    func(c *Cluster) { c.AgentSets.Items[0].Updated = 3 },
		"agents-spec-not-observed": func(c *Cluster) { c.AgentSets.Items[0].Observed = false },
		"no-daemonset":             func(c *Cluster) { c.AgentSets.Items = nil },
		"operator-pending-on-many-nodes": func(c *Cluster) {
			c.Operators.Items[1] = Pod{Namespace: "kube-system", Name: "cilium-operator-b", Phase: "Pending", Unscheduled: "0/5 nodes are available"}
		},
		"operator-missing": func(c *Cluster) { c.Operators.Items = nil },
		"cilium-health-unobtainable": func(c *Cluster) {
			c.CiliumHealth["infra-cp-1"] = CiliumHealth{Pod: "cilium-x", Asked: true, Err: "command terminated with exit code 1"}
		},
		"cilium-health-not-asked": func(c *Cluster) { delete(c.CiliumHealth, "infra-cp-1") },
		"cilium-peer-unreachable": func(c *Cluster) {
			c.CiliumHealth["infra-cp-1"].Peers["infra-worker-1"] = CiliumPeer{Host: "ICMP to 10.25.11.21: Connection timed out"}
			c.CiliumHealth["infra-cp-1"].Peers["infra-worker-2"] = CiliumPeer{Endpoint: "HTTP to 10.244.4.7: connection refused"}
			delete(c.CiliumHealth["infra-cp-1"].Peers, "infra-cp-3")
		},
	}
	for name, breakIt := range cases {
		t.Run(name, func(t *testing.T) {
			spec := declared()
			seen := healthy(spec)
			breakIt(seen)
			results := Evaluate(GateChecks(spec), seen)
			assert.False(t, Hold(results))
			golden(t, "gate/"+name, report(t, results))
		})
	}
}

func TestGate_AStrangerIsReportedAndHoldsNothingUp(t *testing.T) {
	spec := declared()
	seen := healthy(spec)
	seen.Nodes.Items = append(seen.Nodes.Items, KubeNode{Name: "laptop", Ready: "True"})
	results := Evaluate(GateChecks(spec), seen)
	assert.True(t, Hold(results))
	golden(t, "gate/stranger", report(t, results))
}

func TestGate_OneOperatorPendingIsNormalOnOneNodeOnly(t *testing.T) {
	pending := Pod{Namespace: "kube-system", Name: "cilium-operator-b", Phase: "Pending", Unscheduled: "didn't match pod anti-affinity rules"}
	for nodes, holds := range map[int]bool{1: true, 2: false, 5: false} {
		spec := only(nodes)
		seen := healthy(spec)
		seen.Operators.Items[1] = pending
		assert.Equal(t, holds, Hold(Evaluate(GateChecks(spec), seen)), "%d nodes", nodes)
	}
	spec := only(1)
	seen := healthy(spec)
	seen.Operators.Items[1] = pending
	golden(t, "gate/one-node", report(t, Evaluate(GateChecks(spec), seen)))
}

func TestGate_WithoutCNIARegisteredNodeIsEnough(t *testing.T) {
	spec := declared()
	spec.Cilium = nil
	seen := healthy(spec)
	seen.Agents, seen.Operators, seen.AgentSets, seen.Operator, seen.CiliumHealth = Seen[Pod]{}, Seen[Pod]{}, Seen[Workload]{}, Seen[Workload]{}, nil
	for i := range seen.Nodes.Items {
		seen.Nodes.Items[i].Ready = "False"
	}
	results := Evaluate(GateChecks(spec), seen)
	assert.True(t, Hold(results))
	golden(t, "gate/without-cni", report(t, results))
}

func TestReport_EndsInOneLineThatReadsBack(t *testing.T) {
	spec := declared()
	seen := healthy(spec)
	seen.Nodes.Items = seen.Nodes.Items[:4]
	var out strings.Builder
	written := NewReport("gate", "infra", spec.StableFor, End{Outcome: Closed, Results: Evaluate(GateChecks(spec), seen), Waited: time.Second}, 7)
	require.NoError(t, written.Write(&out))
	read, err := ReportFrom(out.String())
	require.NoError(t, err)
	assert.Equal(t, written, read)
	assert.Equal(t, "infra-worker-2", read.Problems[0].Subject)
	assert.NotContains(t, ReportLine(out.String()), "\n")
}

func report(t *testing.T, results []Result) string {
	t.Helper()
	outcome := Open
	if !Hold(results) {
		outcome = Closed
	}
	full := NewReport("gate", "infra", Duration(DefaultStableFor), End{Outcome: outcome, Results: results, Waited: time.Minute}, 42)
	var text strings.Builder
	require.NoError(t, full.Write(&text))
	return text.String()
}
