package config

import (
	"fmt"
	"strings"
)

func (v *validator) validateTalos() {
	t := v.Talos
	if factory := v.webURL("talos.factory", t.Factory, "https"); factory != nil && strings.Trim(factory.Path, "/") != "" {
		v.found("talos.factory", "did you mean https://"+factory.Host+"?", "%s has a path, and the factory's own are added to it", t.Factory)
	}
	if !strings.HasPrefix(t.InstallDisk, "/dev/") {
		v.found("talos.installDisk", "write a device's path, such as /dev/sda", "%s is not a device", t.InstallDisk)
	}
	for i, extension := range t.Extensions {
		path := fmt.Sprintf("talos.extensions[%d]", i)
		if extension != "" && !strings.Contains(extension, "/") {
			v.found(path, "did you mean siderolabs/"+extension+"?", "%s has no owner", extension)
			continue
		}
		v.shape(path, extension, extensionForm, "the name of a system extension", "siderolabs/qemu-guest-agent")
	}
	v.distinct("talos.extensions", t.Extensions)
	for _, key := range sorted(t.Sysctls) {
		if !sysctlForm.MatchString(key) {
			v.found(entry("talos.sysctls", key), "write it like net.core.somaxconn", "is not the name of a kernel parameter")
		}
	}
	for _, registry := range sorted(t.RegistryMirrors) {
		v.mirror(entry("talos.registryMirrors", registry), registry, t.RegistryMirrors[registry])
	}
}

func (v *validator) mirror(path, registry string, mirrors []string) {
	if registry != "*" && !hostForm.MatchString(registry) {
		v.found(path, "write a host, such as docker.io, or * for every registry", "is not a registry")
	}
	if len(mirrors) == 0 {
		v.found(path, "name a mirror, or remove the registry", "is empty")
	}
	for i, mirror := range mirrors {
		v.webURL(fmt.Sprintf("%s[%d]", path, i), mirror, "https", "http")
	}
	v.distinct(path, mirrors)
}
