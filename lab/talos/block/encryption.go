package block

import (
	"errors"
	"slices"

	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
)

// tpmKeys is the content of a TPM's state: the keys with which Talos seals those of volumes. Each TPM has its own.
type tpmKeys struct{ _ int }

// encryption is how a volume is encrypted; nothing in it if it is not.
type encryption struct {
	provider block.EncryptionProviderType
	keys     []string // kinds of the keys that open it: Talos adds and removes keys when it has opened the volume
	sealed   *tpmKeys // of the TPM whose keys alone open it; nil if others do
}

// publish writes the encryption of an open volume into its status.
func (e encryption) publish(status *block.VolumeStatusSpec, id string) {
	if e.provider == block.EncryptionProviderNone {
		return
	}
	status.EncryptionProvider, status.ConfiguredEncryptionKeys = e.provider, e.keys
	status.MountLocation = "/dev/mapper/luks2-" + id
}

// encrypted makes the encryption of a new volume. The caller holds the lock.
func (b *Devices) encrypted(declared configconfig.EncryptionConfig) encryption {
	if declared == nil {
		return encryption{}
	}
	return encryption{provider: declared.Provider(), keys: keysOf(declared), sealed: b.sealing(declared)}
}

// open opens a volume as it is declared, and returns its encryption with the declared keys; Talos's error if none of them opens it. The
// caller holds the lock.
func (b *Devices) open(made encryption, declared configconfig.EncryptionConfig) (encryption, error) {
	if err := errors.Join(mismatch(made.provider, declared), b.unsealError(made.sealed)); err != nil || declared == nil {
		return made, err
	}
	kinds := keysOf(declared)
	if !slices.ContainsFunc(kinds, func(kind string) bool { return slices.Contains(made.keys, kind) }) {
		return made, errors.New("error opening encrypted volume: no handlers available to get encryption keys from: the key of no slot opens it")
	}
	made.keys, made.sealed = kinds, b.sealing(declared)
	return made, nil
}

// openPartition opens a user or raw volume that exists, as the configuration of the boot declares it. The caller holds the lock.
func (b *Devices) openPartition(p *partition) (err error) {
	for _, v := range wantedVolumes(b.opened) {
		if v.id == p.label {
			p.encryption, err = b.open(p.encryption, v.encryption)
			return err
		}
	}
	return nil
}

// sealing returns the keys of the machine's TPM, if nothing else opens a volume. The caller holds the lock.
func (b *Devices) sealing(e configconfig.EncryptionConfig) *tpmKeys {
	if e == nil || b.node.TPM == nil || !slices.Equal(keysOf(e), []string{block.EncryptionKeyTPM.String()}) {
		return nil
	}
	if b.node.TPM.Content == nil {
		b.node.TPM.Content = &tpmKeys{}
	}
	keys, _ := b.node.TPM.Content.(*tpmKeys)
	return keys
}

// unsealError is Talos's error if a volume was sealed by the keys of another TPM. The caller holds the lock.
func (b *Devices) unsealError(sealed *tpmKeys) error {
	if sealed == nil || b.node.TPM != nil && b.node.TPM.Content == any(sealed) {
		return nil
	}
	return errors.New("no handlers available to get encryption keys from: srk name does not match")
}

// encryptionError is Talos's error if the machine cannot store a volume's keys in its TPM. The caller holds the lock.
func (b *Devices) encryptionError(e configconfig.EncryptionConfig) error {
	if e == nil {
		return nil
	}
	for _, key := range e.Keys() {
		tpm := key.TPM()
		switch {
		case tpm == nil:
		case b.node.TPM == nil:
			return errors.New("failed to encrypt volume: error opening TPM device: stat /dev/tpm0: no such file or directory")
		case tpm.CheckSecurebootOnEnroll() && !b.node.SecureBoot():
			return errors.New("failed to encrypt volume: failed to enroll the TPM2 key, as SecureBoot is disabled " +
				"(and checkSecurebootOnEnroll is enabled)")
		}
	}
	return nil
}

// mismatch is Talos's error if a volume is not encrypted in the way in which it is to be opened.
func mismatch(made block.EncryptionProviderType, declared configconfig.EncryptionConfig) error {
	wanted := block.EncryptionProviderNone
	if declared != nil {
		wanted = declared.Provider()
	}
	switch made {
	case wanted:
		return nil
	case block.EncryptionProviderNone:
		return errors.New("block dev type mismatch: xfs != luks")
	}
	return errors.New("filesystem type mismatch: luks != xfs")
}

// keysOf are the kinds of a volume's keys.
func keysOf(declared configconfig.EncryptionConfig) (kinds []string) {
	for _, key := range declared.Keys() {
		for kind, given := range map[block.EncryptionKeyType]bool{
			block.EncryptionKeyStatic: key.Static() != nil, block.EncryptionKeyNodeID: key.NodeID() != nil,
			block.EncryptionKeyKMS: key.KMS() != nil, block.EncryptionKeyTPM: key.TPM() != nil,
		} {
			if given && !slices.Contains(kinds, kind.String()) {
				kinds = append(kinds, kind.String())
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}
