// Package talos simulates Talos Linux nodes, of the versions 1.12 to 1.14, as guests of the lab's virtual machines.
//
// A Site holds all machines and the clusters that they form. It implements vm.Firmware: a VM that is powered on boots
// from its first bootable drive, answers in maintenance mode when it has booted from an image, accepts a machine
// configuration that Talos's own machinery validates, installs itself to disk, reboots and serves the Talos API over
// mTLS.
//
// Real are the API's protobufs and wire behaviour, parsing and validation of the machine configuration, all
// certificates, the types of the COSI resources, and the checks of the cluster's health. Simulated are boot, installation,
// services, etcd membership, quorum and the virtual IP. Callers of the interface Kubernetes provide control plane and
// kubelets. Not modelled: files on disk, containers, DHCP, KubeSpan, the keys of encrypted disks, two etcd
// clusters in one Talos cluster. Such calls answer Unimplemented with a message that says so.
//
// Packages and files are named after the parts of Talos:
//
//	apid           front of a configured node's API: forwards calls to one node or many
//	rbac           roles of a caller, and who may call what
//	trustd         certificates of a node
//	cosi           COSI resources, which `talosctl get` reads
//	apid.go        the node's own apid and how it finds other nodes
//	block_*        disks, system, user and raw volumes
//	boot*          one run of the operating system: sequences, installation, kernel log, events, status
//	cluster*       nodes with the same cluster.id: control plane, discovery, virtual IP
//	etcd_*         etcd's members, leader and quorum; the service etcd
//	identity.go    the certificate of a node's API, and whose certificates it accepts
//	images.go      the container images on a node's disk
//	faults.go      every fault of the lab that a Talos node can have
//	kubernetes*    what the simulator needs from control planes and kubelets
//	machined*      the API of a configured node, by subject
//	maintenance.go maintenance mode and its API
//	network_*      addresses, links, routes, node IPs
//	release.go     what differs between the minor versions of Talos; boot entries
//	sequence.go    how a boot ends: reboot, shutdown, reset, upgrade; cordon and drain
//	service*       Talos services, their states, health and logs
//	static_pod.go  the components of the control plane on a node, and their restarts
//	site*          all machines of the lab, power, waiting for changes
//
// This is not production code.
package talos
