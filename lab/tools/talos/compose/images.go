package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// image is an entry of images.json: an image that the lab's registry serves, under each of the names and tags.
type image struct {
	Names      []string `json:"names"` // without the registry's host; a * at the end stands for the last part of a name
	Tags       []string `json:"tags"`  // a * stands for every tag
	Layers     []string `json:"layers"`
	Entrypoint []string `json:"entrypoint"`
	Env        []string `json:"env"`
}

// environment is that of all images.
var environment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

// imageList is the content of images.json for these versions, which have no leading v.
func imageList(talos, kubernetes string) []image {
	control := func(name string) image {
		return newImage([]string{name}, "v"+kubernetes, "/usr/local/bin/"+name, "libc", "kube")
	}
	return []image{
		newImage([]string{"siderolabs/installer", "nocloud-installer/*"}, "v"+talos, "/usr/bin/installer", "installer-root", "installer"),
		newImage([]string{"siderolabs/kubelet"}, "v"+kubernetes, "/usr/local/bin/kubelet", "libc", "mount", "kubelet"),
		control("kube-apiserver"), control("kube-controller-manager"), control("kube-scheduler"),
		newImage([]string{"etcd", "etcd-development/etcd"}, "*", "/usr/local/bin/etcd", "libc", "etcd"),
		newImage([]string{"pause"}, "*", "/pause", "pause"),
	}
}

func newImage(names []string, tag, program string, layers ...string) image {
	i := image{Names: names, Tags: []string{tag}, Entrypoint: []string{program}, Env: environment}
	for _, layer := range layers {
		i.Layers = append(i.Layers, "images/"+layer+".tar")
	}
	return i
}

// layers are the functions that fill the folders of the layers, by the layers' names. root and installer are the packages of both.
func (c *composition) layers(root, installer []string) map[string]fillFunc {
	return map[string]fillFunc{
		"libc":           func(ctx context.Context, folder string) error { return c.libcLayer(ctx, folder, root) },
		"mount":          func(ctx context.Context, folder string) error { return packagesLayer(ctx, folder, root, mountPackages) },
		"kubelet":        c.kubeletLayer,
		"kube":           c.kubeLayer,
		"etcd":           c.etcdLayer,
		"pause":          pauseLayer,
		"installer-root": func(ctx context.Context, folder string) error { return installerRootLayer(ctx, folder, installer) },
		"installer":      c.installerLayer,
	}
}

// fillFunc fills the folder of a layer.
type fillFunc func(ctx context.Context, folder string) error

// images makes the layers and images.json.
func (c *composition) images(ctx context.Context, root, installer []string) error {
	for name, fill := range c.layers(root, installer) {
		folder := c.temporary("layers/" + name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := fill(ctx, folder); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := c.layer(ctx, name); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(imageList(c.talos, c.kubernetes), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.path("images.json"), append(text, '\n'), 0o644)
}

// layer writes a layer. It is not compressed, because a machine whose processor is emulated is slow at that.
func (c *composition) layer(ctx context.Context, name string) error {
	_, err := run(ctx, "tar", "-c", "-C", c.temporary("layers/"+name), "-f", c.path("images/"+name+".tar"), "--sort=name", "--mtime=@0",
		"--owner=0", "--group=0", "--numeric-owner", "--format=gnu", ".")
	return err
}

// systemLayer unpacks packages into a folder, as a system without sbin.
func systemLayer(ctx context.Context, folder string, debs []string) error {
	if err := skeleton(folder); err != nil {
		return err
	}
	return extract(ctx, folder, debs)
}

// packagesLayer unpacks the packages of these names.
func packagesLayer(ctx context.Context, folder string, debs, names []string) error {
	found, err := only(debs, names)
	if err != nil {
		return err
	}
	return systemLayer(ctx, folder, found)
}

// libcLayer is the base of images with Go programs that are built with cgo.
func (c *composition) libcLayer(ctx context.Context, folder string, debs []string) error {
	if err := packagesLayer(ctx, folder, debs, libcPackages); err != nil {
		return err
	}
	if err := removeAll(folder, []string{"usr/lib/x86_64-linux-gnu/gconv", "usr/lib/x86_64-linux-gnu/audit"}); err != nil {
		return err
	}
	trusted, err := c.trusted()
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"etc/ssl/certs/ca-certificates.crt": string(trusted),
		"etc/passwd":                        "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n",
		"etc/group":                         "root:x:0:\nnogroup:x:65534:\n",
	} {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	for _, name := range []string{"tmp", "var/run", "proc", "sys", "dev"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// kubeletLayer has the kubelet. Its run is a link, because Talos mounts the machine's at /var/run.
func (c *composition) kubeletLayer(_ context.Context, folder string) error {
	return errors.Join(copyTo(c.kubelet, filepath.Join(folder, "usr/local/bin/kubelet"), 0o755),
		os.MkdirAll(filepath.Join(folder, "var"), 0o755), os.Symlink("/var/run", filepath.Join(folder, "run")))
}

// kubeLayer has the lab's one program of the control plane under its names.
func (c *composition) kubeLayer(_ context.Context, folder string) error {
	bin := filepath.Join(folder, "usr/local/bin")
	errs := []error{copyTo(c.kube, filepath.Join(bin, "kube"), 0o755)}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		errs = append(errs, os.Symlink("kube", filepath.Join(bin, name)))
	}
	return errors.Join(errs...)
}

func (c *composition) etcdLayer(_ context.Context, folder string) error {
	return copyTo(c.etcd, filepath.Join(folder, "usr/local/bin/etcd"), 0o755)
}

func pauseLayer(_ context.Context, folder string) error {
	pause, err := beside("pause")
	if err != nil {
		return err
	}
	return copyTo(pause, filepath.Join(folder, "pause"), 0o755)
}

// installerRootLayer has grub-install and the mkfs programs that Talos's installer runs.
func installerRootLayer(ctx context.Context, folder string, debs []string) error {
	if err := systemLayer(ctx, folder, without(debs, installerLeftOut)); err != nil {
		return err
	}
	return olderFileSystem(folder)
}

// installerLayer has Talos's installer and what the installer copies onto the disk.
func (c *composition) installerLayer(_ context.Context, folder string) error {
	assets := filepath.Join(folder, "usr/install/amd64")
	return errors.Join(copyTo(filepath.Join(filepath.Dir(c.machined), "installer"), filepath.Join(folder, "usr/bin/installer"), 0o755),
		copyTo(c.temporary("installed.efi"), filepath.Join(assets, "vmlinuz.efi"), 0o644),
		copyTo(systemdBoot, filepath.Join(assets, "systemd-boot.efi"), 0o644))
}
