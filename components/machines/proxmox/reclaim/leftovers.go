package reclaim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/slipway-platform/slipway/internal/probe"
)

// Leftovers are what is left on Proxmox VE of a cluster that is destroyed: VMs that interrupted runs have left, and images. They are the
// spec of `slipway-probe leftovers`. `destroy` reads the spec of the last run of `up`, so a key can be added, and none can be removed.
type Leftovers struct {
	API      API     `json:"api"`                // required
	VMs      []VM    `json:"vms,omitempty"`      // all VMs of the cluster
	Images   []Image `json:"images,omitempty"`   // the declared boot images of the cluster, which may be downloading
	ImagesOf string  `json:"imagesOf,omitempty"` // the cluster whose images are removed, whatever their release; "" means that of none
}

// Image is a boot image on a storage of a Proxmox node.
type Image struct {
	Host    string `json:"host"`    // Proxmox node
	Storage string `json:"storage"` // storage for ISO images
	File    string `json:"file"`    // file name
}

// SetDefaults sets nothing: there are no defaults.
func (l *Leftovers) SetDefaults() {}

// Validate returns every problem of the spec.
func (l *Leftovers) Validate() error {
	return probe.Required("api.endpoint", l.API.Endpoint, "give the URL of the Proxmox VE API")
}

// Remove removes the leftovers that the spec names. It removes only VMs that Reclaim would remove, and names the others, which may hold
// data: a person must look. A VM with another name or description is not Slipway's.
func Remove(ctx context.Context, leftovers *Leftovers, say func(string)) error {
	pve, err := leftovers.API.connect()
	if err == nil {
		err = checkVersion(ctx, pve)
	}
	if err != nil {
		return err
	}
	problems := []error{removeLeftoverVMs(ctx, pve, leftovers.VMs, say)}
	for _, image := range leftovers.Images {
		problems = append(problems, pve.removeLeftoverImage(ctx, image, say))
	}
	if leftovers.ImagesOf != "" {
		problems = append(problems, pve.removeImages(ctx, leftovers.ImagesOf, say))
	}
	return errors.Join(problems...)
}

// removeLeftoverVMs removes VMs at the same time.
func removeLeftoverVMs(ctx context.Context, pve host, vms []VM, say func(string)) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	said, problems := make([]string, len(vms)), make([]error, len(vms))
	probe.Each(vms, func(i int, vm VM) { said[i], problems[i] = vm.removeLeftover(ctx, pve) })
	for _, line := range said {
		if line != "" {
			say(line)
		}
	}
	return errors.Join(problems...)
}

// removeLeftover removes a leftover, and says what it has done.
func (v VM) removeLeftover(ctx context.Context, pve host) (said string, err error) {
	found, err := v.awaitUnlocked(ctx, pve)
	if err != nil || found == nil || !v.matches(found) {
		return "", err
	}
	err = v.deleteUnconfigured(ctx, pve, found)
	if errors.Is(err, errMayHoldData) {
		return "stays: " + err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("removed VM %d (%s) on Proxmox node %s, which an interrupted run has left", v.ID, v.Name, found.node), nil
}

// MakeRoom stops downloads of an image that an interrupted run has begun and Proxmox VE goes on with, and deletes the file. It may be
// incomplete, or that of an earlier image that is declared again. The provider would begin its own download before its deletion of the file
// has ended, and fail.
func MakeRoom(ctx context.Context, api API, image Image) error {
	return api.askRecent(ctx, func(ctx context.Context, pve *proxmox) error {
		return pve.removeLeftoverImage(ctx, image, func(string) {})
	})
}

// stopDownloads stops the downloads of an image that run, and waits until they have ended.
func (c *proxmox) stopDownloads(ctx context.Context, image Image) error {
	node := "nodes/" + url.PathEscape(image.Host)
	var tasks []struct {
		UPID, Type, ID string
		EndTime        int64
	}
	if err := c.do(ctx, http.MethodGet, node+"/tasks?source=active&typefilter=download", &tasks); err != nil {
		return err
	}
	for _, task := range tasks {
		if task.Type != "download" || task.ID != image.File || task.EndTime != 0 {
			continue
		}
		if err := c.do(ctx, http.MethodDelete, node+"/tasks/"+url.PathEscape(task.UPID), new(any)); err != nil {
			return err
		}
		if _, err := c.ended(ctx, image.Host, task.UPID); err != nil {
			return err
		}
	}
	return nil
}

// removeLeftoverImage stops a download of the image that still runs, and deletes the image if it exists.
func (c *proxmox) removeLeftoverImage(ctx context.Context, image Image, say func(string)) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	if err := c.stopDownloads(ctx, image); err != nil {
		return err
	}
	if err := c.awaitDeletions(ctx, image.Storage); err != nil {
		return err
	}
	return c.deleteImage(ctx, image, say)
}

// deleteImage deletes an image if it exists.
func (c *proxmox) deleteImage(ctx context.Context, image Image, say func(string)) error {
	exists, err := c.holds(ctx, image)
	if err != nil || !exists {
		return err
	}
	var task string
	if err := c.do(ctx, http.MethodDelete, image.content()+"/"+url.PathEscape(image.volume()), &task); err != nil {
		return err
	}
	status, err := c.ended(ctx, image.Host, task)
	if err != nil {
		return err
	}
	if status == "OK" {
		say(fmt.Sprintf("removed image %s on Proxmox node %s", image.volume(), image.Host))
		return nil
	}
	if exists, err = c.holds(ctx, image); exists {
		err = fmt.Errorf("image %s on Proxmox node %s: %s", image.volume(), image.Host, status)
	}
	return err
}

// deletionTimeout is the longest wait for deletions that others have begun.
const deletionTimeout = 30 * time.Second

// awaitDeletions waits until no deletion on a storage runs, on any Proxmox node: the provider does not wait until its own deletion of the
// file has ended. One that takes longer than deletionTimeout is not waited for, because the list may be late.
func (c *proxmox) awaitDeletions(ctx context.Context, storage string) error {
	ctx, cancel := context.WithTimeout(ctx, deletionTimeout)
	defer cancel()
	err := until(ctx, "the deletions on "+storage, func(ctx context.Context) (string, error) {
		var tasks []struct {
			Type, ID string
			EndTime  any // nil while the task runs
		}
		if err := c.do(ctx, http.MethodGet, "cluster/tasks", &tasks); err != nil {
			return retry(err)
		}
		for _, task := range tasks {
			if task.Type == "imgdel" && task.ID == storage && task.EndTime == nil {
				return "an image is being deleted", nil
			}
		}
		return "", nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// holds reports whether an image exists on its storage.
func (c *proxmox) holds(ctx context.Context, image Image) (bool, error) {
	found, err := c.files(ctx, image.Host, image.Storage, regexp.MustCompile("^"+regexp.QuoteMeta(image.File)+"$"))
	return len(found) > 0, err
}
