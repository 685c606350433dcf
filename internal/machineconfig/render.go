package machineconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/go-pointer"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
)

// Render returns the patches of a node in the order of application: Slipway's own first, then the user's. The first holds no
// secret; with Cluster.SecretPatches the others do. The installer's image is not among them, because it is known only after the
// schematic is: see InstallerImage.
func Render(c Cluster, n Node) ([]string, error) {
	own, err := renderOwn(c, n)
	if err != nil {
		return nil, err
	}
	patches := []string{own}
	for _, user := range c.userPatches(n) {
		patches = append(patches, user.text)
	}
	return patches, nil
}

// renderOwn returns the patch that Slipway makes for a node.
func renderOwn(c Cluster, n Node) (string, error) {
	volumes, err := c.volumes(n)
	if err != nil {
		return "", fmt.Errorf("node %s: %w", n.Name, err)
	}
	own, err := encode(slices.Concat([]config.Document{c.base(n), c.hostname(n)}, volumes, c.Extensions.services(c))...)
	if err != nil {
		return "", fmt.Errorf("node %s: %w", n.Name, err)
	}
	return own, nil
}

// InstallerImage returns the patch that names the image Talos is installed from, such as
// factory.talos.dev/nocloud-installer/SCHEMATIC:v1.12.7.
func InstallerImage(image string) (string, error) {
	return encode(&v1alpha1.Config{
		ConfigVersion: "v1alpha1",
		MachineConfig: &v1alpha1.MachineConfig{MachineInstall: &v1alpha1.InstallConfig{InstallImage: image}},
	})
}

// InlineManifest returns the patch that has Talos apply Kubernetes manifests once the API answers. For control planes
// only; what it returns is as secret as the contents.
func InlineManifest(name, contents string) (string, error) {
	return encode(&v1alpha1.Config{
		ConfigVersion: "v1alpha1",
		ClusterConfig: &v1alpha1.ClusterConfig{
			ClusterInlineManifests: v1alpha1.ClusterInlineManifests{{InlineManifestName: name, InlineManifestContents: contents}},
		},
	})
}

// hostname names the node by a document of its own. Since Talos 1.12 the generated configuration carries one that asks
// for an automatic name; auto has to be turned off for a static one to be valid beside it, and
// machine.network.hostname would be refused.
func (c Cluster) hostname(n Node) *network.HostnameConfigV1Alpha1 {
	doc := network.NewHostnameConfigV1Alpha1()
	doc.ConfigAuto = pointer.To(nethelpers.AutoHostnameKindOff)
	doc.ConfigHostname = n.Name
	return doc
}

func (c Cluster) base(n Node) *v1alpha1.Config {
	cfg := &v1alpha1.Config{
		ConfigVersion: "v1alpha1",
		MachineConfig: &v1alpha1.MachineConfig{
			MachineKubelet:    c.kubelet(n),
			MachineNetwork:    c.network(n),
			MachineInstall:    &v1alpha1.InstallConfig{InstallDisk: c.installDisk(n)},
			MachineSysctls:    c.Sysctls,
			MachineFeatures:   features(),
			MachineNodeLabels: c.labels(n),
			MachineNodeTaints: n.Taints,
		},
		ClusterConfig: &v1alpha1.ClusterConfig{
			ClusterNetwork: &v1alpha1.ClusterNetworkConfig{
				CNI:           &v1alpha1.CNIConfig{CNIName: "none"},
				PodSubnet:     c.pods(),
				ServiceSubnet: c.services(),
			},
			ClusterDiscoveryConfig: discovery(),
		},
	}
	if len(c.NTP) > 0 {
		cfg.MachineConfig.MachineTime = &v1alpha1.TimeConfig{TimeServers: c.NTP}
	}
	if len(c.RegistryMirrors) > 0 {
		cfg.MachineConfig.MachineRegistries = v1alpha1.RegistriesConfig{RegistryMirrors: c.mirrors()} //nolint:staticcheck // one document per node is easier to read than one per registry
	}
	if c.KeepImageLayers {
		cfg.MachineConfig.MachineFiles = []*v1alpha1.MachineFile{keptLayers()}
	}
	if n.Role == ControlPlane {
		c.controlPlane(cfg)
	}
	return cfg
}

func (c Cluster) kubelet(n Node) *v1alpha1.KubeletConfig {
	kubelet := &v1alpha1.KubeletConfig{
		KubeletNodeIP:    &v1alpha1.KubeletNodeIPConfig{KubeletNodeIPValidSubnets: c.nodeIPs(n)},
		KubeletExtraArgs: c.Kubelet.ExtraArgs,
	}
	if c.Kubelet.MaxPods != 0 {
		kubelet.KubeletExtraConfig = v1alpha1.Unstructured{Object: map[string]any{"maxPods": c.Kubelet.MaxPods}}
	}
	return kubelet
}

