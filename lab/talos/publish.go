package talos

import (
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	clusterres "github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	timeres "github.com/siderolabs/talos/pkg/machinery/resources/time"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
)

// publishHardware publishes what the machine consists of, and what is installed on it.
func (b *boot) publishHardware() {
	b.publishDisks()
	b.publishLinks()
	for _, e := range b.extensions {
		ext := runtime.NewExtensionStatus(runtime.NamespaceName, path.Base(e))
		ext.TypedSpec().Metadata.Name, ext.TypedSpec().Metadata.Version = path.Base(e), b.version
		ext.TypedSpec().Metadata.Author, ext.TypedSpec().Metadata.Description = "Sidero Labs", "simulated"
		b.res.put(ext)
	}
	platform := runtime.NewPlatformMetadataSpec(runtime.NamespaceName, runtime.PlatformMetadataID)
	platform.TypedSpec().Platform, platform.TypedSpec().Hostname = "nocloud", b.m.hw.Name
	b.res.put(platform)
	version := runtime.NewVersion()
	version.TypedSpec().Version = b.version
	b.res.put(version)
	security := runtime.NewSecurityStateSpec(runtime.NamespaceName)
	b.site.mu.Lock()
	security.TypedSpec().SecureBoot = b.inst != nil && b.inst.secureBoot || b.iso != nil && b.iso.SecureBoot && b.m.hw.UEFI
	b.site.mu.Unlock()
	security.TypedSpec().BootedWithUKI = b.m.hw.UEFI
	b.res.put(security)
	clock := timeres.NewStatus()
	clock.TypedSpec().Synced = true
	b.res.put(clock)
}

// publishAddresses publishes the machine's addresses.
func (b *boot) publishAddresses() {
	b.site.mu.Lock()
	own, all := slices.Clone(b.addresses), b.allAddresses()
	b.site.mu.Unlock()
	put := func(id resource.ID, addresses []netip.Prefix) {
		r := network.NewNodeAddress(network.NamespaceName, id)
		r.TypedSpec().Addresses = addresses
		b.res.put(r)
	}
	put(network.NodeAddressCurrentID, all)
	put(network.NodeAddressRoutedID, own)
	put(network.NodeAddressAccumulativeID, all)
	if len(own) > 0 {
		put(network.NodeAddressDefaultID, own[:1])
	}
	for _, p := range all {
		r := network.NewAddressStatus(network.NamespaceName, network.AddressID(linkName, p))
		r.TypedSpec().Address, r.TypedSpec().LinkName = p, linkName
		b.res.put(r)
	}
	st := network.NewStatus(network.NamespaceName, network.StatusID)
	st.TypedSpec().AddressReady, st.TypedSpec().ConnectivityReady = len(own) > 0, len(own) > 0
	st.TypedSpec().HostnameReady, st.TypedSpec().EtcFilesReady = true, true
	b.res.put(st)
}

// publishNodeIPs publishes the addresses that the kubelet reports.
func (b *boot) publishNodeIPs(addresses []netip.Addr) {
	r := k8s.NewNodeIP(k8s.NamespaceName, k8s.KubeletID)
	r.TypedSpec().Addresses = addresses
	b.res.put(r)
}

// publishConfig publishes the active configuration, which only admins see, and what follows from it.
func (b *boot) publishConfig(cfg config.Provider, name string) {
	b.res.put(configres.NewMachineConfig(cfg))
	kind := configres.NewMachineType()
	kind.SetMachineType(cfg.Machine().Type())
	b.res.put(kind)
	host := network.NewHostnameStatus(network.NamespaceName, network.HostnameID)
	host.TypedSpec().Hostname = name
	b.res.put(host)
	node := k8s.NewNodename(k8s.NamespaceName, k8s.NodenameID)
	node.TypedSpec().Nodename = name
	b.res.put(node)
	info := clusterres.NewInfo()
	info.TypedSpec().ClusterID, info.TypedSpec().ClusterName = cfg.Cluster().ID(), cfg.Cluster().Name()
	b.res.put(info)
	identity := clusterres.NewIdentity(clusterres.NamespaceName, clusterres.LocalIdentity)
	identity.TypedSpec().NodeID = b.inst.nodeID
	b.res.put(identity)
	kubelet := k8s.NewKubeletSpec(k8s.NamespaceName, k8s.KubeletID)
	spec := kubelet.TypedSpec()
	spec.Image, spec.ExpectedNodename = cfg.Machine().Kubelet().Image(), name
	spec.Config = cfg.Machine().Kubelet().ExtraConfig()
	for _, flag := range slices.Sorted(maps.Keys(kubeletArgs(cfg))) {
		spec.Args = append(spec.Args, "--"+flag+"="+kubeletArgs(cfg)[flag])
	}
	b.res.put(kubelet)
	if cfg.Machine().Type().IsControlPlane() {
		manager := k8s.NewControllerManagerConfig()
		spec := manager.TypedSpec()
		spec.Enabled, spec.Image = !cfg.Machine().Controlplane().ControllerManager().Disabled(), cfg.Cluster().ControllerManager().Image()
		spec.PodCIDRs, spec.ServiceCIDRs = cfg.Cluster().Network().PodCIDRs(), cfg.Cluster().Network().ServiceCIDRs()
		b.res.put(manager)
	}
}

