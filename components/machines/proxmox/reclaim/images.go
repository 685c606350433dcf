package reclaim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// ImageFile returns the name of the file with a boot image. host is "" on a storage that is shared by the Proxmox nodes.
//
// The name contains schematic, version and kind, so that a file of that name never needs to change. Its owner is the cluster, so that
// another cluster on the same hosts does not delete this cluster's image, and the Proxmox node.
func ImageFile(schematic, version, cluster, host, kind string) string {
	if host != "" {
		cluster += "-" + host
	}
	return fmt.Sprintf("talos-%.12s-%s-%s-%s.iso", schematic, version, cluster, kind)
}

// OtherKind ends the name of an image whose kind is not the one of talos.diskEncryption.
const OtherKind = "-other"

// imageNames matches the names that ImageFile gives the images of a cluster, of the hosts and of none.
func imageNames(cluster string, hosts []string) *regexp.Regexp {
	for i := range hosts {
		hosts[i] = regexp.QuoteMeta(hosts[i])
	}
	return regexp.MustCompile(`^talos-[0-9a-f]{12}-v[0-9.]+(-[a-z]+\.[0-9]+)?-` + regexp.QuoteMeta(cluster) +
		`(-(` + strings.Join(hosts, "|") + `))?-nocloud-amd64(-secureboot)?(` + OtherKind + `)?\.iso$`)
}

// removeImages removes the boot images of a cluster, of all its releases and extensions so far, from all storages of the Proxmox nodes.
// `up` keeps them, because machines have them in their CD drives. One that a VM still has stays.
func (c *proxmox) removeImages(ctx context.Context, cluster string, say func(string)) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	nodes, err := c.online(ctx, func(node string) {
		say(fmt.Sprintf("stay: images of %s on Proxmox node %s, which is offline; remove them by hand", cluster, node))
	})
	if err != nil {
		return err
	}
	images, err := c.imagesOf(ctx, cluster, nodes)
	if err != nil || len(images) == 0 {
		return err
	}
	users, err := c.users(ctx, nodes)
	if err != nil {
		return err
	}
	var problems []error
	for _, image := range images {
		if vm, used := users[image.volume()]; used {
			say(fmt.Sprintf("stays: image %s on Proxmox node %s: VM %d has it in a drive; remove it with that VM", image.volume(), image.Host, vm))
			continue
		}
		problems = append(problems, c.deleteImage(ctx, image, say))
	}
	return errors.Join(problems...)
}

// online returns the Proxmox nodes that are online, and names the others.
func (c *proxmox) online(ctx context.Context, offline func(string)) (nodes []string, err error) {
	var all []struct{ Node, Status string }
	if err := c.do(ctx, http.MethodGet, "nodes", &all); err != nil {
		return nil, err
	}
	for _, node := range all {
		if node.Status != "online" {
			offline(node.Node)
			continue
		}
		nodes = append(nodes, node.Node)
	}
	return nodes, nil
}

// imagesOf returns the images of a cluster on Proxmox nodes. One on a shared storage is returned once.
func (c *proxmox) imagesOf(ctx context.Context, cluster string, nodes []string) (images []Image, err error) {
	seen := map[string]bool{}
	for _, node := range nodes {
		var storages []struct {
			Storage        string
			Active, Shared any // 0 or 1, as a number or as a text
		}
		if err := c.do(ctx, http.MethodGet, "nodes/"+url.PathEscape(node)+"/storage?content=iso", &storages); err != nil {
			return nil, err
		}
		for _, storage := range storages {
			if !isSet(storage.Active) || seen[storage.Storage] {
				continue
			}
			owners := []string{node}
			if seen[storage.Storage] = isSet(storage.Shared); seen[storage.Storage] {
				owners = slices.Clone(nodes)
			}
			found, err := c.files(ctx, node, storage.Storage, imageNames(cluster, owners))
			if err != nil {
				return nil, err
			}
			images = append(images, found...)
		}
	}
	return images, nil
}

// files returns the images on a storage whose file names match.
func (c *proxmox) files(ctx context.Context, node, storage string, names *regexp.Regexp) (images []Image, err error) {
	at := Image{Host: node, Storage: storage}
	var found []struct{ VolID string }
	if err := c.do(ctx, http.MethodGet, at.content()+"?content=iso", &found); err != nil {
		return nil, err
	}
	for _, volume := range found {
		if at.File = strings.TrimPrefix(volume.VolID, storage+":iso/"); names.MatchString(at.File) {
			images = append(images, at)
		}
	}
	return images, nil
}

// users returns the ids of VMs on Proxmox nodes, by the images in their drives.
func (c *proxmox) users(ctx context.Context, nodes []string) (map[string]int, error) {
	guests, err := c.locate(ctx)
	if err != nil {
		return nil, err
	}
	users := map[string]int{}
	for id, guest := range guests {
		if guest.Type != "qemu" || !slices.Contains(nodes, guest.Node) {
			continue
		}
		var config map[string]any
		if err := c.do(ctx, http.MethodGet, vmPath(guest.Node, id)+"/config", &config); err != nil {
			return nil, err
		}
		for _, value := range config {
			if text, isText := value.(string); isText && holdsImage(text) {
				volume, _, _ := strings.Cut(text, ",")
				users[volume] = id
			}
		}
	}
	return users, nil
}

// isSet reads a boolean of Proxmox's API: 0 or 1, as a number or as a text.
func isSet(value any) bool { return fmt.Sprint(value) == "1" }

// content is the path of the content of the image's storage.
func (i Image) content() string {
	return "nodes/" + url.PathEscape(i.Host) + "/storage/" + url.PathEscape(i.Storage) + "/content"
}

// volume is Proxmox's name of the image.
func (i Image) volume() string { return i.Storage + ":iso/" + i.File }
