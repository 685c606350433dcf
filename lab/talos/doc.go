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
// Packages and files are named after the parts of Talos. A package knows nothing of the nodes that use it:
//
//	accept      whether a node takes a machine configuration, and whether a change needs a reboot
//	apid        front of a configured node's API: forwards calls to one node or many
//	block       disks, system, user and raw volumes, their encryption
//	cosi        COSI resources, which `talosctl get` reads
//	health      the checks of the cluster's health
//	image       names of images, the container images on a node's disk
//	journal     what a node writes: kernel log, logs of services, events
//	kubernetes  what a configuration says of Kubernetes: node, components, manifests, kubeconfig
//	rbac        roles of a caller, and who may call what
//	service     Talos services, their order, states and health
//	trustd      certificates of a node
//	versions    what differs between the minor versions of Talos
//
// The files here are what holds the nodes together; all of them share the lock of their Site:
//
//	site*          all machines of the lab, power, waiting for changes; a VM from power-on to power-off
//	boot*          one run of the operating system: installation, files, upgrade, published status
//	sequence.go    how a boot ends: reboot, shutdown, reset, upgrade; cordon and drain
//	maintenance.go maintenance mode and its API
//	apid.go        the node's own apid and how it finds other nodes
//	identity.go    the certificate of a node's API, and whose certificates it accepts
//	machined*      the API of a configured node, by subject
//	network_*      addresses, links, routes, node IPs
//	service_*      the services of a node, what they wait for and log
//	etcd_*         etcd's members, leader and quorum; the service etcd; snapshots
//	static_pod.go  the restarts of the control plane's components on a node
//	cluster*       nodes with the same cluster.id: control plane, manifests, discovery, virtual IP
//	kubernetes.go  what the simulator needs from control planes and kubelets
//	faults.go      every fault of the lab that a Talos node can have
//
// This is not production code.
package talos
