package machineconfig

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/go-pointer"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
	"github.com/siderolabs/talos/pkg/machinery/role"

	"github.com/slipway-platform/slipway/cluster"
)

// Render returns the patches of a node in the order of application: Slipway's own first, then the user's. The first holds no
// secret; the others may. The installer's image is not among them, because it is known only after the schematic is: see InstallerImage.
func Render(declared *cluster.Cluster, n cluster.Machine) ([]string, error) {
	c := model{*declared}
	own, err := renderOwn(c, n)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	patches := []string{own}
	for _, user := range c.userPatches(n) {
		patches = append(patches, user.text)
	}
	return patches, nil
}

// renderOwn returns the patch that Slipway makes for a node.
func renderOwn(c model, n cluster.Machine) (string, error) {
	volumes, err := c.volumes(n)
	if err != nil {
		return "", err
	}
	return encode(slices.Concat([]config.Document{c.base(n), hostname(n)}, volumes, c.extensionServices())...)
}

// InstallerImage returns the patch that names the image Talos is installed from, such as
// factory.talos.dev/nocloud-installer/SCHEMATIC:v1.12.7.
func InstallerImage(image string) (string, error) {
	return encode(&v1alpha1.Config{
		ConfigVersion: "v1alpha1",
		MachineConfig: &v1alpha1.MachineConfig{MachineInstall: &v1alpha1.InstallConfig{InstallImage: image}},
	})
}

// InlineManifest returns the patch that makes Talos apply Kubernetes manifests as soon as the Kubernetes API answers. It is for
// control planes only. It is secret if the contents are.
func InlineManifest(name, contents string) (string, error) {
	return encode(&v1alpha1.Config{
		ConfigVersion: "v1alpha1",
		ClusterConfig: &v1alpha1.ClusterConfig{
			ClusterInlineManifests: v1alpha1.ClusterInlineManifests{{InlineManifestName: name, InlineManifestContents: contents}},
		},
	})
}

// hostname returns the document that names the node. Since Talos 1.12 the generated configuration has this document with an automatic
// name. A static name is valid only with auto turned off, and machine.network.hostname is refused.
func hostname(n cluster.Machine) *network.HostnameConfigV1Alpha1 {
	doc := network.NewHostnameConfigV1Alpha1()
	doc.ConfigAuto = pointer.To(nethelpers.AutoHostnameKindOff)
	doc.ConfigHostname = n.Name
	return doc
}

func (c model) base(n cluster.Machine) *v1alpha1.Config {
	cfg := &v1alpha1.Config{
		ConfigVersion: "v1alpha1",
		MachineConfig: &v1alpha1.MachineConfig{
			MachineKubelet:    c.kubelet(n),
			MachineNetwork:    c.network(n),
			MachineInstall:    &v1alpha1.InstallConfig{InstallDisk: c.installDisk(n)},
			MachineSysctls:    c.Talos.Sysctls,
			MachineFeatures:   features(),
			MachineNodeLabels: n.Labels,
		},
		ClusterConfig: &v1alpha1.ClusterConfig{
			ClusterNetwork: &v1alpha1.ClusterNetworkConfig{
				CNI:           &v1alpha1.CNIConfig{CNIName: "none"},
				PodSubnet:     texts(c.Network.PodCIDRs()),
				ServiceSubnet: texts(c.Network.ServiceCIDRs()),
			},
			ClusterDiscoveryConfig: discovery(),
		},
	}
	if len(c.Network.NTP) > 0 {
		cfg.MachineConfig.MachineTime = &v1alpha1.TimeConfig{TimeServers: c.Network.NTP}
	}
	if len(c.Talos.RegistryMirrors) > 0 {
		//nolint:staticcheck // one document per node is easier to read than one per registry
		cfg.MachineConfig.MachineRegistries = v1alpha1.RegistriesConfig{RegistryMirrors: c.mirrors()}
	}
	if c.Spegel.Enabled {
		cfg.MachineConfig.MachineFiles = []*v1alpha1.MachineFile{keptLayers()}
	}
	if n.Role == cluster.ControlPlane {
		if c.Lifecycle.Snapshots.Scheduled {
			cfg.MachineConfig.MachineFeatures.KubernetesTalosAPIAccessConfig = snapshotAccess()
		}
		c.controlPlane(cfg)
		cfg.MachineConfig.MachineNodeTaints = n.Taints
	}
	return cfg
}

