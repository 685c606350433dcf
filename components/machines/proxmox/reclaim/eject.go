package reclaim

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Eject takes the images out of a VM's CD drives, in the running VM too. Proxmox VE refuses to migrate a VM with a local image in a
// drive, even if the target has a file of that name. The cloud-init drive is migrated, and stays.
func Eject(ctx context.Context, api API, node string, id int) error {
	return api.ask(ctx, func(ctx context.Context, pve *proxmox) error {
		var config map[string]any
		if err := pve.do(ctx, http.MethodGet, vmPath(node, id)+"/config", &config); err != nil {
			return err
		}
		empty := url.Values{}
		for key, value := range config {
			if text, ok := value.(string); ok && drive.MatchString(key) && holdsImage(text) {
				empty.Set(key, "none,media=cdrom")
			}
		}
		if len(empty) == 0 {
			return nil
		}
		return pve.do(ctx, http.MethodPut, vmPath(node, id)+"/config?"+empty.Encode(), new(any))
	})
}

var drive = regexp.MustCompile(`^(ide|sata|scsi)\d+$`)

// holdsImage reports whether a drive is a CD drive with an image, such as local:iso/talos.iso,media=cdrom,size=100M.
func holdsImage(value string) bool {
	parts := strings.Split(value, ",")
	return slices.Contains(parts, "media=cdrom") && strings.Contains(parts[0], ":iso/")
}
