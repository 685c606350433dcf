package qemu

import (
	"context"
	"crypto/sha1" //nolint:gosec // Proxmox VE names an instance by the SHA-1 of its files
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/slipway-platform/slipway/lab/vm"
)

// isoPrograms write ISO images, with the same options. The first one that the machine has is used.
var isoPrograms = []string{"genisoimage", "mkisofs", "xorrisofs"}

// cloudInitFiles are the files on a VM's cloud-init drive, in the form nocloud, as Proxmox VE writes them.
func cloudInitFiles(hw vm.Hardware) map[string]string {
	user, network := userData(hw), networkConfig(hw)
	id := sha1.Sum([]byte(user + network)) //nolint:gosec // see above
	return map[string]string{
		"user-data": user, "network-config": network, "meta-data": "instance-id: " + hex.EncodeToString(id[:]) + "\n",
	}
}

func userData(hw vm.Hardware) string {
	var b strings.Builder
	host, _, _ := strings.Cut(hw.Name, ".")
	fmt.Fprintf(&b, "#cloud-config\nhostname: %s\nmanage_etc_hosts: true\n", host)
	switch search := hw.CloudInit.Search; {
	case host != hw.Name:
		fmt.Fprintf(&b, "fqdn: %s\n", hw.Name)
	case len(search) > 0:
		fmt.Fprintf(&b, "fqdn: %s.%s\n", host, search[0])
	}
	b.WriteString("chpasswd:\n  expire: False\nusers:\n  - default\npackage_upgrade: true\n")
	return b.String()
}

// networkConfig has the first card's addresses. Each address has the gateway of its family.
func networkConfig(hw vm.Hardware) string {
	var b strings.Builder
	b.WriteString("version: 1\nconfig:\n")
	if ci := hw.CloudInit; len(ci.Addresses) > 0 && len(hw.NICs) > 0 {
		fmt.Fprintf(&b, "    - type: physical\n      name: eth0\n      mac_address: '%s'\n      subnets:\n", strings.ToLower(hw.NICs[0].MAC))
		for _, address := range ci.Addresses {
			b.WriteString(subnet(address, ci.Gateways))
		}
	}
	list := func(key string, values []string) {
		if len(values) > 0 {
			fmt.Fprintf(&b, "      %s:\n", key)
		}
		for _, value := range values {
			fmt.Fprintf(&b, "      - '%s'\n", value)
		}
	}
	var servers []string
	for _, server := range hw.CloudInit.DNS {
		servers = append(servers, server.String())
	}
	if len(servers)+len(hw.CloudInit.Search) > 0 {
		b.WriteString("    - type: nameserver\n")
		list("address", servers)
		list("search", hw.CloudInit.Search)
	}
	return b.String()
}

// subnet describes one address: an IPv4 one with a mask, an IPv6 one with the length of its prefix.
func subnet(address netip.Prefix, gateways []netip.Addr) string {
	text := fmt.Sprintf("      - type: static6\n        address: '%s'\n", address)
	if address.Addr().Is4() {
		mask := net.IP(net.CIDRMask(address.Bits(), 32))
		text = fmt.Sprintf("      - type: static\n        address: '%s'\n        netmask: '%s'\n", address.Addr(), mask)
	}
	for _, gateway := range gateways {
		if gateway.Is4() == address.Addr().Is4() {
			text += fmt.Sprintf("        gateway: '%s'\n", gateway)
		}
	}
	return text
}

// writeCloudInit writes the image of the cloud-init drive into a folder, and returns its path.
func writeCloudInit(ctx context.Context, dir string, hw vm.Hardware) (string, error) {
	content, image := filepath.Join(dir, "cloudinit"), filepath.Join(dir, "cloudinit.iso")
	if err := os.MkdirAll(content, 0o700); err != nil {
		return "", err
	}
	for name, text := range cloudInitFiles(hw) {
		if err := os.WriteFile(filepath.Join(content, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	for _, program := range isoPrograms {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(ctx, path, "-quiet", "-iso-level", "3", "-R", "-V", "cidata", "-o", image, content).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%s: %w: %s", program, err, out)
		}
		return image, nil
	}
	return "", errors.New("cloud-init drive: none of " + strings.Join(isoPrograms, ", ") + " is on PATH; install the package genisoimage")
}
