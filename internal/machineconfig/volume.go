package machineconfig

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/siderolabs/go-pointer"
	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	talos "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	blockres "github.com/siderolabs/talos/pkg/machinery/resources/block"
)

// DiskEncryption is the source of the key that encrypts Talos's partitions and volumes. Raw disks are not encrypted. Talos encrypts a
// partition when it creates it: to change the encryption of a machine, the machine must be recreated.
type DiskEncryption string

// The kinds of disk encryption.
const (
	EncryptNone   DiskEncryption = "none"
	EncryptNodeID DiskEncryption = "nodeID" // key derived from the machine's UUID; protects a disk that is removed from it
	EncryptTPM    DiskEncryption = "tpm"    // key sealed in the VM's TPM; Talos requires SecureBoot
)

// DiskUse is what a data disk is used for.
type DiskUse string

// The uses of a data disk.
const (
	RawDisk    DiskUse = "raw"    // Talos does not touch it; for a storage operator
	VolumeDisk DiskUse = "volume" // Talos formats it (XFS) and mounts it at /var/mnt/NAME
)

// DataDisk is a disk of a machine that is not the system disk.
type DataDisk struct {
	Name string  // 1 to 34 letters, digits and hyphens, unique on the node
	Use  DiskUse // "" means RawDisk
}

// scsiDevice returns the name of a VM's SCSI disk by its place on the bus. Unlike /dev/sda it always names the same disk.
func scsiDevice(index int) string {
	return "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi" + strconv.Itoa(index)
}

// volumes returns the documents that tell Talos how to use the disks.
func (c Cluster) volumes(n Node) ([]config.Document, error) {
	docs := c.systemVolumes()
	for i, disk := range n.DataDisks {
		if disk.Use != VolumeDisk {
			continue
		}
		match, err := cel.ParseBooleanExpression(strconv.Quote(scsiDevice(i+1))+" in disk.symlinks", celenv.DiskLocator())
		if err != nil {
			return nil, err
		}
		doc := block.NewUserVolumeConfigV1Alpha1()
		doc.MetaName = disk.Name
		doc.ProvisioningSpec = block.ProvisioningSpec{
			DiskSelectorSpec:    block.DiskSelector{Match: match},
			ProvisioningGrow:    pointer.To(true),
			ProvisioningMinSize: block.MustByteSize("1GiB"), // Talos requires one; the volume takes the whole disk
		}
		if c.encrypts() {
			doc.EncryptionSpec = c.encryption(disk.Name)
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// systemVolumes returns the documents that encrypt STATE, which holds the machine's secrets, and EPHEMERAL, which holds the pods' data.
// They replace machine.systemDiskEncryption, which is deprecated since Talos 1.11.
func (c Cluster) systemVolumes() []config.Document {
	if !c.encrypts() {
		return nil
	}
	var docs []config.Document
	for _, name := range []string{constants.StatePartitionLabel, constants.EphemeralPartitionLabel} {
		doc := block.NewVolumeConfigV1Alpha1()
		doc.MetaName = name
		doc.EncryptionSpec = c.encryption(name)
		docs = append(docs, doc)
	}
	return docs
}

func (c Cluster) encrypts() bool { return c.DiskEncryption != "" && c.DiskEncryption != EncryptNone }

// encryption returns how a volume is encrypted.
func (c Cluster) encryption(volume string) block.EncryptionSpec {
	key := block.EncryptionKey{KeyNodeID: &block.EncryptionKeyNodeID{}}
	if c.DiskEncryption == EncryptTPM {
		key = block.EncryptionKey{KeyTPM: &block.EncryptionKeyTPM{TPMCheckSecurebootStatusOnEnroll: pointer.To(true)}}
		if volume != constants.StatePartitionLabel {
			key.KeyLockToSTATE = pointer.To(true) // the key does not open the volume beside another STATE
		}
	}
	return block.EncryptionSpec{EncryptionProvider: blockres.EncryptionProviderLUKS2, EncryptionKeys: []block.EncryptionKey{key}}
}

func (c Cluster) validateEncryption(contract *talos.VersionContract) error {
	switch c.DiskEncryption {
	case "", EncryptNone:
		return nil
	case EncryptNodeID, EncryptTPM:
	default:
		return fmt.Errorf("diskEncryption: %q is unknown; use %s, %s or %s", c.DiskEncryption, EncryptNone, EncryptNodeID, EncryptTPM)
	}
	if !contract.VolumeConfigEncryptionSupported() {
		return fmt.Errorf("diskEncryption: %s needs Talos v1.11 or later, not %s", c.DiskEncryption, c.TalosVersion)
	}
	return nil
}

// validateDisks checks the data disks. Talos cannot, because raw disks are not in its configuration.
func (n Node) validateDisks() error {
	var errs []error
	seen := map[string]bool{}
	for i, disk := range n.DataDisks {
		at := indexed("dataDisks", i)
		if disk.Name == "" {
			errs = append(errs, fmt.Errorf("%s: name: empty; name the disk", at))
		}
		if seen[disk.Name] {
			errs = append(errs, fmt.Errorf("%s: name: %s is taken; each disk of a node needs its own", at, disk.Name))
		}
		seen[disk.Name] = true
		switch disk.Use {
		case "", RawDisk, VolumeDisk:
		default:
			errs = append(errs, fmt.Errorf("%s: use: %q is unknown; use %s or %s", at, disk.Use, RawDisk, VolumeDisk))
		}
	}
	return errors.Join(errs...)
}
