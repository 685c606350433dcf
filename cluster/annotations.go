package cluster

// Keys of the annotations that Slipway writes into clusters. Those of pod templates are part of the pods: another key replaces the pods.
const (
	AnnotationCluster    = "slipway-platform.github.io/cluster"          // of a FluxInstance: name of the cluster whose stack made it
	AnnotationCordoned   = "slipway-platform.github.io/cordoned"         // of a node that Slipway has cordoned; Talos has a key of its own
	AnnotationReads      = "slipway-platform.github.io/reads"            // checksum of what a pod reads only when it starts
	AnnotationMeshCA     = "slipway-platform.github.io/mesh-ca"          // checksum of the mesh's CA, of pods that read it when they start
	AnnotationGatewayAPI = "slipway-platform.github.io/gateway-api-crds" // version of the CRDs that Cilium's operator looks for when it starts
)

// Keys that Slipway wrote until 2026-11-24. They are read as well, and not written any more. A later release may stop reading the key of
// nodes, because no node stays cordoned for long; and the key of FluxInstances once every cluster has the new one. components/gitops keeps
// the old key of existing FluxInstances.
const (
	OldAnnotationCluster  = "slipway/cluster"
	OldAnnotationCordoned = "slipway.dev/cordoned"
)