func (c model) kubelet(n cluster.Machine) *v1alpha1.KubeletConfig {
	settings := map[string]any{"maxPods": c.Talos.Kubelet.MaxPods}
	if taints := registeredTaints(n); len(taints) > 0 {
		settings["registerWithTaints"] = taints
	}
	return &v1alpha1.KubeletConfig{
		KubeletNodeIP:      &v1alpha1.KubeletNodeIPConfig{KubeletNodeIPValidSubnets: c.nodeIPs(n)},
		KubeletExtraArgs:   arguments(c.KubeletArgs()),
		KubeletExtraConfig: v1alpha1.Unstructured{Object: settings},
	}
}

// arguments returns flags with one value each.
func arguments(flags map[string]string) v1alpha1.Args {
	if flags == nil {
		return nil
	}
	args := v1alpha1.Args{}
	for flag, value := range flags {
		args[flag] = v1alpha1.NewArgValue(value, nil)
	}
	return args
}

// Taints returns the taints that a node has once it has registered and Talos has run: those that are declared, and the one that keeps
// ordinary pods off control planes. Patches may add others.
func Taints(declared *cluster.Cluster, n cluster.Machine) map[string]string {
	taints := map[string]string{}
	maps.Copy(taints, n.Taints)
	if n.Role == cluster.ControlPlane && !declared.Kubernetes.AllowSchedulingOnControlPlanes {
		taints[constants.LabelNodeRoleControlPlane] = "NoSchedule"
	}
	return taints
}

// registeredTaints returns the taints that a worker's kubelet registers with. Talos applies machine.nodeTaints with the kubelet's own
// credentials on a worker, and the admission plugin NodeRestriction refuses every change of taints by those. The refused update also
// contains the labels. On a control plane, Talos is an administrator, and keeps the taints as declared.
func registeredTaints(n cluster.Machine) []any {
	if n.Role == cluster.ControlPlane {
		return nil
	}
	var taints []any
	for _, key := range slices.Sorted(maps.Keys(n.Taints)) {
		taint := map[string]any{"key": key, "effect": n.Taints[key]}
		if value, effect, found := strings.Cut(n.Taints[key], ":"); found {
			taint["effect"] = effect
			if value != "" {
				taint["value"] = value
			}
		}
		taints = append(taints, taint)
	}
	return taints
}

// keptLayers is the file by which Talos adds to containerd's configuration. By default containerd deletes the layers of an image after
// it has unpacked them, and then cannot serve them to other nodes.
func keptLayers() *v1alpha1.MachineFile {
	return &v1alpha1.MachineFile{
		FileOp:          "create",
		FilePath:        "/etc/" + constants.CRICustomizationConfigPart,
		FilePermissions: 0o644,
		FileContent: "[plugins.\"io.containerd.cri.v1.images\"]\n" +
			"  discard_unpacked_layers = false\n",
	}
}

// controlPlane adds the settings of control planes, which Talos refuses on workers.
func (c model) controlPlane(cfg *v1alpha1.Config) {
	// Talos itself adds a node's own addresses to its certificates, and the VIP to the API server's certificate.
	cfg.MachineConfig.MachineCertSANs = []string{c.Network.VIP.String()}
	cfg.ClusterConfig.ProxyConfig = &v1alpha1.ProxyConfig{Disabled: pointer.To(true)}
	cfg.ClusterConfig.EtcdConfig = &v1alpha1.EtcdConfig{EtcdAdvertisedSubnets: c.nodeSubnets()}
	if six := c.Network.IPv6; six != nil {
		// The size of a node's range in the pods' IPv6 network. In the IPv4 network it is Kubernetes' default, a /24.
		args := map[string]string{"node-cidr-mask-size-ipv6": strconv.Itoa(six.NodeBits())}
		cfg.ClusterConfig.ControllerManagerConfig = &v1alpha1.ControllerManagerConfig{ExtraArgsConfig: arguments(args)}
	}
	cfg.ClusterConfig.CoreDNSConfig = &v1alpha1.CoreDNS{CoreDNSDisabled: pointer.To(true)} // the core services install it
	cfg.ClusterConfig.AllowSchedulingOnControlPlanes = pointer.To(c.Kubernetes.AllowSchedulingOnControlPlanes)
}

