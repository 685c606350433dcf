// Package image reads names of container images, and holds the images on the disk of a Talos node.
package image

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
)

// Tag is the part after the last colon of an image reference, without a digest.
func Tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	slash := strings.LastIndex(image, "/")
	if colon := strings.LastIndex(image, ":"); colon > slash {
		return image[colon+1:]
	}
	return ""
}

// Installer returns schematic and version of an installer image of an image factory:
// factory.talos.dev/nocloud-installer/<schematic>:<version>, or nocloud-installer-secureboot. The schematic of another
// image is empty; it has no extensions.
func Installer(image string) (schematic, version string) {
	version = Tag(image)
	name := strings.TrimSuffix(image, ":"+version)
	if kind := strings.TrimSuffix(path.Base(path.Dir(name)), "-secureboot"); strings.HasSuffix(kind, "installer") {
		schematic = path.Base(name)
	}
	return schematic, version
}

// IsInstaller tells whether an image is an installer, by its name.
func IsInstaller(image string) bool {
	schematic, version := Installer(image)
	return schematic != "" || strings.HasSuffix(strings.TrimSuffix(image, ":"+version), "/installer")
}

// Store holds the container images on a node's disk. They survive reboots and end with EPHEMERAL. Talos pulls the images of its own
// services, the kubelet's among them, into another namespace of containerd than the images of pods. It is safe for concurrent use.
type Store struct {
	mu   sync.Mutex
	here map[string]bool   // by namespace and reference
	tags map[string]string // references with tags, by the same with digests
}

// NewStore returns a store without images.
func NewStore() *Store { return &Store{here: map[string]bool{}, tags: map[string]string{}} }

// Pin adds the name with a digest to an image, as containerd does beside the name with a tag, and returns the new name.
func (s *Store) Pin(ref string) string {
	repository := strings.TrimSuffix(ref, ":"+Tag(ref))
	pinned := fmt.Sprintf("%s@sha256:%x", repository, sha256.Sum256([]byte(ref)))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tags[pinned] = ref
	return pinned
}

// Tagged returns the name with a tag of an image.
func (s *Store) Tagged(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.tags[name], name)
}

// Has tells whether the image of a pod is here.
func (s *Store) Has(ref string) bool { return s.HasIn(common.ContainerdNamespace_NS_CRI, ref) }

// Add adds the image of a pod.
func (s *Store) Add(ref string) { s.AddIn(common.ContainerdNamespace_NS_CRI, ref) }

// HasIn tells whether an image is in a namespace.
func (s *Store) HasIn(namespace common.ContainerdNamespace, ref string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.here[namespace.String()+" "+ref]
}

// AddIn adds an image to a namespace.
func (s *Store) AddIn(namespace common.ContainerdNamespace, ref string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.here[namespace.String()+" "+ref] = true
}
