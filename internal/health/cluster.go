package health

import "time"

// Cluster is what has been seen of a cluster, as the checks read it. The zero value has seen nothing.
type Cluster struct {
	API       APIServer
	Nodes     Seen[KubeNode]
	Services  Seen[Ranges]   // ServiceCIDR objects
	Agents    Seen[Pod]      // Cilium's agent pods
	Operators Seen[Pod]      // Cilium's operator pods
	AgentSets Seen[Workload] // DaemonSets with the agents' labels
	Operator  Seen[Workload] // Deployments with the operators' labels
	Config    Seen[Settings] // the ConfigMap cilium-config
	Ranges    Seen[Ranges]   // CiliumNodes

	CiliumHealth map[string]CiliumHealth // by Kubernetes node name
	CiliumStatus map[string]CiliumStatus // by Kubernetes node name
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
	Unknown  bool // the server does not know what it was asked for: neither will it tomorrow
	Gone     bool // nobody answered
}

// APIServer is the answer to /readyz.
type APIServer struct {
	Asked   bool          // there was an answer, or an error
	Ready   bool          // the answer was 200
	Failing []string      // readyz checks that the server itself reports as failed
	Err     *Broken       // there was no answer
	Ahead   time.Duration // by how much the server's clock is ahead of this machine's, in whole seconds
	Lost    int           // how often it stopped being ready
}

// KubeNode is a Kubernetes Node.
type KubeNode struct {
	Name           string
	Ready          string    // status of the Ready condition: True, False, Unknown, "" without one
	Reason         string    // of the Ready condition
	Message        string    // of the Ready condition
	Lost           int       // how often Ready stopped being True, the minute before it was first looked at included
	Heard          time.Time // when its kubelet last reported
	Taints         []string
	Cordoned       bool
	Addresses      []string // InternalIPs, in their order
	PodCIDRs       []string // the ranges it was given for its pods
	KubeletVersion string
}

// Ranges are CIDRs that belong to something.
type Ranges struct {
	Name  string
	CIDRs []string
}

// Settings are the keys and values of a ConfigMap.
type Settings struct {
	Name   string
	Values map[string]string
}

// Pod is a Kubernetes pod.
type Pod struct {
	Namespace, Name string
	Labels          map[string]string
	Node            string // "" while it is not scheduled
	Phase           string
	Ready           bool
	Lost            int // how often it stopped being Ready
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

// Workload is a Deployment, StatefulSet or DaemonSet, reduced to how far its rollout is.
type Workload struct {
	Kind, Namespace, Name string
	Release               string            // the Helm release that owns it, "" without one
	Selector              map[string]string // labels of its pods
	Observed              bool              // the controller has seen the newest spec
	Desired, Updated, Old int               // pods wanted; pods of the newest template; pods of earlier ones
	Stuck                 string            // why its controller can make no pods, in its words; "" if it says nothing
}

// TalosNode is what the Talos API says of a node.
type TalosNode struct {
	Asked    bool
	Err      *Broken // services cannot be listed
	Services map[string]Service
	Etcd     Etcd        // only of control planes
	Given    *TalosGiven // only of control planes; nil while it has not been asked for
}

// Service is a Talos service.
type Service struct {
	State       string // e.g. Running, Waiting, Failed
	Known       bool   // a health check has run
	Healthy     bool
	HealthError string // the health check's last message
	LastEvent   string // the newest event's message
}

// well reports whether the service runs and is healthy.
func (s Service) well() bool { return s.State == "Running" && s.Known && s.Healthy }

// Etcd is what a control plane says of etcd.
type Etcd struct {
	Asked   bool
	Err     *Broken // members cannot be listed
	Members []EtcdMember

	StatusErr *Broken // its own member's status cannot be read
	Leader    uint64  // member id of the leader it follows, 0 without one
	Errors    []string
	Alarms    []string // as etcd names them, with the member, e.g. "NOSPACE of member 8e9e05c52164694d"
}

// EtcdMember is a member as one control plane lists it.
type EtcdMember struct {
	Name    string // "" before the member has started for the first time
	ID      uint64
	Learner bool
	Hosts   []string // addresses of its peer URLs
}

// TalosGiven is what a control plane's Talos gives to the controller manager.
type TalosGiven struct {
	Err                    *Broken
	PodCIDRs, ServiceCIDRs []string
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

// CiliumStatus is `cilium-dbg status` as one agent answers it.
type CiliumStatus struct {
	Pod      string
	Asked    bool
	Err      string   // the report could not be had
	Problems []string // components that are not well, each with what the agent says of it
	Remarks  []string // what the agent tries again and again, in vain so far
	Pools    []string // the ranges it gives its pods addresses from
}