// keptLayers is Talos's place for what is added to containerd's configuration. By default containerd drops an image's
// layers once they are unpacked, and there is nothing left to hand to other nodes.
func keptLayers() *v1alpha1.MachineFile {
	return &v1alpha1.MachineFile{
		FileOp:          "create",
		FilePath:        "/etc/" + constants.CRICustomizationConfigPart,
		FilePermissions: 0o644,
		FileContent: "[plugins.\"io.containerd.cri.v1.images\"]\n" +
			"  discard_unpacked_layers = false\n",
	}
}

// controlPlane adds what only control planes may carry: Talos refuses it on workers.
func (c Cluster) controlPlane(cfg *v1alpha1.Config) {
	// Talos puts a node's own addresses into its certificates, and the VIP into the API server's, by itself.
	cfg.MachineConfig.MachineCertSANs = []string{c.VIP.String()}
	cfg.ClusterConfig.ProxyConfig = &v1alpha1.ProxyConfig{Disabled: pointer.To(true)}
	cfg.ClusterConfig.EtcdConfig = &v1alpha1.EtcdConfig{EtcdAdvertisedSubnets: c.nodeSubnets()}
	if args := c.controllerManagerArgs(); len(args) > 0 {
		cfg.ClusterConfig.ControllerManagerConfig = &v1alpha1.ControllerManagerConfig{ExtraArgsConfig: args}
	}
	if c.DisableCoreDNS {
		cfg.ClusterConfig.CoreDNSConfig = &v1alpha1.CoreDNS{CoreDNSDisabled: pointer.To(true)}
	}
	cfg.ClusterConfig.AllowSchedulingOnControlPlanes = pointer.To(c.SchedulePodsOnControlPlanes)
}

// network addresses the one device by its MAC address: its name depends on the machine type and the PCI slot.
func (c Cluster) network(n Node) *v1alpha1.NetworkConfig {
	addresses, gateways := c.addresses(n)
	device := &v1alpha1.Device{
		DeviceSelector:  &v1alpha1.NetworkDeviceSelector{NetworkDeviceHardwareAddress: strings.ToLower(n.MAC)},
		DeviceDHCP:      pointer.To(false),
		DeviceAddresses: addresses,
	}
	for _, gateway := range gateways {
		device.DeviceRoutes = append(device.DeviceRoutes, &v1alpha1.Route{
			RouteNetwork: defaultRoute(gateway),
			RouteGateway: gateway.String(),
		})
	}
	if n.Role == ControlPlane {
		device.DeviceVIPConfig = &v1alpha1.DeviceVIPConfig{SharedIP: c.VIP.String()}
	}
	return &v1alpha1.NetworkConfig{NetworkInterfaces: v1alpha1.NetworkDeviceList{device}, NameServers: c.nameservers()}
}

// features turns on KubePrism, and keeps Talos's own DNS cache for the host but off the path of cluster DNS: CoreDNS
// would forward to a link-local address of the host, which Cilium's BPF masquerading cannot reach. So Cilium's options
// need not depend on this one.
func features() *v1alpha1.FeaturesConfig {
	return &v1alpha1.FeaturesConfig{
		KubePrismSupport: &v1alpha1.KubePrism{ServerEnabled: pointer.To(true), ServerPort: KubePrismPort},
		HostDNSSupport: &v1alpha1.HostDNSConfig{
			HostDNSEnabled:              pointer.To(true),
			HostDNSForwardKubeDNSToHost: pointer.To(HostDNSForwarding),
		},
	}
}

// discovery keeps Talos's own choice, and states it so that it stays ours when Talos's changes. KubePrism learns the
// control planes' addresses from it; without, every node has the VIP alone and waits for its failover. The service
// registry is an external one, gets encrypted data only, and a cluster without a way to it works still. The other one,
// Kubernetes, cannot work since 1.32: nodes may no longer read each other.
func discovery() *v1alpha1.ClusterDiscoveryConfig {
	return &v1alpha1.ClusterDiscoveryConfig{
		DiscoveryEnabled: pointer.To(true),
		DiscoveryRegistries: v1alpha1.DiscoveryRegistriesConfig{
			RegistryKubernetes: v1alpha1.RegistryKubernetesConfig{RegistryDisabled: pointer.To(true)},
		},
	}
}

func (c Cluster) mirrors() map[string]*v1alpha1.RegistryMirrorConfig {
	mirrors := map[string]*v1alpha1.RegistryMirrorConfig{}
	for host, urls := range c.RegistryMirrors {
		mirrors[host] = &v1alpha1.RegistryMirrorConfig{MirrorEndpoints: urls}
	}
	return mirrors
}
