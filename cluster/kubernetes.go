package cluster

// Kubernetes is the version and the scheduling of Kubernetes.
type Kubernetes struct {
	// Version of Kubernetes. `talos.version` must support it. A later version upgrades the running nodes, one after the other.
	//
	// renovate: datasource=github-releases depName=kubernetes/kubernetes
	Version string `json:"version" form:"kubernetes-release" default:"v1.36.6"`
	// Allow ordinary pods on control planes. A cluster without workers requires it.
	AllowSchedulingOnControlPlanes bool `json:"allowSchedulingOnControlPlanes" example:"true"`
	// Metrics for `kubectl top` and for autoscaling of pods: the tree brings metrics-server, and each kubelet gets a certificate of the
	// cluster's CA: see [metrics of nodes and pods](gitops.md#metrics-of-nodes-and-pods).
	MetricsServer bool `json:"metricsServer" example:"true"`
}
