package factory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slipway-platform/slipway/lab/vm"
)

const (
	// magic begins every image of the lab, so that another file in a CD-ROM drive is recognised as not bootable.
	magic = "SLIPWAY-LAB-TALOS-IMAGE 1\n"
	// imageSize is the length of every image: small, and a multiple of 1 KiB, as with real images.
	imageSize = 64 << 10
)

// payload is the description in an image.
type payload struct {
	Kind       kind     `json:"kind"`
	Version    string   `json:"version"`
	Schematic  string   `json:"schematic"`
	Platform   string   `json:"platform"`
	Arch       string   `json:"arch"`
	Extensions []string `json:"extensions,omitempty"`
	SecureBoot bool     `json:"secureBoot,omitempty"`
}

// build creates the content of an ISO image or of a raw disk. The same description gives the same bytes.
func build(p payload) ([]byte, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	content := append([]byte(magic), body...)
	content = append(content, '\n')
	if len(content) > imageSize {
		return nil, fmt.Errorf("image: description is %d bytes, more than %d", len(content), imageSize)
	}
	return append(content, make([]byte, imageSize-len(content))...), nil
}

// Parse reads the content of an ISO image that this factory built. It leaves the name empty, which only the datastore
// knows. A disk image in a CD-ROM drive does not boot.
func Parse(content []byte) (*vm.Image, error) {
	rest, ok := bytes.CutPrefix(content, []byte(magic))
	if !ok {
		return nil, errors.New("image: not bootable: no image of the lab's factory")
	}
	line, _, ok := bytes.Cut(rest, []byte("\n"))
	if !ok {
		return nil, errors.New("image: cut short")
	}
	var p payload
	if err := json.Unmarshal(line, &p); err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	if p.Kind != kindISO {
		return nil, fmt.Errorf("image: not bootable: an image of the kind %q in a CD-ROM drive", p.Kind)
	}
	return &vm.Image{Version: p.Version, Schematic: p.Schematic, Platform: p.Platform, Extensions: p.Extensions, SecureBoot: p.SecureBoot}, nil
}
