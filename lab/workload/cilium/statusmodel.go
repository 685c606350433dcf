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

// These types have the JSON form of Cilium's own models (api/v1/models StatusResponse), as far as the product and
// people who look for a fault read them: names, order, and which empty fields are omitted.
type (
	agentStatus struct {
		Cilium           *componentStatus   `json:"cilium,omitempty"`
		ClusterMesh      *clusterMeshStatus `json:"cluster-mesh,omitempty"`
		CNIFile          *componentStatus   `json:"cni-file,omitempty"`
		ContainerRuntime *componentStatus   `json:"container-runtime,omitempty"`
		Controllers      []controllerStatus `json:"controllers,omitempty"`
		IPAM             *ipamStatus        `json:"ipam,omitempty"`
		Kubernetes       *componentStatus   `json:"kubernetes,omitempty"`
		Kvstore          *componentStatus   `json:"kvstore,omitempty"`
	}
	componentStatus struct {
		Msg   string `json:"msg,omitempty"`
		State string `json:"state,omitempty"`
	}
	ipamStatus struct {
		Status string `json:"status,omitempty"`
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
		Clusters []remoteCluster `json:"clusters"`
	}
	remoteCluster struct {
		Config      *remoteClusterConfig `json:"config,omitempty"`
		Connected   bool                 `json:"connected,omitempty"`
		LastFailure string               `json:"last-failure,omitempty"`
		Name        string               `json:"name,omitempty"`
		NumFailures int64                `json:"num-failures,omitempty"`
		NumNodes    int64                `json:"num-nodes,omitempty"`
		Ready       bool                 `json:"ready,omitempty"`
		Status      string               `json:"status,omitempty"`
		Synced      *remoteClusterSynced `json:"synced,omitempty"`
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
)
