package config

import (
	"fmt"
	"slices"
	"strings"
)

const lldpd = "siderolabs/lldpd"

// kubeletFlags are those that have a key of their own, or that Talos sets and lets nobody change; empty is the latter.
var kubeletFlags = map[string]string{
	"node-ip":                          "network.nodeCIDR",
	"node-labels":                      "nodePools[].labels",
	"register-with-taints":             "nodePools[].taints",
	"hostname-override":                "nodePools[].nodes[].name",
	"max-pods":                         "talos.kubelet.maxPods",
	"cluster-dns":                      "network.serviceCIDR",
	"cluster-domain":                   "",
	"pod-cidr":                         "network.podCIDR",
	"config":                           "",
	"kubeconfig":                       "",
	"bootstrap-kubeconfig":             "",
	"cert-dir":                         "",
	"container-runtime-endpoint":       "",
	"root-dir":                         "",
	"resolv-conf":                      "",
	"register-schedulable":             "",
	"rotate-certificates":              "",
	"tls-cert-file":                    "",
	"tls-private-key-file":             "",
	"authentication-token-webhook":     "",
	"authorization-mode":               "",
	"anonymous-auth":                   "",
	"client-ca-file":                   "",
	"cgroup-root":                      "",
	"system-cgroups":                   "",
	"kubelet-cgroups":                  "",
	"pod-infra-container-image":        "",
	"pod-manifest-path":                "",
	"protect-kernel-defaults":          "",
	"image-credential-provider-config": "",
}

func (v *validator) validateTalos() {
	t := v.Talos
	if factory := v.webURL("talos.factory", t.Factory, "https"); factory != nil && strings.Trim(factory.Path, "/") != "" {
		v.found("talos.factory", "did you mean https://"+factory.Host+"?", "%s has a path, and the factory's own are added to it", t.Factory)
	}
	switch disk := t.InstallDisk; {
	case !strings.HasPrefix(disk, "/dev/"):
		v.found("talos.installDisk", "write a device's path, such as /dev/sda", "%s is not a device", disk)
	case disk != "/dev/sda" && !strings.HasPrefix(disk, "/dev/disk/by-"):
		v.found("talos.installDisk", "write /dev/sda, or a path below /dev/disk", "%s is not the VMs' system disk, which is the first on a SCSI bus", disk)
	}
	v.extensions()
	v.kubelet()
	v.sysctls()
	for _, registry := range sorted(t.RegistryMirrors) {
		v.mirror(entry("talos.registryMirrors", registry), registry, t.RegistryMirrors[registry])
	}
	v.validatePatches()
}

func (v *validator) extensions() {
	t := v.Talos
	for i, extension := range t.Extensions {
		path := fmt.Sprintf("talos.extensions[%d]", i)
		switch {
		case extension == "":
		case !strings.Contains(extension, "/"):
			v.found(path, "did you mean siderolabs/"+extension+"?", "%s has no owner", extension)
		case !extensionForm.MatchString(extension):
			v.shape(path, extension, extensionForm, "the name of a system extension", "siderolabs/qemu-guest-agent")
		case misspelt(extension) != "":
			v.found(path, "did you mean "+misspelt(extension)+"?", "%s is not an official extension", extension)
		}
	}
	v.distinct("talos.extensions", t.Extensions)
	if t.LLDPD.Config != "" && !slices.Contains(t.Extensions, lldpd) {
		v.found("talos.lldpd.config", "add "+lldpd+" to talos.extensions, or remove it", "is for an extension that the machines do not have")
	}
}

func (v *validator) kubelet() {
	k := v.Talos.Kubelet
	if remedy := fmt.Sprintf("write a number from 1 to %d", maxPodsPerNode); k.MaxPods > maxPodsPerNode {
		v.found("talos.kubelet.maxPods", remedy, "%d is more than a node has addresses for", k.MaxPods)
	} else if k.MaxPods < 0 {
		v.found("talos.kubelet.maxPods", remedy, "%d is not a number of pods", k.MaxPods)
	}
	for _, flag := range sorted(k.ExtraArgs) {
		path := entry("talos.kubelet.extraArgs", flag)
		key, taken := kubeletFlags[strings.TrimLeft(flag, "-")]
		switch {
		case strings.HasPrefix(flag, "-"):
			v.found(path, "did you mean "+strings.TrimLeft(flag, "-")+"?", "is written with its dashes")
		case !flagForm.MatchString(flag):
			v.found(path, "write it like image-gc-high-threshold", "is not a flag")
		case taken && key == "":
			v.found(path, "remove it", "is a flag that Talos sets")
		case taken:
			v.found(path, "set "+key+" instead", "is a flag that Slipway sets")
		}
	}
}

func (v *validator) sysctls() {
	sysctls := v.Talos.Sysctls
	given := map[string]string{}
	for _, key := range sorted(sysctls) {
		path := entry("talos.sysctls", key)
		switch dotted := strings.ReplaceAll(key, "/", "."); {
		case !sysctlForm.MatchString(key):
			v.found(path, "write it like net.core.somaxconn", "is not the name of a kernel parameter")
		case strings.TrimSpace(sysctls[key]) == "":
			v.found(path, "give it a value, or remove it", "is empty")
		case given[dotted] != "":
			v.found(path, "keep one", "is the kernel parameter %s, which is given already", given[dotted])
		default:
			given[dotted] = key
		}
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
