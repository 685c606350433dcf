// Package qemu runs the VMs of the simulated Proxmox VE in QEMU, without KVM, and boots a Talos that was built for it. It is not
// production code.
//
// A VM has the cores, memory, disks, cards, UUID, machine type and firmware of its hardware. Its disks are qcow2 files that exist as long
// as their volumes. In its CD-ROM drive it has the ISO image of the built Talos, whatever the image factory served, and the cloud-init
// drive has the files that Proxmox VE writes. All output of its serial port is in a log.
//
// Not modelled: a TPM, Secure Boot, VLANs, boot from the network, graphics, SMBIOS beside the UUID, hot plug of anything but SCSI disks,
// the place of CD-ROM drives in a q35 machine, and the kernel arguments and extensions of the schematic: the built Talos has its own.
package qemu
