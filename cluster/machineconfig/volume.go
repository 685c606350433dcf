package machineconfig

import (
	"strconv"

	"github.com/siderolabs/go-pointer"
	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	blockres "github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/slipway-platform/slipway/cluster"
)

// volumes returns the documents that tell Talos how to use the disks.
func (c model) volumes(n cluster.Machine) ([]config.Document, error) {
	docs := systemVolumes(n.DiskEncryption)
	for i, disk := range n.DataDisks {
		if disk.Use != cluster.DiskVolume {
			continue
		}
		match, err := cel.ParseBooleanExpression(strconv.Quote(cluster.DiskPath(i+1))+" in disk.symlinks", celenv.DiskLocator())
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
		if n.DiskEncryption.Encrypts() {
			doc.EncryptionSpec = encryption(n.DiskEncryption, disk.Name)
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// systemVolumes returns the documents that encrypt STATE, which holds the machine's secrets, and EPHEMERAL, which holds the pods' data.
// They replace machine.systemDiskEncryption, which is deprecated since Talos 1.11.
func systemVolumes(by cluster.DiskEncryption) []config.Document {
	if !by.Encrypts() {
		return nil
	}
	var docs []config.Document
	for _, name := range []string{constants.StatePartitionLabel, constants.EphemeralPartitionLabel} {
		doc := block.NewVolumeConfigV1Alpha1()
		doc.MetaName = name
		doc.EncryptionSpec = encryption(by, name)
		docs = append(docs, doc)
	}
	return docs
}

// encryption returns how a volume is encrypted.
func encryption(by cluster.DiskEncryption, volume string) block.EncryptionSpec {
	key := block.EncryptionKey{KeyNodeID: &block.EncryptionKeyNodeID{}}
	if by.SecureBoot() {
		key = block.EncryptionKey{KeyTPM: &block.EncryptionKeyTPM{TPMCheckSecurebootStatusOnEnroll: pointer.To(true)}}
		if volume != constants.StatePartitionLabel {
			key.KeyLockToSTATE = pointer.To(true) // the key does not open the volume beside another STATE
		}
	}
	return block.EncryptionSpec{EncryptionProvider: blockres.EncryptionProviderLUKS2, EncryptionKeys: []block.EncryptionKey{key}}
}
