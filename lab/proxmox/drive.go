package proxmox

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var newDisk = regexp.MustCompile(`^([^:/\s]+):(\d+(?:\.\d+)?)$`)

// driveOrder is the order in which Proxmox VE creates disks. It determines the disks' numbers.
var driveOrder = func() []string {
	var out []string
	for _, kind := range []string{"ide", "scsi", "virtio", "sata", "efidisk", "tpmstate"} {
		for i := range parameters[kind].count {
			out = append(out, kind+strconv.Itoa(i))
		}
	}
	return out
}()

// isDrive tells whether a key is that of a drive.
func isDrive(key string) bool {
	p, ok := lookup(key)
	return ok && p.form == drive
}

func isCDROM(p property) bool { return p.keys["media"] == "cdrom" }

// isCloudInit tells whether a drive is a VM's cloud-init drive.
func isCloudInit(p property) bool {
	_, name, _ := strings.Cut(p.main, ":")
	return isCDROM(p) && (name == "cloudinit" || strings.HasSuffix(name, "-cloudinit") || strings.Contains(name, "-cloudinit."))
}

// ownedName finds the owner in the name of a disk.
var ownedName = regexp.MustCompile(`^(?:\d+/)?vm-(\d+)-`)

// checkStorageAccess refuses drives on storages that do not exist, cannot hold them, or that the token may not use.
// Proxmox VE does this before it starts a task. A disk of another VM needs no more than privileges.
func (q *request) checkStorageAccess(id int, settings map[string]string) error {
	for _, key := range driveOrder {
		value, ok := settings[key]
		if !ok {
			continue
		}
		p := parseProperty(value, "file")
		name, volume, hasStorage := strings.Cut(p.main, ":")
		if !hasStorage {
			continue
		}
		s, err := q.c.storage(name)
		if err != nil {
			return err
		}
		path := "/storage/" + name
		switch {
		case newDisk.MatchString(p.main) || volume == "cloudinit":
			if err := q.token.require(path, "Datastore.AllocateSpace"); err != nil {
				return err
			}
			if !s.allows("images") {
				return invalid(map[string]string{"storage": "storage '" + name + "' does not support vm images"})
			}
		default:
			if err := q.token.requireVolume(p.main, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// requireVolume refuses unless the token may use a volume, for a VM or, with 0, for none (check_volume_access of pve-storage).
func (t *Token) requireVolume(volid string, id int) error {
	storage, volume, _ := strings.Cut(volid, ":")
	path, owner := "/storage/"+storage, ownedName.FindStringSubmatch(volume)
	switch {
	case t.has("Datastore.Allocate"):
		return nil
	case strings.HasPrefix(volume, "iso/"):
		if !t.has("Datastore.AllocateSpace") && !t.has("Datastore.Audit") {
			return forbidden(path, "Datastore.AllocateSpace", "Datastore.Audit")
		}
		return nil
	case owner == nil:
		return internalError("missing privileges to access %s", volid)
	case owner[1] == strconv.Itoa(id):
		return nil
	}
	if err := t.require(path, "Datastore.Audit"); err != nil {
		return err
	}
	return t.require("/vms/"+owner[1], "VM.Config.Disk")
}

// prepareDrive creates the volume that a drive asks for, or finds the volume that it names. It returns the drive as
// Proxmox VE stores it, and the id of a new volume. The caller holds the mutex.
func (c *Cluster) prepareDrive(m *machine, config map[string]string, key, value string) (stored, created string, err error) {
	p := parseProperty(value, "file")
	format := p.keys["format"]
	delete(p.keys, "format")
	if p.keys["import-from"] != "" {
		return "", "", fmt.Errorf("import-from is not modelled by this simulation")
	}
	name, suffix, hasStorage := strings.Cut(p.main, ":")
	if !hasStorage { // empty drive, or the host's own drive
		delete(p.keys, "size")
		return p.String(), "", nil
	}
	s, err := c.storageOn(name, m.node)
	if err != nil {
		return "", "", err
	}
	switch asked := newDisk.FindStringSubmatch(p.main); {
	case suffix == "cloudinit":
		if other := cloudInitDrive(config, key); other != "" {
			return "", "", fmt.Errorf("%s - cloud-init drive is already attached at '%s'", key, other)
		}
		format := "raw"
		if s.files() {
			format = "qcow2"
		}
		v, err := c.allocateCloudInit(s, m.node, m.id, format)
		if err != nil {
			return "", "", err
		}
		p.main, p.keys["media"], p.keys["size"] = v.id, "cdrom", formatSize(v.size)
		return p.String(), v.id, nil
	case asked != nil:
		v, err := c.allocate(s, m.node, m.id, format, diskSize(s, key, asked[2]))
		if err != nil {
			return "", "", err
		}
		p.main, p.keys["size"] = v.id, formatSize(v.size)
		return p.String(), v.id, nil
	}
	v := c.volume(m.node, p.main)
	if v == nil {
		return "", "", fmt.Errorf("volume '%s' does not exist", p.main)
	}
	p.keys["size"] = formatSize(v.size)
	return p.String(), "", nil
}

// diskSize is the size of a new disk in bytes. For an EFI disk the requested size is ignored.
func diskSize(s *Storage, key, gigabytes string) int64 {
	switch {
	case strings.HasPrefix(key, "efidisk") && s.files():
		return efiFileSize
	case strings.HasPrefix(key, "efidisk"), strings.HasPrefix(key, "tpmstate"):
		return efiSize
	}
	n, err := strconv.ParseFloat(gigabytes, 64)
	if err != nil { // cannot happen: newDisk matched
		return 0
	}
	return int64(n * (1 << 30))
}

// cloudInitDrive finds the key of a cloud-init drive other than skip.
func cloudInitDrive(config map[string]string, skip string) string {
	for _, key := range driveOrder {
		if value, ok := config[key]; ok && key != skip && isCloudInit(parseProperty(value, "file")) {
			return key
		}
	}
	return ""
}

// removeDrive removes a drive from a configuration. A disk stays as unused disk; a cloud-init drive is to be freed, so
// its volume id is returned. The caller holds the mutex.
func removeDrive(config map[string]string, id int, key string) string {
	value := config[key]
	delete(config, key)
	return detach(config, id, value)
}

// detach does what removeDrive does with the value of a drive that is not in the configuration.
func detach(config map[string]string, id int, value string) string {
	p := parseProperty(value, "file")
	switch {
	case isCloudInit(p):
		return p.main
	case isCDROM(p), !strings.Contains(p.main, fmt.Sprintf("vm-%d-", id)):
		return ""
	}
	addUnused(config, p.main)
	return ""
}

// addUnused adds a volume to a configuration as unused disk, and returns its key.
func addUnused(config map[string]string, volume string) string {
	for n := range parameters["unused"].count {
		key := "unused" + strconv.Itoa(n)
		if _, taken := config[key]; !taken {
			config[key] = volume
			return key
		}
	}
	return ""
}