// gatewayMetric is the metric of the default routes. Talos keeps those of the cloud-init drive beside them, for IPv4 with its default of
// 1024, and the kernel takes no second route of a metric. The drive of a VM that exists keeps its gateway: another one would never count.
const gatewayMetric = 512

// network selects the one device by its MAC address, because its name depends on the machine type and the PCI slot.
func (c model) network(n cluster.Machine) *v1alpha1.NetworkConfig {
	addresses, gateways := c.addresses(n)
	device := &v1alpha1.Device{
		DeviceSelector:  &v1alpha1.NetworkDeviceSelector{NetworkDeviceHardwareAddress: strings.ToLower(string(n.MAC))},
		DeviceDHCP:      pointer.To(false),
		DeviceAddresses: addresses,
	}
	for _, gateway := range gateways {
		device.DeviceRoutes = append(device.DeviceRoutes, &v1alpha1.Route{
			RouteNetwork: netip.PrefixFrom(gateway, 0).Masked().String(), // of all addresses
			RouteGateway: gateway.String(),
			RouteMetric:  gatewayMetric,
		})
	}
	if n.Role == cluster.ControlPlane {
		device.DeviceVIPConfig = &v1alpha1.DeviceVIPConfig{SharedIP: c.Network.VIP.String()}
	}
	return &v1alpha1.NetworkConfig{NetworkInterfaces: v1alpha1.NetworkDeviceList{device}, NameServers: texts(c.Network.Resolvers())}
}

// features turns on KubePrism and Talos's DNS cache for the host. CoreDNS does not use the cache: it would forward to a link-local
// address of the host, which it does not reach with Cilium's BPF masquerading.
func features() *v1alpha1.FeaturesConfig {
	return &v1alpha1.FeaturesConfig{
		KubePrismSupport: &v1alpha1.KubePrism{ServerEnabled: pointer.To(true), ServerPort: cluster.KubePrismPort},
		HostDNSSupport: &v1alpha1.HostDNSConfig{
			HostDNSEnabled:              pointer.To(true),
			HostDNSForwardKubeDNSToHost: pointer.To(false),
		},
	}
}

// snapshotAccess lets pods of one namespace take snapshots of etcd with Talos's API.
func snapshotAccess() *v1alpha1.KubernetesTalosAPIAccessConfig {
	return &v1alpha1.KubernetesTalosAPIAccessConfig{
		AccessEnabled:                     pointer.To(true),
		AccessAllowedRoles:                []string{string(role.EtcdBackup)},
		AccessAllowedKubernetesNamespaces: []string{cluster.BackupNamespace},
	}
}

// discovery states Talos's default, so that it stays when Talos changes the default. KubePrism learns the control planes' addresses from
// discovery. Without discovery, every node has only the VIP and waits for its failover. The service registry is outside of the
// cluster and gets encrypted data only. A cluster that cannot reach it still works. The Kubernetes registry cannot work since
// Kubernetes 1.32: nodes may not read each other's objects.
func discovery() *v1alpha1.ClusterDiscoveryConfig {
	return &v1alpha1.ClusterDiscoveryConfig{
		DiscoveryEnabled: pointer.To(true),
		DiscoveryRegistries: v1alpha1.DiscoveryRegistriesConfig{
			RegistryKubernetes: v1alpha1.RegistryKubernetesConfig{RegistryDisabled: pointer.To(true)},
		},
	}
}

func (c model) mirrors() map[string]*v1alpha1.RegistryMirrorConfig {
	mirrors := map[string]*v1alpha1.RegistryMirrorConfig{}
	for host, urls := range c.Talos.RegistryMirrors {
		mirrors[host] = &v1alpha1.RegistryMirrorConfig{MirrorEndpoints: urls}
	}
	return mirrors
}