// publishStatus publishes the machine's stage and what keeps it from being ready.
func (b *boot) publishStatus() {
	b.site.mu.Lock()
	stage := b.stage
	controlPlane := b.config != nil && b.config.Machine().Type().IsControlPlane()
	name := b.hostname
	b.site.mu.Unlock()
	r := runtime.NewMachineStatus()
	spec := r.TypedSpec()
	var event machine.MachineStatusEvent_MachineStage
	switch stage {
	case StageMaintenance:
		spec.Stage, event = runtime.MachineStageMaintenance, machine.MachineStatusEvent_MAINTENANCE
	case StageInstalling:
		spec.Stage, event = runtime.MachineStageInstalling, machine.MachineStatusEvent_INSTALLING
	case StageRunning:
		spec.Stage, event = runtime.MachineStageRunning, machine.MachineStatusEvent_RUNNING
	case StageStopping:
		spec.Stage, event = runtime.MachineStageShuttingDown, machine.MachineStatusEvent_SHUTTING_DOWN
	default:
		spec.Stage, event = runtime.MachineStageBooting, machine.MachineStatusEvent_BOOTING
	}
	unmet := b.services.unmet()
	if len(unmet) > 0 {
		spec.Status.UnmetConditions = []runtime.UnmetCondition{{Name: "services", Reason: strings.Join(unmet, ", ") + " not running"}}
	}
	spec.Status.Ready = (stage == StageRunning || stage == StageMaintenance) && len(unmet) == 0
	if !b.res.changes(r) {
		return
	}
	b.res.put(r)
	status := &machine.MachineStatusEvent_MachineStatus{Ready: spec.Status.Ready}
	for _, u := range spec.Status.UnmetConditions {
		status.UnmetConditions = append(status.UnmetConditions, &machine.MachineStatusEvent_MachineStatus_UnmetCondition{Name: u.Name, Reason: u.Reason})
	}
	b.events.publish("", &machine.MachineStatusEvent{Stage: event, Status: status})
	if stage == StageRunning && controlPlane {
		b.publishStaticPods(name)
	}
}

// publishStaticPods publishes the control plane's pods as the kubelet reports them to Talos.
func (b *boot) publishStaticPods(name string) {
	for _, pod := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		r := k8s.NewStaticPodStatus(k8s.NamespaceName, "kube-system/"+pod+"-"+name)
		r.TypedSpec().PodStatus = map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
		b.res.put(r)
	}
}

// publishService publishes a service while it runs.
func (b *boot) publishService(id string, running bool, health *machine.ServiceHealth) {
	r := v1alpha1.NewService(id)
	if !running {
		b.res.remove(r.Metadata())
		return
	}
	r.TypedSpec().Running, r.TypedSpec().Healthy, r.TypedSpec().Unknown = true, health.GetHealthy(), health.GetUnknown()
	b.res.put(r)
}

// publishEtcdMember publishes this node's own member id, or that it has none.
func (b *boot) publishEtcdMember(m *member) {
	r := etcd.NewMember(etcd.NamespaceName, etcd.LocalMemberID)
	if m == nil {
		b.res.remove(r.Metadata())
		return
	}
	r.TypedSpec().MemberID = etcd.FormatMemberID(m.id)
	b.res.put(r)
}

// publishMembers publishes the cluster's nodes as discovery finds them: what has changed since the last time, because a
// large cluster settles often while it comes up. It is part of settling, and so never runs twice at once.
func (b *boot) publishMembers(members map[string]affiliate) {
	for name := range b.members {
		if _, known := members[name]; !known {
			b.res.remove(clusterres.NewMember(clusterres.NamespaceName, name).Metadata())
			delete(b.members, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		a := members[name]
		if b.members[name] == a.fingerprint {
			continue
		}
		if b.members == nil {
			b.members = map[string]string{}
		}
		b.members[name] = a.fingerprint
		r := clusterres.NewMember(clusterres.NamespaceName, name)
		r.TypedSpec().NodeID = a.boot.inst.nodeID
		r.TypedSpec().Addresses, r.TypedSpec().Hostname = a.addresses, name
		r.TypedSpec().MachineType, r.TypedSpec().OperatingSystem = a.nodeType, operatingSystem(a.version)
		if a.nodeType.IsControlPlane() {
			r.TypedSpec().ControlPlane = &clusterres.ControlPlane{APIServerPort: constants.DefaultControlPlanePort}
		}
		b.res.put(r)
	}
}
