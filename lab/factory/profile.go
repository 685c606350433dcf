package factory

import (
	"net/http"
	"slices"
	"strings"
)

// profile is what the name of a file asks for.
type profile struct {
	platform   string
	arch       string
	secureBoot bool
}

// parsePath reads the name of an ISO image, PLATFORM-ARCH[-secureboot].iso, with the error texts of the public factory. The lab builds no
// other files.
func parsePath(path string) (profile, error) {
	name, ok := strings.CutSuffix(path, ".iso")
	if !ok {
		return profile{}, refuse(http.StatusNotImplemented, "the lab's factory models ISO images only, not %s", path)
	}
	p := profile{}
	name, p.secureBoot = strings.CutSuffix(name, "-secureboot")
	platform, arch, ok := strings.Cut(name, "-")
	if !ok {
		return p, refuse(http.StatusBadRequest, "error parsing profile from path: invalid platform-arch: %q", name)
	}
	if after, is := strings.CutPrefix(arch, "ocean-"); platform == "digital" && is {
		platform, arch = "digital-ocean", after
	}
	p.platform, p.arch = platform, arch
	switch arch {
	case "amd64", "arm64":
	case "x86_64", "i386": // names of iPXE
		p.arch = "amd64"
	default:
		return p, refuse(http.StatusBadRequest, "error parsing profile from path: invalid architecture: %q", arch)
	}
	return p, nil
}

// platforms are the platforms of Talos 1.12 and 1.13; 1.14 has one more, alibabacloud. The factory fails when it builds an
// image for another one.
var platforms = []string{
	"akamai", "aws", "azure", "cloudstack", "digital-ocean", "equinixMetal", "exoscale", "gcp", "hcloud", "metal", "nocloud", "opennebula",
	"openstack", "oracle", "scaleway", "upcloud", "vmware", "vultr",
}

func (p *profile) knownPlatform() bool { return slices.Contains(platforms, p.platform) }
