// Package accept decides whether a Talos node takes a machine configuration, and whether it can change to it without a reboot.
package accept

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/hashicorp/go-multierror"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/slipway-platform/slipway/lab/talos/kubernetes"
	"github.com/slipway-platform/slipway/lab/talos/versions"
)

// Validate runs Talos's own checks as a version of Talos does, and returns their warnings. resources are the node's. A node that is not
// installed also needs installation instructions. Talos checks them in metal mode only, but a nocloud machine that has booted from an image
// could not continue without, either.
func Validate(ctx context.Context, cfg config.Provider, version string, resources state.State, installed bool) ([]string, error) {
	if cfg.RawV1Alpha1() == nil {
		return nil, errors.New("the applied machine configuration doesn't contain v1alpha1 config, " +
			"did you mean to patch the machine config instead?")
	}
	mode := cloudMode{installed: installed}
	warnings, err := cfg.Validate(mode)
	if err != nil {
		return nil, err
	}
	comparable, err := knownKubernetes(cfg)
	if err != nil {
		return nil, err
	}
	more, err := comparable.RuntimeValidate(ctx, resources, mode)
	if err == nil {
		err = kubernetesError(version, cfg)
	}
	if err != nil {
		return nil, err
	}
	return append(warnings, more...), nil
}

// cloudMode is Talos's runtime mode on the nocloud platform.
type cloudMode struct{ installed bool }

func (cloudMode) String() string { return "cloud" }

func (m cloudMode) RequiresInstall() bool { return !m.installed }

func (cloudMode) InContainer() bool { return false }

// NeedsReboot is Talos's error if a change cannot be applied without a reboot. The rule is Talos's own: a change in machine: of a field
// that is not listed here needs a reboot.
func NeedsReboot(current, next config.Provider) error {
	from, to := current.RawV1Alpha1(), next.RawV1Alpha1().DeepCopy()
	to.ConfigDebug, to.ClusterConfig = from.ConfigDebug, from.ClusterConfig
	if m, c := to.MachineConfig, from.MachineConfig; m != nil && c != nil {
		m.MachineCA, m.MachineAcceptedCAs = c.MachineCA, c.MachineAcceptedCAs
		m.MachineTime = c.MachineTime             //nolint:staticcheck // Talos compares it too
		m.MachineRegistries = c.MachineRegistries //nolint:staticcheck // Talos compares it too
		m.MachineCertSANs, m.MachineInstall, m.MachineNetwork = c.MachineCertSANs, c.MachineInstall, c.MachineNetwork
		m.MachineSysfs, m.MachineSysctls, m.MachineLogging = c.MachineSysfs, c.MachineSysctls, c.MachineLogging
		m.MachineControlPlane, m.MachineKubelet, m.MachineKernel = c.MachineControlPlane, c.MachineKubelet, c.MachineKernel
		m.MachinePods, m.MachineSeccompProfiles = c.MachinePods, c.MachineSeccompProfiles
		m.MachineNodeAnnotations, m.MachineNodeLabels, m.MachineNodeTaints = c.MachineNodeAnnotations, c.MachineNodeLabels, c.MachineNodeTaints
		if f, g := m.MachineFeatures, c.MachineFeatures; f != nil && g != nil {
			f.KubernetesTalosAPIAccessConfig, f.KubePrismSupport = g.KubernetesTalosAPIAccessConfig, g.KubePrismSupport
			f.HostDNSSupport, f.ImageCacheSupport = g.HostDNSSupport, g.ImageCacheSupport
			f.FeatureNodeAddressSortAlgorithm = g.FeatureNodeAddressSortAlgorithm
		}
	}
	if reflect.DeepEqual(from, to) {
		return nil
	}
	return fmt.Errorf("this config change can't be applied in immediate mode")
}

// kubernetesError is why a version of Talos does not take a configuration's images of Kubernetes.
func kubernetesError(version string, cfg config.Provider) error {
	images := [][2]string{{"kubelet", cfg.Machine().Kubelet().Image()}}
	if cfg.Machine().Type().IsControlPlane() {
		for _, c := range kubernetes.Components(cfg) {
			images = append(images, [2]string{c.Name, c.Image})
		}
	}
	var errs []error
	for _, image := range images {
		if err := versions.KubernetesError(version, image[1]); err != nil {
			errs = append(errs, fmt.Errorf("%s image is not valid: %w", image[0], err))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return &multierror.Error{Errors: []error{fmt.Errorf("v1alpha1.Config: %w", &multierror.Error{Errors: errs})}}
}

// knownKubernetes returns the configuration with images of a version of Kubernetes that the machinery in the lab takes: it compares images
// with its own version of Talos, whatever version a machine runs.
func knownKubernetes(cfg config.Provider) (config.Provider, error) {
	const version = "v1.35.0"
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
