package talos

import (
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"golang.org/x/mod/semver"
)

// minor is what differs between the minor versions of Talos that a machine may run: what each one's machinery says in the packages
// compatibility and constants, of the newest patch release that was read (1.12.7, 1.13.9, 1.14.1).
type minor struct {
	hosts      [2]string // versions that it may be installed over: from the first one on, before the second one
	kubernetes [2]string // the oldest and the newest minor version of Kubernetes
	etcd       string
}

var minors = map[string]minor{
	"v1.11": {[2]string{"v1.9.0", "v1.13.0"}, [2]string{"v1.29", "v1.34"}, "3.6.5"},
	"v1.12": {[2]string{"v1.10.0", "v1.14.0"}, [2]string{"v1.30", "v1.35"}, "3.6.9"},
	"v1.13": {[2]string{"v1.11.0", "v1.15.0"}, [2]string{"v1.31", "v1.36"}, "3.6.12"},
	"v1.14": {[2]string{"v1.12.0", "v1.16.0"}, [2]string{"v1.32", "v1.37"}, "3.7.1"},
}

// since tells whether a version of Talos is of a minor version, such as v1.13, or later.
func since(version, minor string) bool { return semver.Compare(semver.MajorMinor(version), minor) >= 0 }

// etcdVersion is the version of etcd that comes with the version of Talos that the machine runs.
func (b *boot) etcdVersion() string { return minors[semver.MajorMinor(b.version)].etcd }

// hostError is why a version of Talos may not be installed over another one, in the words of its installer.
func hostError(version, host string) error {
	of, known := minors[semver.MajorMinor(version)]
	bare := func(version string) string { return strings.TrimPrefix(version, "v") }
	switch {
	case !known:
		return fmt.Errorf("upgrades to version %s are not supported", bare(version))
	case semver.Compare(host, of.hosts[0]) < 0:
		return fmt.Errorf("host version %s is too old to upgrade to Talos %s", bare(host), bare(version))
	case semver.Compare(host, of.hosts[1]) >= 0:
		return fmt.Errorf("host version %s is too new to downgrade to Talos %s", bare(host), bare(version))
	}
	return nil
}

// kubernetesError is why a version of Talos does not take a configuration's images of Kubernetes.
func kubernetesError(version string, cfg config.Provider) error {
	images := [][2]string{{"kubelet", cfg.Machine().Kubelet().Image()}}
	if cfg.Machine().Type().IsControlPlane() {
		cluster := cfg.Cluster()
		images = append(images, [2]string{"kube-apiserver", cluster.APIServer().Image()},
			[2]string{"kube-controller-manager", cluster.ControllerManager().Image()}, [2]string{"kube-scheduler", cluster.Scheduler().Image()})
	}
	var errs []error
	for _, image := range images {
		if err := kubernetesImageError(version, image[1]); err != nil {
			errs = append(errs, fmt.Errorf("%s image is not valid: %w", image[0], err))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return joined(errs)
}

func kubernetesImageError(version, image string) error {
	kubernetes, err := v1alpha1.KubernetesVersionFromImageRef(image)
	if err != nil {
		return fmt.Errorf("failed to parse Kubernetes version from image reference %q: %w", image, err)
	}
	talos, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: version})
	if err != nil {
		return fmt.Errorf("failed to parse Talos version: %w", err)
	}
	of, known := minors[semver.MajorMinor(version)]
	its := semver.MajorMinor("v" + kubernetes.String())
	switch {
	case !known:
		return fmt.Errorf("compatibility with version %s is not supported", talos)
	case semver.Compare(its, of.kubernetes[0]) < 0:
		return fmt.Errorf("version of Kubernetes %s is too old to be used with Talos %s", kubernetes, talos)
	case semver.Compare(its, of.kubernetes[1]) > 0:
		return fmt.Errorf("version of Kubernetes %s is too new to be used with Talos %s", kubernetes, talos)
	}
	return nil
}

// withKubernetes returns the configuration with images of a version of Kubernetes that the machinery in the lab takes: it compares images
// with its own version of Talos, whatever version a machine runs.
func withKubernetes(cfg config.Provider, version string) (config.Provider, error) {
	return cfg.PatchV1Alpha1(func(c *v1alpha1.Config) error {
		if c.MachineConfig != nil && c.MachineConfig.MachineKubelet != nil {
			c.MachineConfig.MachineKubelet.KubeletImage = "kubelet:" + version
		}
		if c.ClusterConfig == nil {
			return nil
		}
		server, manager, scheduler := c.ClusterConfig.APIServerConfig, c.ClusterConfig.ControllerManagerConfig, c.ClusterConfig.SchedulerConfig
		if server != nil {
			server.ContainerImage = "kube-apiserver:" + version
		}
		if manager != nil {
			manager.ContainerImage = "kube-controller-manager:" + version
		}
		if scheduler != nil {
			scheduler.ContainerImage = "kube-scheduler:" + version
		}
		return nil
	})
}

// bootEntry is the file on the EFI system partition by which systemd-boot boots the next installation of a version, where the files of
// some installations are there already: Talos-v1.13.9.efi, then Talos-v1.13.9~1.efi.
func bootEntry(version string, there ...string) string {
	last := -1
	for _, file := range there {
		its, index, numbered := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(file, "Talos-"), ".efi"), "~")
		n := 0
		if numbered {
			_, _ = fmt.Sscan(index, &n)
		}
		if its == version {
			last = max(last, n)
		}
	}
	if last < 0 {
		return "Talos-" + version + ".efi"
	}
	return fmt.Sprintf("Talos-%s~%d.efi", version, last+1)
}

// files are the boot entries on the disk, the one that boots next first. The caller holds the site's mutex.
func (i *installation) files() []string {
	files := []string{i.entry}
	if i.former != nil {
		files = append(files, i.former.entry)
	}
	return files
}
