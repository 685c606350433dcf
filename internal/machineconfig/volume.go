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

// DiskEncryption is where the key to what Talos itself puts on a machine's disks comes from: its partitions and volumes, not
// raw disks. They are encrypted when Talos makes them: on a machine that runs, only making it anew changes it.
type DiskEncryption string

// The kinds of disk encryption.
const (
	EncryptNone   DiskEncryption = "none"
	EncryptNodeID DiskEncryption = "nodeID" // key derived from the machine's UUID: guards a disk that is given away
	EncryptTPM    DiskEncryption = "tpm"    // key sealed in the VM's TPM; Talos wants SecureBoot for it
)

// DiskUse is what becomes of a data disk.
type DiskUse string

// The uses of a data disk.
const (
	RawDisk    DiskUse = "raw"    // Talos leaves it alone, for a storage operator
	VolumeDisk DiskUse = "volume" // Talos formats it (XFS) and mounts it at /var/mnt/NAME
)

// DataDisk is a disk beside the system disk.
type DataDisk struct {
	Name string  // 1 to 34 letters, digits and hyphens, unique on the node
	Use  DiskUse // "" means RawDisk
}

// scsiDevice is the name of a VM's SCSI disk that follows its place on the bus.
func scsiDevice(index int) string {
	return "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi" + strconv.Itoa(index)
}

// volumes are the documents that state how Talos uses the disks.
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
			ProvisioningMinSize: block.MustByteSize("1GiB"), // Talos wants one; the volume takes the whole disk
		}
		if c.encrypts() {
			doc.EncryptionSpec = c.encryption(disk.Name)
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// systemVolumes encrypts what holds the machine's secrets and the pods' data. It is a document to each: since Talos 1.11
// machine.systemDiskEncryption is the old way.
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

// encryption is how a volume is encrypted.
func (c Cluster) encryption(volume string) block.EncryptionSpec {
	key := block.EncryptionKey{KeyNodeID: &block.EncryptionKeyNodeID{}}
	if c.DiskEncryption == EncryptTPM {
		key = block.EncryptionKey{KeyTPM: &block.EncryptionKeyTPM{TPMCheckSecurebootStatusOnEnroll: pointer.To(true)}}
		if volume != constants.StatePartitionLabel {
			key.KeyLockToSTATE = pointer.To(true) // of no use to who has swapped STATE for another
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

// validateDisks checks what Talos cannot know: raw disks have no place in its configuration.
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
