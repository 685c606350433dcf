package factory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"gopkg.in/yaml.v3"
)

// Schematic is an image customization as the Image Factory accepts it. The order of the fields and their omitempty
// determine the canonical form and so the id. Both follow the public factory.
type Schematic struct {
	Overlay       Overlay       `yaml:"overlay,omitempty"`
	Customization Customization `yaml:"customization"`
}

// Overlay is a board overlay. The lab uses it for the id only.
type Overlay struct {
	Image   string         `yaml:"image"`
	Name    string         `yaml:"name"`
	Options map[string]any `yaml:"options,omitempty"`
}

// Customization is the difference to the plain Talos image.
type Customization struct {
	ExtraKernelArgs  []string         `yaml:"extraKernelArgs,omitempty"`
	Meta             []MetaValue      `yaml:"meta,omitempty"`
	SystemExtensions SystemExtensions `yaml:"systemExtensions,omitempty"`
	SecureBoot       SecureBoot       `yaml:"secureboot,omitempty"`
}

// MetaValue is an initial value of the META partition.
type MetaValue struct {
	Key   uint8  `yaml:"key"`
	Value string `yaml:"value"`
}

// SystemExtensions lists the official extensions in the image, e.g. "siderolabs/qemu-guest-agent".
type SystemExtensions struct {
	OfficialExtensions []string `yaml:"officialExtensions,omitempty"`
}

// SecureBoot holds the secure boot options.
type SecureBoot struct {
	IncludeWellKnownCertificates bool `yaml:"includeWellKnownCertificates,omitempty"`
}

// ParseSchematic decodes a schematic strictly: an unknown key is an error, as at the public factory.
func ParseSchematic(data []byte) (Schematic, error) {
	var s Schematic
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&s); err != nil {
		if errors.Is(err, io.EOF) {
			return s, errors.New("schematic is empty")
		}
		return s, err
	}
	return s, nil
}

// ID is the SHA-256 of the schematic's canonical YAML, in hexadecimal. Schematics that differ only in their notation
// have the same id.
func (s Schematic) ID() (string, error) {
	canonical, err := yaml.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("schematic: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}
