package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	Entrypoint []string          // before the arguments of containers without a command; nil if the lab does not know it
	Env        map[string]string // its variables, which those of a container override
	WorkDir    string            // its working directory; "" means /
	// Names lets its containers find Services and the lab's servers by name. A Service of their namespace has an address of
	// Cluster.Services; the address of another one is that of a ready endpoint, whose port must be the same.
	Names bool
	// Unknown are arguments of newer images, up to their =, which the lab's programs do not know. They are left out.
	Unknown []string
	// Other is text in commands, and what stands there instead, because this machine's programs are older than the image's.
	Other map[string]string
	// Build is the command that builds the image's programs, if the lab lacks them: its containers do not start, and name it. "" means that
	// the lab has them.
	Build string
}

// machineFolders are the computer's folders that programs need, as far as they exist: their libraries and the kernel's.
var machineFolders = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/proc", "/dev"}

// start runs the container's command.
func (m Image) start(ctx context.Context, extraEnv []string, c Container) (*Instance, error) {
	if m.Build != "" {
		return nil, fmt.Errorf("the lab runs the real programs of image %s, and they are not built; build them, and start the lab again: %s",
			c.Spec.Image, m.Build)
	}
	if c.Network == "" {
		return nil, fmt.Errorf("container %s: its pod has no network namespace", c.Spec.Name)
	}
	entrypoint := c.Spec.Command
	if len(entrypoint) == 0 {
		entrypoint = m.Entrypoint
	}
	if len(c.Spec.Command) == 0 && m.Entrypoint == nil || len(entrypoint)+len(c.Spec.Args) == 0 {
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
		if name, _, _ := strings.Cut(word, "="); slices.Contains(m.Unknown, name) {
			continue
		}
		for old, other := range m.Other {
			word = strings.ReplaceAll(word, old, other)
		}
		command = append(command, Expand(word, env))
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
	if err := errors.Join(
		os.WriteFile(filepath.Join(account, "namespace"), []byte(c.Pod.Namespace), 0o600),
		m.writeHosts(ctx, c, hosts),
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
	volumes, err := mountedVolumes(ctx, c, account)
	if err != nil {
		return process.Spec{}, err
	}
	maps.Copy(mounts, volumes)
	root, dir := filepath.Join(c.Dir, "root", c.Spec.Name), cmp.Or(c.Spec.WorkingDir, m.WorkDir)
	if err := errors.Join(makeRoot(root, mounts, volumes), os.MkdirAll(filepath.Join(root, dir), 0o755)); err != nil {
		return process.Spec{}, err
	}
	for _, defaults := range []map[string]string{m.Env, {"PATH": "/usr/bin:/bin", "HOME": "/", "HOSTNAME": c.Pod.Name}} {
		for name, value := range defaults {
			if _, set := env[name]; !set {
				env[name] = value
			}
		}
	}
	return process.Spec{
		Cluster: c.Cluster.Name, Node: c.Node, Name: c.Pod.Namespace + "/" + c.Pod.Name + "/" + c.Spec.Name, Env: variables(env), Dir: c.Dir,
		Log: c.LogPath, Root: root, WorkDir: dir, Mounts: mounts, Network: c.Network,
	}, nil
}

// writeHosts writes the hosts file of a container, and again when names change, until ctx ends.
func (m Image) writeHosts(ctx context.Context, c Container, path string) error {
	if !m.Names {
		return os.WriteFile(path, PodHosts(c), 0o600)
	}
	return keepHosts(ctx, c, path, func() ([]byte, error) {
		services, err := serviceNames(ctx, c, c.Cluster.Services)
		if err != nil {
			return nil, err
		}
		servers, err := os.ReadFile("/etc/hosts")
		return slices.Concat(PodHosts(c), services, servers), err
	})
}

// mountedVolumes returns the folders and files with the volumes of a container, by the path at which it sees them. account is the folder of
// its service account.
func mountedVolumes(ctx context.Context, c Container, account string) (map[string]string, error) {
	folders := map[string]string{} // by volume
	mounts := map[string]string{}
	for _, mount := range c.Spec.VolumeMounts {
		if mount.MountPath == accountFolder {
			mounts[accountFolder] = account
			continue
		}
		if folders[mount.Name] == "" {
			var err error
			if folders[mount.Name], err = MountedVolume(ctx, c, mount, volumeInterval); err != nil {
				return nil, err
			}
		}
		within, err := subPath(folders[mount.Name], mount)
		if err != nil {
			return nil, fmt.Errorf("container %s: %w", c.Spec.Name, err)
		}
		mounts[mount.MountPath] = within
	}
	return mounts, nil
}

// subPath returns the part of a volume that a mount names. A folder that is missing is made, as a kubelet does.
func subPath(folder string, mount corev1.VolumeMount) (string, error) {
	switch {
	case mount.SubPathExpr != "":
		return "", fmt.Errorf("mount %s: subPathExpr is not modelled by the lab", mount.MountPath)
	case mount.SubPath == "":
		return folder, nil
	case !filepath.IsLocal(mount.SubPath):
		return "", fmt.Errorf("mount %s: subPath %q leaves the volume", mount.MountPath, mount.SubPath)
	}
	path := filepath.Join(folder, mount.SubPath)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return path, os.MkdirAll(path, 0o755)
	}
	return filepath.EvalSymlinks(path) // the file of this moment: it stays, as in a real pod
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

// makeRoot makes the folder that a container sees as /, with everything on which something is mounted. What is mounted below a volume is
// made in the volume, as a container runtime does.
func makeRoot(root string, mounts, volumes map[string]string) error {
	for _, folder := range []string{"tmp", "var/run", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			return err
		}
	}
	for where, what := range mounts {
		points := []string{filepath.Join(root, where)}
		if above := filepath.Dir(where); above != where {
			for ; above != "/" && mounts[above] == ""; above = filepath.Dir(above) {
			}
			if volume := volumes[above]; volume != "" {
				points = append(points, filepath.Join(volume, strings.TrimPrefix(where, above)))
			}
		}
		for _, point := range points {
			if err := makePoint(point, what); err != nil {
				return err
			}
		}
	}
	return nil
}

// makePoint makes a file or a folder on which another one can be mounted.
func makePoint(point, what string) error {
	info, err := os.Stat(what)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.MkdirAll(point, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(point), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(point, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
