package qemu

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Built is a Talos that was built for the lab, a folder.
type Built struct {
	Dir        string `json:"-"`
	Version    string `json:"version"`    // e.g. v1.12.6
	Kubernetes string `json:"kubernetes"` // version of its images, e.g. 1.35.8
	Kernel     string `json:"kernel"`     // version of its kernel
}

// Open reads the description of a built Talos. path is its folder, or a file directly in its folder.
func Open(path string) (Built, error) {
	b := Built{Dir: path}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		b.Dir = filepath.Dir(path)
	}
	data, err := os.ReadFile(b.path("talos.json"))
	if err != nil {
		return b, fmt.Errorf("built Talos: %w", err)
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return b, fmt.Errorf("built Talos: %s: %w", b.path("talos.json"), err)
	}
	return b, nil
}

// CA is the file with the certificate and the key of the only CA that this Talos trusts.
func (b Built) CA() string { return b.path("ca.pem") }

// Images is the file with the list of its container images.
func (b Built) Images() string { return b.path("images.json") }

func (b Built) iso() string       { return b.path("talos.iso") }
func (b Built) kernel() string    { return b.path("vmlinuz") }
func (b Built) initramfs() string { return b.path("initramfs.cpio") }

// commandLine are the arguments of its kernel.
func (b Built) commandLine() (string, error) {
	text, err := os.ReadFile(b.path("cmdline"))
	if err != nil {
		return "", fmt.Errorf("built Talos: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func (b Built) path(name string) string { return filepath.Join(b.Dir, name) }
