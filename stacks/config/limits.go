package config

import "time"

// Limits that are not Slipway's own choice, each with its source.
const (
	maxClusterName = 32  // Cilium: cluster name
	maxClusterID   = 255 // Cilium: cluster id, with its default of at most 255 clusters in a mesh

	minVMID       = 100       // Proxmox VE: lower ids are reserved
	maxVMID       = 999999999 // Proxmox VE: pve-vmid
	maxCores      = 1024      // Proxmox provider: cpu.cores
	maxVLAN       = 4094      // IEEE 802.1Q
	maxBridgeName = 15        // Linux: IFNAMSIZ

	minControlPlaneMemory = 2 * GiB  // Talos: system requirements
	minWorkerMemory       = 1 * GiB  // Talos: system requirements
	minDisk               = 10 * GiB // Talos: system requirements

	podBitsPerNode = 24 // Kubernetes: --node-cidr-mask-size, the share of the pod network that a node gets
	minServiceBits = 12 // Kubernetes: a larger service network is refused
	maxServiceBits = 28 // the cluster DNS address is the tenth of the service network
	maxNodeBits    = 29 // a machine network with room for a gateway, a VIP, a machine and a pool
	maxLabel       = 63 // RFC 1123

	minNodeBits6    = 32  // as much as a provider gives away
	maxNodeBits6    = 120 // a machine network with room for what IPv4 has room for
	minPodBits6     = 32  // as for machines
	maxPodBits6     = 112 // leaves room for 256 shares of the smallest size
	podBitsPerNode6 = 120 // the smallest share of the IPv6 pod network, as large as a node's of the IPv4 one
	minServiceBits6 = 108 // Kubernetes: a larger service network is refused, as for IPv4
	maxServiceBits6 = 124 // the cluster DNS address is the tenth of the service network

	maxControlPlanes = 7   // etcd: recommended at most, for every write goes to all members
	maxDataDisks     = 30  // Proxmox VE: scsi0, which is the system disk, to scsi30
	minDataDisk      = GiB // Talos: a user volume has at least 100MiB; Proxmox VE: disks are made in GiB
	maxPodsPerNode   = 250 // a /24, without what Cilium takes for itself
	maxReplicas      = 10  // more are no use to a cluster of this kind
	minTimeout       = time.Second
	minInterval      = 10 * time.Second // a Git host should not be asked more often
	supportedTalos   = "v1.12"          // the machine configuration's contract that Slipway writes
)

// nodeLabels are the labels of Kubernetes' own that a node may give itself; the admission plugin NodeRestriction
// refuses all others below kubernetes.io and k8s.io, but those with one of nodeLabelPrefixes.
var (
	nodeLabels = []string{
		"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch",
		"topology.kubernetes.io/region", "topology.kubernetes.io/zone",
	}
	nodeLabelPrefixes = []string{"kubelet.kubernetes.io", "node.kubernetes.io"}
)
