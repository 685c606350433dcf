// Package image reads names of container images, and holds the images on the disk of a Talos node.
package image

import (
	"path"
	"strings"
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
