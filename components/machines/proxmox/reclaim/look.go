package reclaim

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Seen is a VM as Proxmox VE has it.
type Seen struct {
	Node    string            // Proxmox node; "" if the VM does not exist
	Options map[string]string // hardware, such as memory: 8192 or scsi0: 64, with what waits until the VM was off
	Foreign []string          // disks that belong to another VM, such as volumes of a CSI driver; sorted

	// Snapshot is the snapshot that the VM has gone on from; "" without any.
	Snapshot string
}

// Names of the options in Seen. Those of network devices have a number at their end. Those of disks are bus and number, such as scsi0, and
// have the size in GiB; with OptionDatastore behind the name, they have the datastore. A disk that is a device of the host has none.
const (
	OptionMemory     = "memory" // MiB
	OptionCores      = "cores"
	OptionController = "scsihw"
	OptionNetwork    = "net" // bridge and VLAN, as Network writes them
	OptionDatastore  = " on"
)

// Network is the value of a network device among the options. vlan is "" or "0" without one.
func Network(bridge, vlan string) string {
	if vlan == "" || vlan == "0" {
		return bridge
	}
	return bridge + ", VLAN " + vlan
}

// Look returns a VM as Proxmox VE has it.
func Look(ctx context.Context, api API, id int) (seen Seen, err error) {
	err = api.ask(ctx, func(ctx context.Context, pve *proxmox) error {
		guests, err := pve.locate(ctx)
		at, exists := guests[id]
		if err != nil || !exists {
			return err
		}
		var config map[string]any
		if !at.container() {
			err = pve.do(ctx, http.MethodGet, vmPath(at.Node, id)+"/config", &config)
		}
		parent, _ := config["parent"].(string)
		seen = Seen{Node: at.Node, Options: options(config), Snapshot: parent}
		for _, option := range slices.Sorted(maps.Keys(seen.Options)) {
			if IsDisk(option) && foreign(config[option], id) {
				seen.Foreign = append(seen.Foreign, option)
			}
		}
		return err
	})
	return seen, err
}

// Options with a number, which are property strings: media=cdrom marks a drive that is no disk.
var (
	networkOption = regexp.MustCompile(`^` + OptionNetwork + `\d+$`)
	diskOption    = regexp.MustCompile(`^(scsi|virtio|sata|ide)\d+$`)
)

// IsDisk reports whether an option is a disk: without one, the VM has none, and no default of Proxmox VE.
func IsDisk(option string) bool { return diskOption.MatchString(option) }

// cloudInit matches a cloud-init drive, as drive_is_cloudinit in Proxmox's PVE/QemuServer/Drive.pm does. An update that Proxmox VE has
// refused leaves one that waits without media=cdrom.
var cloudInit = regexp.MustCompile(`^[^,]*[:/](vm-\d+-)?cloudinit(\.[a-z0-9]+)?(,|$)`)

// ofVM finds the VM in the name of a volume. Some storages, such as LINSTOR, give volumes other names.
var ofVM = regexp.MustCompile(`\bvm-(\d+)-`)

// foreign reports whether a disk belongs to another VM.
func foreign(disk any, id int) bool {
	volume, _, _ := strings.Cut(fmt.Sprint(disk), ",")
	owner := ofVM.FindStringSubmatch(volume[strings.LastIndex(volume, "/")+1:])
	return owner != nil && owner[1] != strconv.Itoa(id)
}

// options returns the options of a configuration that the program declares.
func options(config map[string]any) map[string]string {
	found := map[string]string{}
	for option, value := range config {
		text := fmt.Sprint(value)
		if number, is := value.(float64); is {
			text = strconv.FormatFloat(number, 'f', -1, 64)
		}
		properties := propertiesOf(text)
		switch {
		case option == OptionMemory:
			found[option] = strings.TrimPrefix(text, "current=")
		case option == OptionCores, option == OptionController:
			found[option] = text
		case networkOption.MatchString(option):
			found[option] = Network(properties["bridge"], properties["tag"])
		case IsDisk(option) && properties["media"] != "cdrom" && !cloudInit.MatchString(text):
			found[option] = inGiB(properties["size"])
			if volume, _, _ := strings.Cut(text, ","); !strings.HasPrefix(volume, "/") {
				found[option+OptionDatastore], _, _ = strings.Cut(volume, ":")
			}
		}
	}
	return found
}

// propertiesOf reads a property string of Proxmox VE, such as local-lvm:vm-1111-disk-0,size=64G.
func propertiesOf(text string) map[string]string {
	properties := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if key, value, has := strings.Cut(part, "="); has {
			properties[key] = value
		}
	}
	return properties
}

// inGiB returns a size of Proxmox VE in GiB, or as it is if it is no whole number of them.
func inGiB(size string) string {
	for unit, parts := range map[string]float64{"K": 1 << 20, "M": 1 << 10, "G": 1, "T": 1.0 / (1 << 10)} {
		number, has := strings.CutSuffix(size, unit)
		if amount, err := strconv.ParseFloat(number, 64); has && err == nil {
			if whole := amount / parts; whole == float64(int64(whole)) {
				return strconv.FormatInt(int64(whole), 10)
			}
		}
	}
	return size
}
