// Package talos simulates Talos Linux v1.12 nodes as guests of the lab's virtual machines.
//
// A Site holds all machines and the clusters that they form. It implements vm.Firmware: a VM that is powered on boots
// from its first bootable drive, answers in maintenance mode from the boot medium, takes a machine configuration that
// Talos's own machinery validates, installs itself to disk, reboots and serves the Talos API over mTLS.
//
// Real are the API's protobufs and wire behaviour, the machine configuration's parsing and validation, all certificates
// and the COSI resources' types. Simulated are boot, installation, services, etcd membership, quorum and the virtual IP.
// What Kubernetes is made of stands behind the interface Kubernetes. Not modelled: files on disk, containers, DHCP,
// KubeSpan, the keys of encrypted disks, upgrades, a split brain of etcd. Such calls answer Unimplemented and say so.
//
// It is no production code.
package talos
