package factory

import (
	"fmt"
	"slices"
	"strings"
)

// kind is what a file of the factory is.
type kind string

const (
	kindISO  kind = "iso"
	kindDisk kind = "disk" // an image of an installed disk
)

// profile is what the name of a file asks for.
type profile struct {
	kind        kind
	platform    string
	arch        string
	secureBoot  bool
	diskFormat  string // of a disk: raw, qcow2, vhd or ova
	compression string // of a disk: empty, .tar.gz, .gz, .xz or .zst
	unmodelled  string // what the lab's factory does not build, such as "installer archives"; empty: it builds the file
}

// parsePath reads the name of a file as the public factory does, in its order and with its error texts.
func parsePath(path string) (profile, error) {
	if rest, ok := strings.CutPrefix(path, "kernel-"); ok {
		p := profile{unmodelled: "kernels"}
		return p, p.parseArch(rest)
	}
	if rest, ok := strings.CutPrefix(path, "cmdline-"); ok {
		p := profile{unmodelled: "kernel command lines"}
		return p, p.parsePlatform(rest)
	}
	if rest, ok := strings.CutPrefix(path, "initramfs-"); ok {
		if rest, ok = strings.CutSuffix(rest, ".xz"); ok {
			p := profile{unmodelled: "initramfs images"}
			return p, p.parseArch(rest)
		}
	}
	if rest, ok := strings.CutSuffix(path, ".iso"); ok {
		p := profile{kind: kindISO}
		return p, p.parsePlatform(rest)
	}
	if rest, ok := strings.CutSuffix(path, "-uki.efi"); ok {
		p := profile{unmodelled: "unified kernel images"}
		return p, p.parsePlatform(rest)
	}
	if platform, rest, ok := installerName(path); ok {
		p := profile{unmodelled: "installer archives"}
		return p, p.parsePlatform(platform + "-" + rest)
	}
	return parseDisk(path)
}

// installerName splits [PLATFORM-]installer-ARCH[-secureboot].tar.
func installerName(path string) (platform, rest string, ok bool) {
	path, ok = strings.CutSuffix(path, ".tar")
	if !ok {
		return "", "", false
	}
	if rest, ok = strings.CutPrefix(path, "installer-"); ok {
		return "metal", rest, true
	}
	return strings.Cut(path, "-installer-")
}

// parseDisk reads the name of a disk image: PLATFORM-ARCH[-secureboot].FORMAT[COMPRESSION].
func parseDisk(path string) (profile, error) {
	p := profile{kind: kindDisk}
	for _, compression := range []string{".tar.gz", ".gz", ".xz", ".zst"} {
		var ok bool
		if path, ok = strings.CutSuffix(path, compression); ok {
			p.compression = compression
			break
		}
	}
	for _, format := range []string{"raw", "qcow2", "vhd", "ova"} {
		var ok bool
		if path, ok = strings.CutSuffix(path, "."+format); ok {
			p.diskFormat = format
			break
		}
	}
	switch {
	case p.diskFormat == "":
		return p, fmt.Errorf("invalid profile path: %q", path)
	case p.diskFormat == "vhd", p.diskFormat == "ova":
		p.unmodelled = "disk images in the format " + p.diskFormat
	case p.compression == ".tar.gz":
		p.unmodelled = "archives of disk images"
	}
	return p, p.parsePlatform(path)
}

func (p *profile) parsePlatform(s string) error {
	s, p.secureBoot = strings.CutSuffix(s, "-secureboot")
	platform, rest, ok := strings.Cut(s, "-")
	if !ok {
		return fmt.Errorf("invalid platform-arch: %q", s)
	}
	if after, is := strings.CutPrefix(rest, "ocean-"); platform == "digital" && is {
		platform, rest = "digital-ocean", after
	}
	p.platform = platform
	return p.parseArch(rest)
}

func (p *profile) parseArch(s string) error {
	switch s {
	case "amd64", "arm64":
		p.arch = s
	case "x86_64", "i386": // names of iPXE
		p.arch = "amd64"
	default:
		return fmt.Errorf("invalid architecture: %q", s)
	}
	return nil
}

// platforms are those that Talos 1.12 and 1.13 know; 1.14 has one more, alibabacloud. The factory fails when it builds an
// image for another one.
var platforms = []string{
	"akamai", "aws", "azure", "cloudstack", "digital-ocean", "equinixMetal", "exoscale", "gcp", "hcloud", "metal", "nocloud", "opennebula",
	"openstack", "oracle", "scaleway", "upcloud", "vmware", "vultr",
}

func (p *profile) knownPlatform() bool { return slices.Contains(platforms, p.platform) }

// contentType is the type that the public factory gives a file.
func contentType(file string) string {
	for suffix, t := range map[string]string{
		".iso": "application/x-iso9660-image", ".xz": "application/x-xz", ".gz": "application/gzip", ".qcow2": "application/x-qemu-disk",
	} {
		if strings.HasSuffix(file, suffix) {
			return t
		}
	}
	return "application/octet-stream"
}
