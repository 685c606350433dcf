package cluster

// Kubernetes is what Talos runs.
type Kubernetes struct {
	// Version of Kubernetes, one that `talos.version` runs.
	//
	// renovate: datasource=github-releases depName=kubernetes/kubernetes
	Version string `json:"version" form:"kubernetes-release" default:"v1.35.8" example:"v1.35.8"`
	// Let ordinary pods run on control planes. A cluster without workers needs it.
	AllowSchedulingOnControlPlanes bool `json:"allowSchedulingOnControlPlanes" example:"true"`
}
