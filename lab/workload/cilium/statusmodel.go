package cilium

import "time"

// ciliumTime is a time in Cilium's JSON, which does not leave out the zero time.
func ciliumTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// failed records an error of a controller.
func (c *controllerState) failed(err error) {
	c.ConsecutiveFailureCount++
	c.FailureCount++
	c.LastFailureMsg, c.LastFailureTimestamp = err.Error(), ciliumTime(time.Now())
}

// succeeded records that a controller has done its work.
func (c *controllerState) succeeded() {
	c.ConsecutiveFailureCount, c.LastFailureMsg = 0, ""
	c.SuccessCount++
	c.LastSuccessTimestamp = ciliumTime(time.Now())
}

// These types have the JSON form of Cilium's own models (api/v1/models StatusResponse), as far as the lab fills them:
// names, order, and which empty fields are omitted.
type (
	agentStatus struct {
		AttachMode           string                `json:"attach-mode,omitempty"`
		BandwidthManager     *bandwidthManager     `json:"bandwidth-manager,omitempty"`
		Cilium               *componentStatus      `json:"cilium,omitempty"`
		Cluster              *clusterStatus        `json:"cluster,omitempty"`
		CNIChaining          *modeStatus           `json:"cni-chaining,omitempty"`
		ClusterMesh          *clusterMeshStatus    `json:"cluster-mesh,omitempty"`
		CNIFile              *componentStatus      `json:"cni-file,omitempty"`
		ContainerRuntime     *componentStatus      `json:"container-runtime,omitempty"`
		Controllers          []controllerStatus    `json:"controllers,omitempty"`
		DatapathMode         string                `json:"datapath-mode,omitempty"`
		Encryption           *encryptionStatus     `json:"encryption,omitempty"`
		HostFirewall         *hostFirewall         `json:"host-firewall,omitempty"`
		Hubble               *componentStatus      `json:"hubble,omitempty"`
		IdentityRange        *identityRange        `json:"identity-range,omitempty"`
		IPAM                 *ipamStatus           `json:"ipam,omitempty"`
		KubeProxyReplacement *kubeProxyReplacement `json:"kube-proxy-replacement,omitempty"`
		Kubernetes           *kubernetesStatus     `json:"kubernetes,omitempty"`
		Kvstore              *componentStatus      `json:"kvstore,omitempty"`
		Masquerading         *masquerading         `json:"masquerading,omitempty"`
		NodeMonitor          *nodeMonitor          `json:"nodeMonitor,omitempty"`
		Proxy                *proxyStatus          `json:"proxy,omitempty"`
		Routing              *routing              `json:"routing,omitempty"`
	}
	componentStatus struct {
		Msg   string `json:"msg,omitempty"`
		State string `json:"state,omitempty"`
	}
	modeStatus struct {
		Mode string `json:"mode,omitempty"`
	}
	bandwidthManager struct {
		CongestionControl string   `json:"congestionControl,omitempty"`
		Devices           []string `json:"devices"`
		Enabled           bool     `json:"enabled,omitempty"`
	}
	clusterStatus struct {
		CiliumHealth *componentStatus `json:"ciliumHealth,omitempty"`
		Nodes        []nodeElement    `json:"nodes"`
		Self         string           `json:"self,omitempty"`
	}
	nodeElement struct {
		HealthEndpointAddress *nodeAddressing     `json:"health-endpoint-address,omitempty"`
		IngressAddress        *nodeAddressing     `json:"ingress-address,omitempty"`
		Name                  string              `json:"name,omitempty"`
		PrimaryAddress        *nodeAddressing     `json:"primary-address,omitempty"`
		SecondaryAddresses    []addressingElement `json:"secondary-addresses"`
		Source                string              `json:"source,omitempty"`
	}
	nodeAddressing struct {
		IPv4 *addressingElement `json:"ipv4,omitempty"`
		IPv6 *addressingElement `json:"ipv6,omitempty"`
	}
	addressingElement struct {
		AddressType string `json:"address-type,omitempty"`
		AllocRange  string `json:"alloc-range,omitempty"`
		Enabled     bool   `json:"enabled,omitempty"`
		IP          string `json:"ip,omitempty"`
	}
	controllerStatus struct {
		Name   string          `json:"name,omitempty"`
		Status controllerState `json:"status"`
	}
	controllerState struct {
		ConsecutiveFailureCount int64  `json:"consecutive-failure-count,omitempty"`
		FailureCount            int64  `json:"failure-count,omitempty"`
		LastFailureMsg          string `json:"last-failure-msg,omitempty"`
		LastFailureTimestamp    string `json:"last-failure-timestamp,omitempty"`
		LastSuccessTimestamp    string `json:"last-success-timestamp,omitempty"`
		SuccessCount            int64  `json:"success-count,omitempty"`
	}
	clusterMeshStatus struct {
		Clusters          []remoteCluster `json:"clusters"`
		NumGlobalServices int64           `json:"num-global-services,omitempty"`
	}
	remoteCluster struct {
		Config            *remoteClusterConfig `json:"config,omitempty"`
		Connected         bool                 `json:"connected,omitempty"`
		LastFailure       string               `json:"last-failure,omitempty"`
		Name              string               `json:"name,omitempty"`
		NumEndpoints      int64                `json:"num-endpoints,omitempty"`
		NumFailures       int64                `json:"num-failures,omitempty"`
		NumIdentities     int64                `json:"num-identities,omitempty"`
		NumNodes          int64                `json:"num-nodes,omitempty"`
		NumSharedServices int64                `json:"num-shared-services,omitempty"`
		Ready             bool                 `json:"ready,omitempty"`
		Status            string               `json:"status,omitempty"`
		Synced            *remoteClusterSynced `json:"synced,omitempty"`
	}
	remoteClusterConfig struct {
		ClusterID             int64 `json:"cluster-id,omitempty"`
		Kvstoremesh           bool  `json:"kvstoremesh,omitempty"`
		Required              bool  `json:"required,omitempty"`
		Retrieved             bool  `json:"retrieved,omitempty"`
		ServiceExportsEnabled *bool `json:"service-exports-enabled,omitempty"`
		SyncCanaries          bool  `json:"sync-canaries,omitempty"`
	}
	remoteClusterSynced struct {
		Endpoints  bool `json:"endpoints,omitempty"`
		Identities bool `json:"identities,omitempty"`
		Nodes      bool `json:"nodes,omitempty"`
		Services   bool `json:"services,omitempty"`
	}
	encryptionStatus struct {
		Mode      string           `json:"mode,omitempty"`
		Msg       string           `json:"msg,omitempty"`
		Wireguard *wireguardStatus `json:"wireguard,omitempty"`
	}
	wireguardStatus struct {
		Interfaces     []wireguardInterface `json:"interfaces"`
		NodeEncryption string               `json:"node-encryption,omitempty"`
	}
	wireguardInterface struct {
		ListenPort int64  `json:"listen-port,omitempty"`
		Name       string `json:"name,omitempty"`
		PeerCount  int64  `json:"peer-count,omitempty"`
	}
	hostFirewall struct {
		Devices []string `json:"devices"`
		Mode    string   `json:"mode,omitempty"`
	}
	identityRange struct {
		MaxIdentity int64 `json:"max-identity,omitempty"`
		MinIdentity int64 `json:"min-identity,omitempty"`
	}
	ipamStatus struct {
		Allocations map[string]string `json:"allocations,omitempty"`
		IPv4        []string          `json:"ipv4"`
		IPv6        []string          `json:"ipv6"`
		Status      string            `json:"status,omitempty"`
	}
	kubeProxyReplacement struct {
		DeviceList          []device `json:"deviceList"`
		Devices             []string `json:"devices"`
		DirectRoutingDevice string   `json:"directRoutingDevice,omitempty"`
		Mode                string   `json:"mode,omitempty"`
	}
	device struct {
		IP   []string `json:"ip"`
		Name string   `json:"name,omitempty"`
	}
	kubernetesStatus struct {
		APIVersions []string `json:"k8s-api-versions"`
		Msg         string   `json:"msg,omitempty"`
		State       string   `json:"state,omitempty"`
	}
	masquerading struct {
		Enabled             bool         `json:"enabled,omitempty"`
		EnabledProtocols    *ipProtocols `json:"enabledProtocols,omitempty"`
		Mode                string       `json:"mode,omitempty"`
		SnatExclusionCIDRv4 string       `json:"snat-exclusion-cidr-v4,omitempty"`
		SnatExclusionCIDRv6 string       `json:"snat-exclusion-cidr-v6,omitempty"`
	}
	ipProtocols struct {
		IPv4 bool `json:"ipv4,omitempty"`
		IPv6 bool `json:"ipv6,omitempty"`
	}
	nodeMonitor struct {
		CPUs     int64 `json:"cpus,omitempty"`
		NPages   int64 `json:"npages,omitempty"`
		PageSize int64 `json:"pagesize,omitempty"`
	}
	proxyStatus struct {
		EnvoyDeploymentMode string `json:"envoy-deployment-mode,omitempty"`
		IP                  string `json:"ip,omitempty"`
		PortRange           string `json:"port-range,omitempty"`
		Redirects           []any  `json:"redirects"`
	}
	routing struct {
		InterHostRoutingMode string `json:"inter-host-routing-mode,omitempty"`
		IntraHostRoutingMode string `json:"intra-host-routing-mode,omitempty"`
		TunnelProtocol       string `json:"tunnel-protocol,omitempty"`
	}
)
