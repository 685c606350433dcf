package factory

import (
	"fmt"
	"strings"
)

// Installer returns the extensions in an installer image of the factory, [PLATFORM-]installer[-secureboot]/SCHEMATIC:VERSION behind the
// factory's host name. Its errors are those of containerd for the answers of the factory's registry.
func (f *Factory) Installer(reference string) ([]string, error) {
	host, path, _ := strings.Cut(reference, "/")
	name, rest, _ := strings.Cut(path, "/")
	id, tag, tagged := strings.Cut(rest, ":")
	notFound := fmt.Errorf("%s: not found", reference)
	platform := profile{platform: "metal"}
	kind := strings.TrimSuffix(name, "-secureboot")
	if kind != "installer" {
		var ok bool
		if platform.platform, ok = strings.CutSuffix(kind, "-installer"); !ok {
			return nil, notFound
		}
	}
	s, known := f.Schematic(id)
	version, offered := tagOf(tag)
	switch {
	case !tagged, !known, !offered, version != tag, !platform.knownPlatform():
		return nil, notFound
	}
	extensions, missing := resolve(s.Customization.SystemExtensions.OfficialExtensions)
	if missing != "" {
		return nil, fmt.Errorf("unexpected status from HEAD request to https://%s/v2/%s/%s/manifests/%s: 400 Bad Request", host, name, id, tag)
	}
	return extensions, nil
}
