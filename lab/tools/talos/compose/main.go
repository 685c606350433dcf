// compose puts a real Talos together: it makes the root file system, the kernel with its initramfs, the ISO and the container images that a
// machine boots and pulls, from Debian's packages and from programs that are built from Go modules. contents.go lists what goes in.
//
// It is no product of Talos's own build: the kernel is Debian's, so are all programs that are not written in Go, there is no SELinux, no
// secure boot and no extension, and the only CA that is trusted is the lab's.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// composition holds the paths and versions of one build.
type composition struct {
	talos      string // version, without a leading v
	kubernetes string // version, without a leading v
	out        string // folder that is filled
	work       string // folder for what is needed meanwhile
	cache      string // folder that later builds use, too

	machined, containerd, kubelet, kube, etcd string // programs; others are beside them
}

func main() {
	c := composition{}
	flag.StringVar(&c.talos, "talos", "", "version of Talos")
	flag.StringVar(&c.kubernetes, "kubernetes", "", "version of Kubernetes")
	flag.StringVar(&c.out, "out", "", "folder to fill")
	flag.StringVar(&c.cache, "cache", "", "folder for packages and for the CA")
	for name, path := range c.parts() {
		flag.StringVar(path, name, "", "path of the program "+name)
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
		os.Exit(1)
	}
}

// parts are the programs by the names of their flags.
func (c *composition) parts() map[string]*string {
	return map[string]*string{
		"machined": &c.machined, "containerd": &c.containerd, "kubelet": &c.kubelet, "kube": &c.kube, "etcd": &c.etcd,
	}
}

// run composes everything and removes what is needed only meanwhile.
func (c *composition) run(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(c.out, "images"), 0o755); err != nil {
		return err
	}
	var err error
	if c.work, err = os.MkdirTemp(c.out, ".compose-"); err != nil {
		return err
	}
	defer os.RemoveAll(c.work)
	if err := c.makeCA(); err != nil {
		return err
	}
	root, err := c.closure(ctx, "root", rootPackages)
	if err != nil {
		return err
	}
	installer, err := c.closure(ctx, "installer", installerPackages)
	if err != nil {
		return err
	}
	kernel, err := c.kernel(ctx)
	if err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	if err := c.rootFileSystem(ctx, root, kernel); err != nil {
		return fmt.Errorf("root file system: %w", err)
	}
	if err := c.boot(ctx, kernel); err != nil {
		return err
	}
	if err := c.images(ctx, root, installer); err != nil {
		return fmt.Errorf("images: %w", err)
	}
	return c.describe(slices.Concat(root, installer, kernel.debs), kernel.release)
}

// describe writes the versions of what was composed.
func (c *composition) describe(debs []string, kernel string) error {
	text, err := json.Marshal(map[string]string{"version": "v" + c.talos, "kubernetes": c.kubernetes, "kernel": kernel})
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.path("talos.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(c.path("packages.txt"), []byte(strings.Join(fileNames(debs), "\n")+"\n"), 0o644)
}

// path is the path of a file that is made.
func (c *composition) path(name string) string { return filepath.Join(c.out, name) }

// temporary is the path of a file that is needed only meanwhile.
func (c *composition) temporary(name string) string { return filepath.Join(c.work, name) }

// beside is the path of a program in this program's folder.
func beside(name string) (string, error) {
	self, err := os.Executable()
	return filepath.Join(filepath.Dir(self), name), err
}
