package live

import (
	"context"
	"slices"

	"github.com/cosi-project/runtime/pkg/safe"
	talosconfig "github.com/siderolabs/talos/pkg/machinery/config"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// misfit names an encryption of a configuration that the disks of a node do not have; "" if all fit, or nothing is known of them. Talos
// takes such a configuration, and does not open the disks at its next boot ("block dev type mismatch"). The status of a volume has what it
// was opened with: HandleEncryptionWithHandler in controllers/block/internal/volumes/encrypt.go, the same in Talos 1.12 to 1.14.
func (c *Cluster) misfit(ctx context.Context, node turn.Node, next talosconfig.Provider) string {
	for id, wanted := range encryptions(next) {
		found, err := safe.StateGetByID[*block.VolumeStatus](ctx, c.talos[node.Address].COSI, id)
		if err != nil || found.TypedSpec().Phase != block.VolumePhaseReady {
			continue // it is not made yet, or it is not known
		}
		made := found.TypedSpec()
		switch encrypted := made.EncryptionProvider != block.EncryptionProviderNone; {
		case encrypted != (wanted != nil), encrypted && !opens(wanted, made.ConfiguredEncryptionKeys):
			return "talos.diskEncryption, with the volume " + id + ","
		}
	}
	return ""
}

// encryptions returns the encryption of each volume that a configuration has, by the volume's id; nil for a volume that is not encrypted.
func encryptions(of talosconfig.Provider) map[string]configconfig.EncryptionConfig {
	wanted := map[string]configconfig.EncryptionConfig{}
	for _, name := range []string{constants.StatePartitionLabel, constants.EphemeralPartitionLabel} {
		if m := of.Machine(); m != nil && m.SystemDiskEncryption().Get(name) != nil {
			continue // a form that Slipway does not write
		}
		wanted[name] = nil
		if volume, declared := of.Volumes().ByName(name); declared {
			wanted[name] = volume.Encryption()
		}
	}
	for _, volume := range of.UserVolumeConfigs() {
		wanted[constants.UserVolumePrefix+volume.Name()] = volume.Encryption()
	}
	return wanted
}

// opens reports whether an encryption has a key of a kind that a volume was opened with. Talos adds and removes the other keys then.
func opens(encryption configconfig.EncryptionConfig, made []string) bool {
	return len(made) == 0 || slices.ContainsFunc(encryption.Keys(), func(key configconfig.EncryptionKey) bool {
		return key.Static() != nil && slices.Contains(made, block.EncryptionKeyStatic.String()) ||
			key.NodeID() != nil && slices.Contains(made, block.EncryptionKeyNodeID.String()) ||
			key.KMS() != nil && slices.Contains(made, block.EncryptionKeyKMS.String()) ||
			key.TPM() != nil && slices.Contains(made, block.EncryptionKeyTPM.String())
	})
}
