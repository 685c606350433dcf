package config

import (
	"fmt"
	"regexp"
	"strings"
)

// volumeForm is what Talos takes for the name of a user volume; with its prefix it is a partition's label.
var volumeForm = regexp.MustCompile(`^[A-Za-z0-9-]{1,34}$`)

func (v *validator) dataDisks(path string, pool NodePool) {
	if len(pool.DataDisks) > maxDataDisks {
		v.found(path, fmt.Sprintf("declare at most %d", maxDataDisks), "%d are more than a VM has places for", len(pool.DataDisks))
	}
	names := map[string]string{}
	for i, disk := range pool.DataDisks {
		at := fmt.Sprintf("%s[%d]", path, i)
		v.shape(at+".name", disk.Name, volumeForm, "a name that Talos gives a volume", "osd-1: at most 34 letters, digits and -")
		// A label that differs from another in case only is a different one to Talos, and a trap to a person.
		if folded := strings.ToLower(disk.Name); folded != "" {
			if first, taken := names[folded]; taken {
				v.found(at+".name", "pick another", "%s is taken by %s", disk.Name, first)
			} else {
				names[folded] = at + ".name"
			}
		}
		v.wholeGiB(at+".size", disk.Size, minDataDisk, "for a disk")
		if disk.Datastore != pool.Datastore {
			v.shape(at+".datastore", disk.Datastore, storageForm, "the name of a Proxmox storage", "local-lvm")
		}
	}
}

// wholeGiB checks the size of a disk, which Proxmox makes in GiB.
func (v *validator) wholeGiB(path string, size, least Quantity, purpose string) {
	if size < least {
		v.found(path, "write at least "+least.String(), "%s is too little %s", size, purpose)
	} else if size%GiB != 0 {
		v.found(path, fmt.Sprintf("did you mean %dGiB?", (size+GiB-1)/GiB), "%s is not a whole number of GiB", size)
	}
}
