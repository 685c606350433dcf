package health

// Cluster is what has been seen of a cluster, as the checks read it. The zero value has seen nothing.
type Cluster struct {
	API       APIServer
	Nodes     Seen[KubeNode]
	Agents    Seen[Pod]      // Cilium's agent pods
	Operators Seen[Pod]      // Cilium's operator pods
	AgentSets Seen[Workload] // DaemonSets with the agents' labels
	Operator  Seen[Workload] // Deployments with the operators' labels

	CiliumHealth map[string]CiliumHealth // by Kubernetes node name
	Talos        map[string]TalosNode    // by declared node name
}

// Seen is a watched collection.
type Seen[T any] struct {
	Synced bool    // the collection has been read at least once
	Err    *Broken // why it cannot be read now; Items are then the last known
	Items  []T
}

// Broken is why something cannot be read.
type Broken struct {
	Reason   string
	Hopeless bool // credentials or certificates are refused: waiting will not change it
}

// APIServer is the answer to /readyz.
type APIServer struct {
	Asked   bool     // there was an answer, or an error
	Ready   bool     // the answer was 200
	Failing []string // readyz checks that the server itself reports as failed
	Err     *Broken  // there was no answer
}

// KubeNode is a Kubernetes Node.
type KubeNode struct {
	Name           string
	Ready          string // status of the Ready condition: True, False, Unknown, "" without one
	Reason         string // of the Ready condition
	Message        string // of the Ready condition
	Taints         []string
	KubeletVersion string
}

// Pod is a Kubernetes pod.
type Pod struct {
	Namespace, Name string
	Node            string // "" while it is not scheduled
	Phase           string
	Ready           bool
	Deleting        bool
	Unscheduled     string // the scheduler's message, while it is not scheduled
	Containers      []Container
}

// Container is one container of a pod, init containers included.
type Container struct {
	Name     string
	Image    string
	Init     bool
	Ready    bool
	State    string // running, "waiting: CrashLoopBackOff: back-off 5m0s …", "terminated: Error (exit code 1)"
	Last     string // the last termination, "" without one
	Restarts int
}

// Workload is a DaemonSet or Deployment, reduced to how far its rollout is.
type Workload struct {
	Kind, Namespace, Name string
	Observed              bool // the controller has seen the newest spec
	Desired, Updated      int  // pods wanted; pods of the newest template
}

// TalosNode is what the Talos API says of a node.
type TalosNode struct {
	Asked    bool
	Err      *Broken // services cannot be listed
	Services map[string]Service

	EtcdAsked bool // members were asked for; only on control planes
	EtcdErr   *Broken
	Members   []EtcdMember
}

// Service is a Talos service.
type Service struct {
	State       string // e.g. Running, Waiting, Failed
	Known       bool   // a health check has run
	Healthy     bool
	HealthError string // the health check's last message
	LastEvent   string // the newest event's message
}

// EtcdMember is a member as one control plane lists it.
type EtcdMember struct {
	Name    string
	Learner bool
}

// CiliumHealth is `cilium-health status` as one agent answers it.
type CiliumHealth struct {
	Pod   string
	Asked bool
	Err   string                // the report could not be had
	Peers map[string]CiliumPeer // by node name, the agent's own node included
}

// CiliumPeer is a node as an agent sees it; a path is "" when reachable, else the problem.
type CiliumPeer struct {
	Host     string
	Endpoint string
}
