package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/lab/kube/process"
)

// Image is an image of which the lab has the programs. Its containers, init containers included, run their own commands as a container
// does: with the image's programs and the container's volumes as file system, with its service account, and in the network namespace of
// their pod. Users, capabilities and limits are not modelled.
type Image struct {
	Files      map[string]string // files and folders of the image, by path in it
	Entrypoint []string          // the command of containers that give none; nil if the lab does not know it
	// Names lets its containers find Services and the lab's servers by name, as they are when a container starts. The address of a Service is
	// that of a ready endpoint, whose port must be the same.
	Names bool
	// Unknown are arguments of newer images, up to their =, which the lab's programs do not know. They are left out.
	Unknown []string
}

// machineFolders are the computer's folders that programs need, as far as they exist: their libraries and the kernel's.
var machineFolders = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/proc", "/dev"}

// start runs the container's command.
func (m Image) start(ctx context.Context, extraEnv []string, c Container) (*Instance, error) {
	if c.Network == "" {
		return nil, fmt.Errorf("container %s: its pod has no network namespace", c.Spec.Name)
	}
	entrypoint := c.Spec.Command
	if len(entrypoint) == 0 {
		entrypoint = m.Entrypoint
	}
	if len(entrypoint) == 0 {
		return nil, fmt.Errorf("container %s: no command, and the lab does not know the image's", c.Spec.Name)
	}
	env, err := Environment(ctx, c)
	if err != nil {
		return nil, err
	}
	command := m.command(slices.Concat(entrypoint, c.Spec.Args), env)
	i, ctx := NewInstance(ctx)
	spec, err := m.Container(ctx, c, env)
	spec.Env = slices.Concat(extraEnv, spec.Env)
	if err == nil {
		run := spec
		run.Path, run.Args, run.Output, run.Table = command[0], command[1:], c.Log, c.Cluster.Processes
		err = i.run(run)
	}
	if err != nil {
		i.Exit(1)
		return nil, err
	}
	i.OnExec = func(ctx context.Context, cmd []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
		if len(cmd) == 0 {
			return UnknownCommand(cmd, stderr)
		}
		exec := spec
		exec.Path, exec.Args = cmd[0], cmd[1:]
		return process.Run(ctx, exec, stdin, stdout, stderr)
	}
	if !c.RunsToCompletion {
		go Program{}.probe(ctx, c, i)
	}
	return i, nil
}

// command returns the words of a command that the lab's program knows, with the values of their variables.
func (m Image) command(words []string, env map[string]string) (command []string) {
	for _, word := range words {
		if name, _, _ := strings.Cut(word, "="); !slices.Contains(m.Unknown, name) {
			command = append(command, Expand(word, env))
		}
	}
	return command
}

// Container prepares everything of a container's process but its command. ctx ends with the container.
func (m Image) Container(ctx context.Context, c Container, env map[string]string) (process.Spec, error) {
	if err := apiServer(c, env); err != nil {
		return process.Spec{}, err
	}
	if _, err := writeKubeconfig(ctx, c); err != nil { // for the token and the CA beside it
		return process.Spec{}, err
	}
	account := filepath.Dir(tokenPath(c))
	hosts := filepath.Join(c.Dir, "hosts")
	names := PodHosts(c)
	if m.Names {
		services, err := ServiceNames(ctx, c)
		if err != nil {
			return process.Spec{}, err
		}
		servers, err := os.ReadFile("/etc/hosts")
		if err != nil {
			return process.Spec{}, err
		}
		names = slices.Concat(names, services, servers)
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(account, "namespace"), []byte(c.Pod.Namespace), 0o600),
		os.WriteFile(hosts, names, 0o600),
	); err != nil {
		return process.Spec{}, err
	}
	mounts := map[string]string{"/etc/hosts": hosts}
	maps.Copy(mounts, m.Files)
	for _, folder := range machineFolders {
		if _, err := os.Stat(folder); err == nil {
			mounts[folder] = folder
		}
	}
	for _, mount := range c.Spec.VolumeMounts {
		if mount.MountPath == accountFolder {
			mounts[accountFolder] = account
			continue
		}
		folder, err := MountedVolume(ctx, c, mount, volumeInterval)
		if err != nil {
			return process.Spec{}, err
		}
		mounts[mount.MountPath] = folder
	}
	root := filepath.Join(c.Dir, "root", c.Spec.Name)
	if err := errors.Join(makeRoot(root, mounts), os.MkdirAll(filepath.Join(root, c.Spec.WorkingDir), 0o755)); err != nil {
		return process.Spec{}, err
	}
	maps.Copy(env, map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/", "HOSTNAME": c.Pod.Name})
	return process.Spec{
		Cluster: c.Cluster.Name, Node: c.Node, Name: c.Pod.Namespace + "/" + c.Pod.Name + "/" + c.Spec.Name, Env: variables(env), Dir: c.Dir,
		Log: c.LogPath, Root: root, WorkDir: c.Spec.WorkingDir, Mounts: mounts, Network: c.Network,
	}, nil
}

// PodHosts is the hosts file of a pod: itself and its host aliases.
func PodHosts(c Container) []byte {
	lines := []string{"127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback", c.PodIP.String() + " " + c.Pod.Name}
	for _, alias := range c.Pod.Spec.HostAliases {
		lines = append(lines, alias.IP+" "+strings.Join(alias.Hostnames, " "))
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

// MountedVolume returns the folder with a mount's volume. Containers of the pod share a claim's volume and an emptyDir. Files of Secrets
// and ConfigMaps are compared with their objects at every interval, until ctx ends.
func MountedVolume(ctx context.Context, c Container, mount corev1.VolumeMount, interval time.Duration) (string, error) {
	v, err := c.Volume(mount.Name)
	if err != nil {
		return "", err
	}
	if folder := c.Claims[v.Name]; folder != "" {
		return filepath.EvalSymlinks(folder)
	}
	if v.EmptyDir != nil {
		folder := filepath.Join(c.Dir, "volumes", v.Name)
		return folder, os.MkdirAll(folder, 0o700)
	}
	// Each container writes its own copy, because it ends with the container.
	folder := filepath.Join(c.Dir, "volumes", v.Name+"-"+c.Spec.Name)
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return "", err
	}
	if err := keepVolume(ctx, c, v, folder, interval); err != nil {
		return "", fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", v.Name, err)
	}
	return folder, nil
}

// makeRoot makes the folder that a container sees as /, with everything on which something is mounted.
func makeRoot(root string, mounts map[string]string) error {
	for _, folder := range []string{"tmp", "var/run", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			return err
		}
	}
	for where, what := range mounts {
		info, err := os.Stat(what)
		if err != nil {
			return err
		}
		point := filepath.Join(root, where)
		if info.IsDir() {
			err = os.MkdirAll(point, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(point), 0o755); err == nil {
			var f *os.File
			if f, err = os.OpenFile(point, os.O_CREATE|os.O_RDONLY, 0o644); err == nil {
				err = f.Close()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
