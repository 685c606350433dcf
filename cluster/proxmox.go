package cluster

// Proxmox is the Proxmox VE cluster that the machines run on.
type Proxmox struct {
	// URL of the Proxmox VE API. Any node of the Proxmox cluster can serve it.
	Endpoint string `json:"endpoint" config:"required" form:"https-host-url" example:"https://pve.home.arpa:8006/"`
	// Name of the Proxmox cluster. Every node gets it as the label `topology.kubernetes.io/region`; the label
	// `topology.kubernetes.io/zone` is the Proxmox node that the machine runs on.
	Cluster string `json:"cluster" form:"kubernetes-label-value" default:"pve" example:"rack-7"`
	// Proxmox nodes that may run machines.
	Nodes []string `json:"nodes" config:"required" items:"1-" form:"proxmox-node" example:"[pve1, pve2, pve3]"`
	// Proxmox nodes of `proxmox.nodes` that run no machine for now. Each machine of theirs migrates to another one, and back once the key
	// is gone. More machines share a Proxmox node meanwhile.
	Maintenance []string `json:"maintenance" form:"proxmox-node" example:"[pve2]"`
	// Allow two control planes on one Proxmox node. A failure of that node then stops both. Use it if the Proxmox cluster has
	// fewer nodes than there are control planes.
	AllowControlPlanesOnOneHost bool `json:"allowControlPlanesOnOneHost" example:"true"`
	// The Proxmox storages in use. Each must exist on every node of `proxmox.nodes`.
	Datastores Datastores `json:"datastores"`
	// SCSI controller of the machines' disks. `virtio-scsi-single` gives each disk a controller and a thread of its own. The makers of Talos
	// recommend `virtio-scsi-pci`, one controller for all disks: on some Proxmox hosts, Talos hangs at boot or finds no disk with the other.
	SCSIController SCSIController `json:"scsiController" default:"virtio-scsi-single" example:"virtio-scsi-pci"`
	// Linux bridge or SDN VNet of the machines' network device.
	Bridge string `json:"bridge" form:"bridge" default:"vmbr0" example:"vmbr1"`
	// VLAN tag of the machines' network device; 0 is untagged.
	VLAN int `json:"vlan" range:"0-4094" default:"0" example:"11"`
	// Tags of every VM, beside Slipway's own.
	Tags []string `json:"tags" form:"proxmox-tag" example:"[lab, team-a]"`
	// Do not verify the certificate of the endpoint. It is better to give Proxmox a certificate that your computer trusts.
	Insecure bool `json:"insecure" example:"true"`
}

// SCSIController is a model of SCSI controller, in Proxmox VE's words.
type SCSIController string

// The SCSI controllers of a VM.
const (
	SCSISingle SCSIController = "virtio-scsi-single" // one for each disk, with a thread of its own
	SCSIShared SCSIController = "virtio-scsi-pci"    // one for all disks
)

// Choices lists the SCSI controllers.
func (SCSIController) Choices() []string { return texts(SCSISingle, SCSIShared) }

// Datastores names the Proxmox storages in use.
type Datastores struct {
	// Storage of the Talos boot image; content type `iso`.
	ISO string `json:"iso" form:"proxmox-storage" default:"local"`
	// The storage of the boot image is shared: all Proxmox nodes see the same files, as on NFS, CIFS or CephFS. The image is then
	// downloaded once, not once for each node.
	ISOShared bool `json:"isoShared" example:"true"`
	// Storage of disks, EFI variables and cloud-init drives; content type `images`.
	Disks string `json:"disks" form:"proxmox-storage" default:"local-lvm" example:"ceph-rbd"`
}
