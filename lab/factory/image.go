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
	Version    string   `json:"version"`
	Schematic  string   `json:"schematic"`
	Platform   string   `json:"platform"`
	Arch       string   `json:"arch"`
	Extensions []string `json:"extensions,omitempty"`
	SecureBoot bool     `json:"secureBoot,omitempty"`
}

// build creates the content of an ISO image. The same description gives the same bytes.
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
// knows.
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
	return &vm.Image{Version: p.Version, Schematic: p.Schematic, Platform: p.Platform, Extensions: p.Extensions, SecureBoot: p.SecureBoot}, nil
}
