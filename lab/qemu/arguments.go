package qemu

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/lab/vm"
)

// Names of the sockets in the folder of a run, to which QEMU connects.
const (
	monitorSocket = "qmp.sock"
	agentSocket   = "agent.sock"
)

// parts are what a VM has beside its hardware: files and devices of this computer.
type parts struct {
	disks     map[string]string // files by drive key
	taps      []string          // one for each card
	iso       string            // "" without one
	cloudInit string            // "" without one
	firmware  Firmware          // of UEFI
	variables string            // of UEFI
	console   string            // log of the serial port
	kernel    *kernel           // nil: the firmware finds what boots
}

// kernel is what QEMU itself boots.
type kernel struct{ path, initramfs, arguments string }

// arguments is the command line of QEMU.
func arguments(hw vm.Hardware, p parts) []string {
	args := []string{
		"-name", hw.Name, "-nodefaults", "-no-user-config", "-display", "none", "-machine", machineType(hw),
		"-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max", "-smp", strconv.Itoa(hw.Cores), "-m", strconv.Itoa(hw.MemoryMiB),
		"-chardev", "socket,id=qmp,path=" + monitorSocket, "-mon", "chardev=qmp,mode=control",
		"-chardev", "file,id=serial,append=on,path=" + commas(p.console), "-device", "isa-serial,chardev=serial",
		"-device", "virtio-rng-pci", "-device", "virtio-scsi-pci,id=scsihw0",
	}
	if hw.UUID != "" {
		args = append(args, "-smbios", "type=1,uuid="+hw.UUID)
	}
	if hw.UEFI {
		args = append(args, "-drive", "if=pflash,unit=0,format=raw,readonly=on,file="+commas(p.firmware.Code),
			"-drive", "if=pflash,unit=1,format=raw,file="+commas(p.variables))
	}
	if hw.Agent {
		args = append(args, "-device", "virtio-serial-pci", "-chardev", "socket,id=agent,path="+agentSocket,
			"-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0")
	}
	if k := p.kernel; k != nil {
		// The kernel is before everything else in the order. When the guest reboots, QEMU ends, so that the order is looked at again.
		args = append(args, "-no-reboot", "-kernel", k.path, "-initrd", k.initramfs, "-append", k.arguments)
	}
	return slices.Concat(args, drives(hw, p), cards(hw, p))
}

func machineType(hw vm.Hardware) string {
	if hw.Q35 {
		return "q35"
	}
	return "pc"
}

// drives are the arguments of disks and CD-ROM drives.
func drives(hw vm.Hardware, p parts) []string {
	var args []string
	keys := slices.Sorted(maps.Keys(p.disks))
	if slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, "sata") }) {
		args = append(args, "-device", "ahci,id=ahci0")
	}
	for _, key := range keys {
		node, _ := json.Marshal(blockNode(key, p.disks[key])) // a map of strings and maps
		args = append(args, "-blockdev", string(node), "-device", options(diskDevice(hw, key, hw.Disks[key].Serial)))
	}
	if p.iso != "" {
		args = append(args, cd(hw, hw.ISO.Drive, p.iso)...)
	}
	if p.cloudInit != "" {
		args = append(args, cd(hw, hw.CloudInit.Drive, p.cloudInit)...)
	}
	return args
}

// node is the name of a drive's content.
func node(key string) string { return "drive-" + key }

// blockNode describes a disk's content. QEMU need not wait for the machine's own disk: the VM's disk ends with the lab.
func blockNode(key, path string) map[string]any {
	return map[string]any{
		"driver": "qcow2", "node-name": node(key), "discard": "unmap", "cache": map[string]any{"no-flush": true},
		"file": map[string]any{"driver": "file", "filename": path},
	}
}

// diskDevice describes a disk's device.
func diskDevice(hw vm.Hardware, key, serial string) map[string]any {
	device := map[string]any{"id": key, "drive": node(key)}
	number := strings.TrimLeft(key, "abcdefghijklmnopqrstuvwxyz")
	switch kind := strings.TrimSuffix(key, number); kind {
	case "virtio":
		device["driver"] = "virtio-blk-pci"
	case "scsi":
		unit, _ := strconv.Atoi(number)
		device["driver"], device["bus"], device["scsi-id"], device["device_id"] = "scsi-hd", "scsihw0.0", unit, node(key)
	case "sata":
		device["driver"], device["bus"] = "ide-hd", "ahci0."+number
	default:
		device["driver"] = "ide-hd"
		maps.Copy(device, ideBus(hw, number))
	}
	if serial != "" {
		device["serial"] = serial
	}
	if i := slices.Index(hw.BootOrder, key); i >= 0 {
		device["bootindex"] = i + 1
	}
	return device
}

// ideBus is where an IDE drive is: each q35 machine has a bus for each drive, another one has two drives on a bus.
func ideBus(hw vm.Hardware, number string) map[string]any {
	if hw.Q35 {
		return map[string]any{"bus": "ide." + number}
	}
	unit, _ := strconv.Atoi(number)
	return map[string]any{"bus": "ide." + strconv.Itoa(unit/2), "unit": unit % 2}
}

// cdTarget is the number of the CD-ROM drives on the SCSI controller, after those of disks. OVMF looks at it last; each drive is a logical
// unit of its own.
const cdTarget = 31

// cd are the arguments of a CD-ROM drive. In a q35 machine, all are SCSI drives, because the cloud kernels of distributions have no driver
// for its IDE drives. The guest sees a CD-ROM drive of the same name in either case.
func cd(hw vm.Hardware, key, path string) []string {
	device := map[string]any{"id": key, "drive": node(key)}
	number := strings.TrimLeft(key, "abcdefghijklmnopqrstuvwxyz")
	if strings.HasPrefix(key, "ide") && !hw.Q35 {
		device["driver"] = "ide-cd"
		maps.Copy(device, ideBus(hw, number))
	} else {
		unit, _ := strconv.Atoi(number)
		device["driver"], device["bus"], device["scsi-id"], device["lun"] = "scsi-cd", "scsihw0.0", cdTarget, unit
	}
	if i := slices.Index(hw.BootOrder, key); i >= 0 {
		device["bootindex"] = i + 1
	}
	content := map[string]any{"driver": "raw", "node-name": node(key), "read-only": true,
		"file": map[string]any{"driver": "file", "filename": path}}
	text, _ := json.Marshal(content) // a map of strings and maps
	return []string{"-blockdev", string(text), "-device", options(device)}
}

// cards are the arguments of the network cards. They have no boot ROM.
func cards(hw vm.Hardware, p parts) []string {
	var args []string
	for i, nic := range hw.NICs {
		id := "net" + strconv.Itoa(i)
		args = append(args, "-netdev", fmt.Sprintf("tap,id=%s,ifname=%s,script=no,downscript=no", id, p.taps[i]),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=%s,mac=%s,romfile=", id, strings.ToLower(nic.MAC)))
	}
	return args
}

// options writes a device as an argument: the driver, then the other options in order.
func options(device map[string]any) string {
	text := fmt.Sprint(device["driver"])
	for _, key := range slices.Sorted(maps.Keys(device)) {
		if key != "driver" {
			text += fmt.Sprintf(",%s=%s", key, commas(fmt.Sprint(device[key])))
		}
	}
	return text
}

// commas doubles the commas of a value, as QEMU wants them.
func commas(value string) string { return strings.ReplaceAll(value, ",", ",,") }
