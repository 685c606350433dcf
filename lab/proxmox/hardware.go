package proxmox

import (
	"crypto/sha1"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/lab/vm"
)

// bootOrder is the configured order, or Proxmox VE's default: first disk, first CD-ROM, first network card.
func (m *machine) bootOrder() []string {
	if order := bootOrder(m.config["boot"]); len(order) > 0 {
		return order
	}
	var disk, cdrom []string
	for _, key := range driveOrder {
		value, ok := m.config[key]
		p := parseProperty(value, "file")
		switch {
		case !ok, strings.HasPrefix(key, "efidisk"), strings.HasPrefix(key, "tpmstate"), isCloudInit(p):
		case isCDROM(p):
			cdrom = append(cdrom, key)
		default:
			disk = append(disk, key)
		}
	}
	order := slices.Concat(disk[:min(1, len(disk))], cdrom[:min(1, len(cdrom))])
	if _, ok := m.config["net0"]; ok {
		order = append(order, "net0")
	}
	return order
}

// agent tells whether the VM has the guest agent's channel.
func (m *machine) agent() bool {
	p := parseProperty(m.config["agent"], "enabled")
	return p.main == "1"
}

// assemble returns the hardware of a VM at power-on, or the error if the VM cannot start. The caller holds the mutex.
func (c *Cluster) assemble(m *machine, t *task) (vm.Hardware, error) {
	c.swapMAC(m)
	hw := vm.Hardware{
		Host: m.node, ID: m.id, Name: m.name(), Cores: m.cpus(), MemoryMiB: m.memoryMiB(), UEFI: m.config["bios"] == "ovmf",
		Q35: strings.Contains(m.config["machine"], "q35"), UUID: parseProperty(m.config["smbios1"], "").keys["uuid"],
		BootOrder: m.bootOrder(), Disks: map[string]*vm.Disk{}, Agent: m.agent(),
	}
	host, err := c.node(m.node)
	if err != nil {
		return hw, err
	}
	if hw.Cores > host.CPUs {
		return hw, fmt.Errorf("MAX %d vcpus allowed per VM on this node", host.CPUs)
	}
	if _, ok := m.config["efidisk0"]; hw.UEFI && !ok {
		t.log = append(t.log, "WARN: no efidisk configured! Using temporary efivars disk.")
	}
	for _, key := range driveOrder {
		value, ok := m.config[key]
		if !ok {
			continue
		}
		// Until qemu-server 8.0.7, these two were the second unit of a controller, and q35's have one unit each.
		if (key == "ide1" || key == "ide3") && c.before(8, 1) && strings.Contains(m.config["machine"], "q35") {
			t.log = append(t.log, "kvm: -device ide-cd,bus=ide.1,unit=1: Can't create IDE unit 1, bus supports only 1 units")
			return hw, fmt.Errorf("start failed: QEMU exited with code 1")
		}
		if err := c.attach(&hw, m, key, parseProperty(value, "file")); err != nil {
			return hw, err
		}
	}
	for i := range parameters["net"].count {
		value, ok := m.config["net"+strconv.Itoa(i)]
		if !ok {
			continue
		}
		n := parseNIC(value)
		if n.bridge != "" && !slices.Contains(host.Bridges, n.bridge) {
			t.log = append(t.log, "bridge '"+n.bridge+"' does not exist",
				"kvm: network script /var/lib/qemu-server/pve-bridge failed with status 512")
			return hw, fmt.Errorf("start failed: QEMU exited with code 1")
		}
		tag, _ := strconv.Atoi(n.tag) // verified; 0 without one
		hw.NICs = append(hw.NICs, vm.NIC{MAC: strings.ToUpper(n.mac), Bridge: n.bridge, VLAN: tag})
	}
	return hw, nil
}

// attach adds a drive to the hardware.
func (c *Cluster) attach(hw *vm.Hardware, m *machine, key string, p property) error {
	if !strings.Contains(p.main, ":") {
		return nil // an empty CD-ROM drive
	}
	v := c.volume(m.node, p.main)
	if v == nil {
		return fmt.Errorf("volume '%s' does not exist", p.main)
	}
	switch {
	case isCloudInit(p):
		hw.CloudInit = m.cloudInit(key)
	case v.content == "iso":
		if hw.ISO != nil || c.cfg.Image == nil {
			return nil
		}
		image, err := c.cfg.Image(v.data)
		if err != nil { // an image that does not boot is not an error of the hypervisor
			c.log.Warn("CD-ROM does not boot", "vm", m.id, "volume", v.id, "err", err)
			return nil
		}
		_, image.Name, _ = strings.Cut(v.id, "/")
		image.Drive = key
		hw.ISO = image
	case strings.HasPrefix(key, "tpmstate"):
		if p.keys["version"] == "v2.0" {
			hw.TPM = v.disk
		}
	case v.disk != nil && strings.HasPrefix(key, "efidisk"):
		hw.EFI = v.disk
	case v.disk != nil:
		// Nobody else reads these fields before the guest runs.
		v.disk.Size, v.disk.Serial = v.size, p.keys["serial"]
		hw.Disks[key] = v.disk
	}
	return nil
}

// cloudInit is the first network card's configuration on the cloud-init drive. With DHCP it has no address: the lab has
// no DHCP.
func (m *machine) cloudInit(drive string) *vm.CloudInit {
	p := parseProperty(m.config["ipconfig0"], "")
	out := &vm.CloudInit{Drive: drive, Search: split(m.config["searchdomain"])}
	for _, key := range []string{"ip", "ip6"} {
		if prefix, err := netip.ParsePrefix(p.keys[key]); err == nil {
			out.Addresses = append(out.Addresses, prefix)
		}
	}
	for _, key := range []string{"gw", "gw6"} {
		if addr, err := netip.ParseAddr(p.keys[key]); err == nil {
			out.Gateways = append(out.Gateways, addr)
		}
	}
	for _, server := range split(m.config["nameserver"]) {
		if addr, err := netip.ParseAddr(server); err == nil {
			out.DNS = append(out.DNS, addr)
		}
	}
	// As Proxmox VE has it, a checksum of what is on the drive.
	out.Instance = fmt.Sprintf("%x", sha1.Sum(fmt.Append(nil, m.name(), out.Addresses, out.Gateways, out.DNS)))
	return out
}
