// Package contract defines the outputs of a stack, which people, other stacks and tools read: their names and the version of
// their meaning. It imports no Pulumi.
//
// Every output is a flat scalar, because a StackReference reads strings and numbers only. It returns nil for a missing output, so
// a reader must check Version first.
package contract

// Version is the number of incompatible versions of the outputs so far. A renamed output, or one with another form, needs a new
// Version. A new output does not: Read accepts a stack that was brought up without it. Read takes from an older version what it can.
const Version = 1

// Names of the outputs. They are part of the contract: a rename needs a new Version.
const (
	ContractVersion = "contractVersion" // number; Version

	ClusterName = "clusterName" // config cluster.name
	ClusterID   = "clusterId"   // number; config cluster.id
	StorageRole = "storageRole" // config storage.role

	StorageProvider = "storageProvider" // config storage.provider; only of a consumer

	KubernetesEndpoint = "kubernetesEndpoint" // https://VIP:6443
	TalosEndpoints     = "talosEndpoints"     // the control planes' addresses, comma separated
	Nodes              = "nodes"              // the machines' names, control planes first, comma separated
	ClusterVIP         = "clusterVip"         // config network.vip
	NodeCIDR           = "nodeCidr"           // config network.nodeCIDR
	PodCIDR            = "podCidr"            // config network.podCIDR
	ServiceCIDR        = "serviceCidr"        // config network.serviceCIDR
	LBPoolStart        = "lbPoolStart"        // config network.loadBalancers.start
	LBPoolStop         = "lbPoolStop"         // config network.loadBalancers.stop
	MeshIP             = "meshIp"             // config network.loadBalancers.mesh
	GatewayIP          = "gatewayIp"          // config network.loadBalancers.gateway
	Domain             = "domain"             // config gitops.settings.DOMAIN, in lower case; only with it

	// The second family; only with config network.ipv6.
	NodeCIDR6    = "nodeCidr6"    // config network.ipv6.nodeCIDR
	PodCIDR6     = "podCidr6"     // config network.ipv6.podCIDR
	ServiceCIDR6 = "serviceCidr6" // config network.ipv6.serviceCIDR
	LBPoolStart6 = "lbPoolStart6" // config network.ipv6.loadBalancers.start; only with that pool
	LBPoolStop6  = "lbPoolStop6"  // config network.ipv6.loadBalancers.stop; only with that pool

	// The machines, in the order of nodes, each list comma separated.
	NodeAddresses  = "nodeAddresses"  // their IPv4 addresses
	NodeAddresses6 = "nodeAddresses6" // their IPv6 addresses; only with config network.ipv6
	MACs           = "macs"           // their MAC addresses
	VMIDs          = "vmIds"          // their VM ids

	ProxmoxCluster  = "proxmoxCluster"  // config proxmox.cluster
	ProxmoxEndpoint = "proxmoxEndpoint" // config proxmox.endpoint

	TalosVersion      = "talosVersion"      // such as v1.12.7
	KubernetesVersion = "kubernetesVersion" // such as v1.35.8
	CiliumVersion     = "ciliumVersion"     // such as 1.18.7

	Kubeconfig  = "kubeconfig"  // secret; cluster-admin kubeconfig, YAML
	Talosconfig = "talosconfig" // secret; talosctl's configuration, YAML

	GateSpec       = "gateSpec"       // the state that the gate expects, JSON without credentials; slipway-probe gate --spec reads it
	GateReport     = "gateReport"     // the readiness gate's report, one line of JSON
	HandoverReport = "handoverReport" // the GitOps handover's report, one line of JSON
	GitRevision    = "gitRevision"    // the revision that Flux has applied, such as main@sha1:…

	MeshSpec   = "meshSpec"   // the mesh that the mesh gate expects, JSON without credentials; only with config mesh.peers
	MeshReport = "meshReport" // the mesh gate's report, one line of JSON; only with config mesh.peers

	// The storage gate; only with config storage.classes or storage.drivers.
	StorageSpec   = "storageSpec"   // the storage that the gate expects, JSON without credentials
	StorageReport = "storageReport" // the gate's report, one line of JSON

	SealedSecretsCert = "sealedSecretsCert" // certificate for kubeseal --cert, PEM; only with config secrets.sealedSecrets
)

// Kind is the form of an output's value.
type Kind string

// The kinds. A StackReference has getters for these and no others.
const (
	String Kind = "string"
	Number Kind = "number"
)

// Output describes one output.
type Output struct {
	Name   string
	Kind   Kind
	Secret bool // encrypted in the state, and secret to readers

	Optional bool // not an output of every stack
}

// Outputs returns all outputs, in the order of the names above.
func Outputs() []Output {
	return []Output{
		{Name: ContractVersion, Kind: Number},
		{Name: ClusterName, Kind: String},
		{Name: ClusterID, Kind: Number},
		{Name: StorageRole, Kind: String},
		{Name: StorageProvider, Kind: String, Optional: true},
		{Name: KubernetesEndpoint, Kind: String},
		{Name: TalosEndpoints, Kind: String},
		{Name: Nodes, Kind: String},
		{Name: ClusterVIP, Kind: String},
		{Name: NodeCIDR, Kind: String},
		{Name: PodCIDR, Kind: String},
		{Name: ServiceCIDR, Kind: String},
		{Name: LBPoolStart, Kind: String},
		{Name: LBPoolStop, Kind: String},
		{Name: MeshIP, Kind: String},
		{Name: GatewayIP, Kind: String},
		{Name: Domain, Kind: String, Optional: true},
		{Name: NodeCIDR6, Kind: String, Optional: true},
		{Name: PodCIDR6, Kind: String, Optional: true},
		{Name: ServiceCIDR6, Kind: String, Optional: true},
		{Name: LBPoolStart6, Kind: String, Optional: true},
		{Name: LBPoolStop6, Kind: String, Optional: true},
		{Name: NodeAddresses, Kind: String},
		{Name: NodeAddresses6, Kind: String, Optional: true},
		{Name: MACs, Kind: String},
		{Name: VMIDs, Kind: String},
		{Name: ProxmoxCluster, Kind: String},
		{Name: ProxmoxEndpoint, Kind: String},
		{Name: TalosVersion, Kind: String},
		{Name: KubernetesVersion, Kind: String},
		{Name: CiliumVersion, Kind: String},
		{Name: Kubeconfig, Kind: String, Secret: true},
		{Name: Talosconfig, Kind: String, Secret: true},
		{Name: GateSpec, Kind: String},
		{Name: GateReport, Kind: String},
		{Name: HandoverReport, Kind: String},
		{Name: GitRevision, Kind: String},
		{Name: MeshSpec, Kind: String, Optional: true},
		{Name: MeshReport, Kind: String, Optional: true},
		{Name: StorageSpec, Kind: String, Optional: true},
		{Name: StorageReport, Kind: String, Optional: true},
		{Name: SealedSecretsCert, Kind: String, Optional: true},
	}
}
