package health

import (
	"slices"
	"time"
)

func agentOf(seen *Cluster, node string) *Pod {
	i := slices.IndexFunc(seen.Agents.Items, func(p Pod) bool { return p.Node == node })
	return &seen.Agents.Items[i]
}

func onTalos(seen *Cluster, change func(*TalosNode), nodes ...string) {
	for _, node := range nodes {
		changed := seen.Talos[node]
		change(&changed)
		seen.Talos[node] = changed
	}
}

var controlPlaneNames = []string{"infra-cp-1", "infra-cp-2", "infra-cp-3"}

// agentFails makes the agent of infra-cp-2 one that is not Ready, with what that does to its node.
func agentFails(seen *Cluster, state, last string, restarts int) {
	pod := agentOf(seen, "infra-cp-2")
	pod.Ready = false
	pod.Containers[1].Ready, pod.Containers[1].State, pod.Containers[1].Last, pod.Containers[1].Restarts = false, state, last, restarts
	seen.Nodes.Items[1].Ready, seen.Nodes.Items[1].Reason = "False", "KubeletNotReady"
	delete(seen.CiliumHealth, "infra-cp-2")
	delete(seen.CiliumStatus, "infra-cp-2")
}

// gateFaults break one thing each.
var gateFaults = map[string]func(*Cluster){
	"api-server-refuses-connections": func(c *Cluster) {
		c.API = APIServer{Asked: true, Err: &Broken{Reason: "dial tcp 10.25.11.10:6443: connect: connection refused"}}
		c.Nodes.Err = c.API.Err
	},
	"api-server-gone-before-it-is-asked-again": func(c *Cluster) {
		c.Nodes.Err = &Broken{Reason: "dial tcp 10.25.11.10:6443: connect: connection refused", Gone: true}
		c.AgentSets.Err = c.Nodes.Err
	},
	"api-server-without-etcd": func(c *Cluster) { c.API = APIServer{Asked: true, Failing: []string{"etcd failed: reason withheld"}} },
	"api-server-of-another-time": func(c *Cluster) {
		c.API = APIServer{Asked: true, Err: &Broken{Reason: "x509: certificate is not valid yet"}, Ahead: -90 * time.Minute}
	},
	"nodes-cannot-be-listed": func(c *Cluster) { c.Nodes.Err = &Broken{Reason: "Unauthorized", Hopeless: true} },
	"node-not-registered": func(c *Cluster) {
		c.Nodes.Items, c.Agents.Items = c.Nodes.Items[:4], c.Agents.Items[:4]
		delete(c.CiliumHealth, "infra-worker-2")
	},
	"node-under-another-name": func(c *Cluster) {
		c.Nodes.Items[4].Name = "talos-xyz"
		agentOf(c, "infra-worker-2").Node = "talos-xyz"
		delete(c.CiliumHealth, "infra-worker-2")
	},
	"node-under-another-name-later": func(c *Cluster) {
		c.Nodes.Items[4].Heard = time.Unix(1000, 0)
		c.Nodes.Items = append(c.Nodes.Items, KubeNode{Name: "talos-xyz", Ready: "True", Addresses: c.Nodes.Items[4].Addresses, Heard: time.Unix(1001, 0)})
		c.CiliumHealth["infra-worker-2"] = CiliumHealth{Pod: "cilium-x", Asked: true, Err: "pod not found on node"}
	},
	"node-not-ready": func(c *Cluster) {
		c.Nodes.Items[4].Ready, c.Nodes.Items[4].Reason, c.Nodes.Items[4].Message = "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."
		c.Nodes.Items[4].Taints = []string{"node.kubernetes.io/unreachable:NoSchedule"}
		agentOf(c, "infra-worker-2").Ready = false
	},
	"node-of-another-address": func(c *Cluster) { c.Nodes.Items[4].Addresses = []string{"192.168.1.22"} },
	"kubelet-down-on-a-worker": func(c *Cluster) {
		c.Talos["infra-worker-1"].Services["kubelet"] = Service{State: "Failed", LastEvent: "Failed to start: exit status 255"}
		c.Nodes.Items[3].Ready, c.Nodes.Items[3].Reason = "Unknown", "NodeStatusUnknown"
		agentOf(c, "infra-worker-1").Ready = false
	},
	"kubelet-down-a-moment-ago": func(c *Cluster) {
		c.Talos["infra-worker-1"].Services["kubelet"] = Service{State: "Failed"}
		c.CiliumHealth["infra-worker-1"] = CiliumHealth{Pod: "cilium-x", Asked: true, Err: "dial tcp 10.25.11.21:10250: connection refused"}
	},
	"kubelet-down-before-it-registered": func(c *Cluster) {
		c.Talos["infra-worker-2"].Services["kubelet"] = Service{State: "Preparing", LastEvent: "Creating service runner"}
		c.Nodes.Items, c.Agents.Items = c.Nodes.Items[:4], c.Agents.Items[:4]
	},
	"kubelet-unhealthy": func(c *Cluster) {
		c.Talos["infra-worker-1"].Services["kubelet"] = Service{State: "Running", Known: true, HealthError: "Get \"http://127.0.0.1:10248/healthz\": connection refused"}
	},
	"extension-waits": func(c *Cluster) {
		c.Talos["infra-worker-1"].Services["ext-lldpd"] = Service{State: "Waiting", LastEvent: "Waiting for extension service config"}
	},
	"service-health-unknown": func(c *Cluster) { c.Talos["infra-cp-2"].Services["apid"] = Service{State: "Running"} },
	"etcd-service-missing": func(c *Cluster) {
		delete(c.Talos["infra-cp-2"].Services, "etcd")
		onTalos(c, func(n *TalosNode) {
			n.Etcd = Etcd{Asked: true, Err: &Broken{Reason: "Unavailable: connection refused"}}
		}, "infra-cp-2")
	},
	"etcd-down-everywhere": func(c *Cluster) {
		onTalos(c, func(n *TalosNode) {
			n.Services["etcd"] = Service{State: "Preparing"}
			n.Etcd = Etcd{Asked: true, Err: &Broken{Reason: "Unavailable: connection refused"}}
		}, controlPlaneNames...)
		c.API = APIServer{Asked: true, Err: &Broken{Reason: "connection refused"}}
	},
	"talos-api-unreachable": func(c *Cluster) {
		onTalos(c, func(n *TalosNode) { *n = TalosNode{Asked: true, Err: &Broken{Reason: "Unavailable: no route to host"}} }, "infra-worker-2")
	},
	"talos-control-plane-unreachable": func(c *Cluster) {
		onTalos(c, func(n *TalosNode) { *n = TalosNode{Asked: true, Err: &Broken{Reason: "Unavailable: no route to host"}} }, "infra-cp-3")
	},
	"talos-credentials-refused": func(c *Cluster) {
		onTalos(c, func(n *TalosNode) {
			*n = TalosNode{Asked: true, Err: &Broken{Reason: "PermissionDenied: not authorized", Hopeless: true}}
		},
			append(controlPlaneNames, "infra-worker-1", "infra-worker-2")...)
	},
	"talos-of-other-ranges": func(c *Cluster) {
		onTalos(c, func(n *TalosNode) {
			n.Given = &TalosGiven{PodCIDRs: []string{"10.99.0.0/16"}, ServiceCIDRs: n.Given.ServiceCIDRs}
		}, "infra-cp-1")
	},
	"services-of-another-range":    func(c *Cluster) { c.Services.Items[0].CIDRs = []string{"10.96.0.0/12"} },
	"node-of-another-pod-range":    func(c *Cluster) { c.Nodes.Items[4].PodCIDRs = []string{"10.99.1.0/24"} },
	"node-without-pod-range":       func(c *Cluster) { c.Nodes.Items[4].PodCIDRs = nil },
	"cilium-node-of-another-range": func(c *Cluster) { c.Ranges.Items[4].CIDRs = []string{"10.99.1.0/24"} },
	"cilium-agent-of-another-range": func(c *Cluster) {
		c.CiliumStatus["infra-worker-2"] = CiliumStatus{Pod: "cilium-x", Asked: true, Pools: []string{"10.0.3.0/24"}}
	},
	"cilium-of-other-settings": func(c *Cluster) {
		c.Config.Items[0].Values["cluster-id"], c.Config.Items[0].Values["ipv4-native-routing-cidr"] = "2", "10.246.0.0/16"
		delete(c.Config.Items[0].Values, "routing-mode")
	},
	"etcd-member-missing": func(c *Cluster) {
		onTalos(c, func(n *TalosNode) { n.Etcd.Members = n.Etcd.Members[:2] }, "infra-cp-1", "infra-cp-2")
		onTalos(c, func(n *TalosNode) {
			n.Services["etcd"] = Service{State: "Preparing", LastEvent: "Waiting for etcd to join"}
			n.Etcd = Etcd{Asked: true, Err: &Broken{Reason: "Unavailable: connection refused"}}
		}, "infra-cp-3")
	},
	"etcd-learner": func(c *Cluster) {
		onTalos(c, func(n *TalosNode) { n.Etcd.Members[2].Learner = true }, controlPlaneNames...)
	},
	"etcd-member-never-started": func(c *Cluster) {
		onTalos(c, func(n *TalosNode) { n.Etcd.Members[2].Name = "" }, "infra-cp-1")
	},
	"etcd-undeclared-member": func(c *Cluster) {
		onTalos(c, func(n *TalosNode) { n.Etcd.Members = append(n.Etcd.Members, EtcdMember{Name: "old-cp-9", ID: 9}) }, "infra-cp-3")
	},
	"etcd-does-not-answer": func(c *Cluster) {
		onTalos(c, func(n *TalosNode) { n.Etcd.Err = &Broken{Reason: "Unknown: context deadline exceeded"} }, "infra-cp-3")
	},
	"etcd-split": func(c *Cluster) {
		onTalos(c, func(n *TalosNode) { n.Etcd.Leader = 3 }, "infra-cp-3")
	},
	"etcd-without-leader": func(c *Cluster) {
		onTalos(c, func(n *TalosNode) { n.Etcd.Leader = 0; n.Etcd.Errors = []string{"etcdserver: no leader"} }, "infra-cp-3")
	},
	"etcd-alarm": func(c *Cluster) {
		onTalos(c, func(n *TalosNode) { n.Etcd.Alarms = []string{"NOSPACE of member 2"} }, controlPlaneNames...)
	},
	"agent-missing": func(c *Cluster) {
		c.Agents.Items = c.Agents.Items[:4]
		c.Nodes.Items[4].Ready, c.Nodes.Items[4].Taints = "False", []string{"storage:NoExecute"}
	},
	"agent-crashing": func(c *Cluster) {
		agentFails(c, "waiting: CrashLoopBackOff: back-off 1m20s restarting failed container", "terminated: Error: exit code 1", 4)
	},
	"agent-image-cannot-be-pulled": func(c *Cluster) {
		agentFails(c, "waiting: ImagePullBackOff: Back-off pulling image \"quay.io/cilium/cilium:v1.18.7\": not found", "", 0)
	},
	"agent-starts":             func(c *Cluster) { agentFails(c, "running, not ready", "", 0) },
	"agent-of-another-version": func(c *Cluster) { agentOf(c, "infra-cp-2").Containers[1].Image = "quay.io/cilium/cilium:v1.18.70" },
	"agent-being-replaced":     func(c *Cluster) { agentOf(c, "infra-cp-2").Deleting = true },
	"agent-reports-a-failure": func(c *Cluster) {
		c.CiliumStatus["infra-cp-2"] = CiliumStatus{Pod: "cilium-infra-cp-2", Asked: true,
			Problems: []string{"its Kubernetes client reports a failure: connection refused"}, Remarks: []string{"controller sync has failed 7 times in a row: timeout"}}
	},
	"agent-says-nothing": func(c *Cluster) {
		c.CiliumStatus["infra-cp-2"] = CiliumStatus{Pod: "cilium-infra-cp-2", Asked: true, Err: "command terminated with exit code 1"}
	},
	"agents-not-rolled-out":    func(c *Cluster) { c.AgentSets.Items[0].Updated = 3 },
	"agents-spec-not-observed": func(c *Cluster) { c.AgentSets.Items[0].Observed = false },
	"cilium-by-hand":           func(c *Cluster) { c.AgentSets.Items[0].Release = "" },
	"cilium-not-installed": func(c *Cluster) {
		c.AgentSets.Items, c.Operator.Items, c.Agents.Items, c.Operators.Items, c.Config.Items = nil, nil, nil, nil, nil
		c.Ranges = Seen[Ranges]{Err: &Broken{Reason: "the API server does not know ciliumnodes", Unknown: true}}
		for i := range c.Nodes.Items {
			c.Nodes.Items[i].Ready = "False"
		}
	},
	"operator-pending-on-many-nodes": func(c *Cluster) {
		c.Operators.Items[1] = Pod{Namespace: "kube-system", Name: "cilium-operator-b", Phase: "Pending", Unscheduled: "0/5 nodes are available"}
	},
	"operator-missing": func(c *Cluster) { c.Operators.Items = nil },
	"cilium-health-unobtainable": func(c *Cluster) {
		c.CiliumHealth["infra-cp-1"] = CiliumHealth{Pod: "cilium-x", Asked: true, Err: "command terminated with exit code 1"}
	},
	"cilium-peer-unreachable": func(c *Cluster) {
		c.CiliumHealth["infra-cp-1"].Peers["infra-worker-1"] = CiliumPeer{Host: "ICMP to 10.25.11.21: Connection timed out"}
		c.CiliumHealth["infra-cp-1"].Peers["infra-worker-2"] = CiliumPeer{Endpoint: "HTTP to 10.244.4.7: connection refused"}
		delete(c.CiliumHealth["infra-cp-1"].Peers, "infra-cp-3")
	},
	"cilium-node-reached-by-nobody": func(c *Cluster) {
		for from, report := range c.CiliumHealth {
			if from != "infra-worker-2" {
				report.Peers["infra-worker-2"] = CiliumPeer{Endpoint: "HTTP to 10.244.4.7: connection refused"}
			}
		}
	},
}
