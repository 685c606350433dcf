package talos

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	clusterres "github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/slipway-platform/slipway/lab/talos/kubernetes"
	"github.com/slipway-platform/slipway/lab/talos/versions"
)

// publishHardware publishes the machine's hardware and the version and extensions that it runs.
func (b *boot) publishHardware() {
	b.devices.Publish()
	b.publishLinks()
	for _, e := range b.extensions {
		ext := runtime.NewExtensionStatus(runtime.NamespaceName, path.Base(e))
		ext.TypedSpec().Metadata.Name, ext.TypedSpec().Metadata.Version = path.Base(e), b.version
		ext.TypedSpec().Metadata.Author, ext.TypedSpec().Metadata.Description = "Sidero Labs", "simulated"
		b.res.Put(ext)
	}
	if b.inst != nil && b.schematic != "" { // the image factory adds it as an extension
		ext := runtime.NewExtensionStatus(runtime.NamespaceName, "schematic")
		ext.TypedSpec().Metadata.Name, ext.TypedSpec().Metadata.Version = "schematic", b.schematic
		ext.TypedSpec().Metadata.Author, ext.TypedSpec().Metadata.Description = "Image Factory",
			"Virtual extension which specifies the schematic of the image built with Image Factory."
		b.res.Put(ext)
	}
	platform := runtime.NewPlatformMetadataSpec(runtime.NamespaceName, runtime.PlatformMetadataID)
	platform.TypedSpec().Platform, platform.TypedSpec().Hostname = "nocloud", b.m.hw.Name
	if drive := b.m.hw.CloudInit; drive != nil {
		platform.TypedSpec().InstanceID = drive.Instance
	}
	b.res.Put(platform)
	system := hardware.NewSystemInformation(hardware.SystemInformationID)
	system.TypedSpec().Manufacturer, system.TypedSpec().ProductName = "QEMU", "Standard PC (i440FX + PIIX, 1996)"
	if b.m.hw.Q35 {
		system.TypedSpec().ProductName = "Standard PC (Q35 + ICH9, 2009)"
	}
	system.TypedSpec().UUID, system.TypedSpec().WakeUpType = b.m.hw.UUID, "Power Switch"
	b.res.Put(system)
	version := runtime.NewVersion()
	version.TypedSpec().Version = b.version
	if versions.Since(b.version, "v1.13") {
		version.TypedSpec().Name = "Talos"
	}
	b.res.Put(version)
	security := runtime.NewSecurityStateSpec(runtime.NamespaceName)
	security.TypedSpec().SecureBoot = b.secureBoot()
	security.TypedSpec().BootedWithUKI = b.m.hw.UEFI
	b.res.Put(security)
	if b.inst != nil && b.m.hw.UEFI {
		booted := runtime.NewBootedEntrySpec()
		booted.TypedSpec().BootedEntry = b.entry
		b.res.Put(booted)
	}
	b.hasTime()
}

// secureBoot tells whether the firmware has verified what runs.
func (b *boot) secureBoot() bool {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	if b.iso != nil {
		return b.iso.SecureBoot && b.m.hw.UEFI
	}
	return b.inst.secureBoot
}

// publishConfig publishes the active configuration, which only admins may read, and the resources derived from it.
func (b *boot) publishConfig(cfg config.Provider, name string) {
	b.res.Put(configres.NewMachineConfig(cfg))
	kind := configres.NewMachineType()
	kind.SetMachineType(cfg.Machine().Type())
	b.res.Put(kind)
	host := network.NewHostnameStatus(network.NamespaceName, network.HostnameID)
	host.TypedSpec().Hostname = name
	b.res.Put(host)
	node := k8s.NewNodename(k8s.NamespaceName, k8s.NodenameID)
	node.TypedSpec().Nodename = name
	b.res.Put(node)
	info := clusterres.NewInfo()
	info.TypedSpec().ClusterID, info.TypedSpec().ClusterName = cfg.Cluster().ID(), cfg.Cluster().Name()
	b.res.Put(info)
	identity := clusterres.NewIdentity(clusterres.NamespaceName, clusterres.LocalIdentity)
	identity.TypedSpec().NodeID = b.inst.nodeID
	b.res.Put(identity)
	kubelet := k8s.NewKubeletSpec(k8s.NamespaceName, k8s.KubeletID)
	spec := kubelet.TypedSpec()
	spec.Image, spec.ExpectedNodename = cfg.Machine().Kubelet().Image(), name
	spec.Config = cfg.Machine().Kubelet().ExtraConfig()
	args := kubernetes.KubeletArgs(cfg)
	for _, flag := range slices.Sorted(maps.Keys(args)) {
		spec.Args = append(spec.Args, "--"+flag+"="+args[flag])
	}
	b.res.Put(kubelet)
	if cfg.Machine().Type().IsControlPlane() {
		manager := k8s.NewControllerManagerConfig()
		spec := manager.TypedSpec()
		spec.Enabled, spec.Image = !cfg.Machine().Controlplane().ControllerManager().Disabled(), cfg.Cluster().ControllerManager().Image()
		spec.PodCIDRs, spec.ServiceCIDRs = cfg.Cluster().Network().PodCIDRs(), cfg.Cluster().Network().ServiceCIDRs()
		spec.ExtraArgs = argValues(cfg.Cluster().ControllerManager().ExtraArgs())
		b.res.Put(manager)
		server := k8s.NewAPIServerConfig()
		server.TypedSpec().Image, server.TypedSpec().LocalPort = cfg.Cluster().APIServer().Image(), 6443
		server.TypedSpec().ControlPlaneEndpoint = cfg.Cluster().Endpoint().String()
		server.TypedSpec().ServiceCIDRs = cfg.Cluster().Network().ServiceCIDRs()
		server.TypedSpec().ExtraArgs = argValues(cfg.Cluster().APIServer().ExtraArgs())
		b.res.Put(server)
		scheduler := k8s.NewSchedulerConfig()
		scheduler.TypedSpec().Enabled, scheduler.TypedSpec().Image = !cfg.Machine().Controlplane().Scheduler().Disabled(), cfg.Cluster().Scheduler().Image()
		scheduler.TypedSpec().ExtraArgs = argValues(cfg.Cluster().Scheduler().ExtraArgs())
		b.res.Put(scheduler)
		manifests := k8s.NewBootstrapManifestsConfig()
		manifests.TypedSpec().CNIName = cfg.Cluster().Network().CNI().Name()
		b.res.Put(manifests)
		for _, c := range kubernetes.Components(cfg) {
			switch pod := c.StaticPod(); {
			case c.Denied(b.version) != nil: // the former one stays
			case c.Enabled:
				b.res.Put(pod)
			default:
				b.res.Remove(pod.Metadata())
			}
		}
		b.publishManifests(cfg)
	}
}

// publishStatus publishes the machine's stage, and what keeps it from being ready.
func (b *boot) publishStatus() {
	b.statusMu.Lock()
	defer b.statusMu.Unlock()
	b.site.mu.Lock()
	stage, sequence := b.stage, ""
	if b.sequence != nil {
		sequence = b.sequence.name
	}
	b.site.mu.Unlock()
	b.publishStaticPods()
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
	case StageDraining, StageStopping:
		spec.Stage, event = endingStage(sequence)
	case StageFailed:
		spec.Stage, event = endingStage("reboot")
	default:
		spec.Stage, event = runtime.MachineStageBooting, machine.MachineStatusEvent_BOOTING
	}
	if spec.Stage == runtime.MachineStageBooting || spec.Stage == runtime.MachineStageRunning {
		spec.Status.UnmetConditions = b.unmetConditions()
	}
	spec.Status.Ready = len(spec.Status.UnmetConditions) == 0
	if spec.Stage == runtime.MachineStageRunning && spec.Status.Ready {
		b.proveUpgrade()
	}
	if !b.res.Changes(r) {
		return
	}
	b.res.Put(r)
	status := &machine.MachineStatusEvent_MachineStatus{Ready: spec.Status.Ready}
	for _, u := range spec.Status.UnmetConditions {
		status.UnmetConditions = append(status.UnmetConditions,
			&machine.MachineStatusEvent_MachineStatus_UnmetCondition{Name: u.Name, Reason: u.Reason})
	}
	b.Events.Publish("", &machine.MachineStatusEvent{Stage: event, Status: status})
}

// endingStage is Talos's stage while a sequence runs.
func endingStage(sequence string) (runtime.MachineStage, machine.MachineStatusEvent_MachineStage) {
	switch sequence {
	case "reboot":
		return runtime.MachineStageRebooting, machine.MachineStatusEvent_REBOOTING
	case "reset":
		return runtime.MachineStageResetting, machine.MachineStatusEvent_RESETTING
	case "upgrade", "stageUpgrade":
		return runtime.MachineStageUpgrading, machine.MachineStatusEvent_UPGRADING
	}
	return runtime.MachineStageShuttingDown, machine.MachineStatusEvent_SHUTTING_DOWN
}

// unmetConditions are what keeps a machine that boots or runs from being ready, in Talos's order and words. The time is always right.
func (b *boot) unmetConditions() []runtime.UnmetCondition {
	var out []runtime.UnmetCondition
	add := func(name string, reasons ...string) {
		if len(reasons) > 0 {
			out = append(out, runtime.UnmetCondition{Name: name, Reason: strings.Join(reasons, ", ")})
		}
	}
	b.site.mu.Lock()
	hasAddress, name, cfg, status := len(b.addresses) > 0, b.hostname, b.config, b.nodeStatus
	controlPlane := cfg != nil && cfg.Machine().Type().IsControlPlane()
	b.site.mu.Unlock()
	if !hasAddress {
		add("network", "waiting on: address, connectivity")
	}
	required := []string{"apid", "machined", "kubelet"}
	if controlPlane {
		required = append(required, "etcd", "trustd")
	}
	add("services", b.services.Problems(required)...)
	add("staticPods", b.staticPodProblems()...)
	switch {
	case cfg == nil:
	case status == nil:
		add("nodeReady", fmt.Sprintf("node %q status is not available yet", name))
	case !status.NodeReady:
		add("nodeReady", fmt.Sprintf("node %q is not ready", name))
	}
	return out
}

// publishNodeStatus publishes what the Node object says; nil if there is none.
func (b *boot) publishNodeStatus(status *k8s.NodeStatusSpec) {
	b.site.mu.Lock()
	b.nodeStatus = status
	name := b.hostname
	b.site.mu.Unlock()
	r := k8s.NewNodeStatus(k8s.NamespaceName, name)
	if status == nil {
		b.res.Remove(r.Metadata())
	} else {
		*r.TypedSpec() = *status
		b.res.Put(r)
	}
	b.publishStatus()
}

// podsOf are the enabled components of the control plane on this node, by the ids of their static pods' statuses, and whether each runs.
// Without kubelet there are none.
func (b *boot) podsOf() map[string]bool {
	up := b.services.IsUp("kubelet")
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	if !up || b.config == nil || !b.config.Machine().Type().IsControlPlane() {
		return nil
	}
	out := map[string]bool{}
	for _, c := range kubernetes.Components(b.config) {
		if c.Enabled {
			out["kube-system/"+c.Name+"-"+b.hostname] = b.runs(c.Name) != nil
		}
	}
	return out
}

// staticPodProblems are the static pods that are not ready.
func (b *boot) staticPodProblems() (problems []string) {
	pods := b.podsOf()
	for _, id := range slices.Sorted(maps.Keys(pods)) {
		if !pods[id] {
			problems = append(problems, id+" pending")
		}
	}
	return problems
}

// publishStaticPods publishes the control plane's pods as the kubelet reports them to Talos.
func (b *boot) publishStaticPods() {
	pods := b.podsOf()
	for id, runs := range pods {
		phase, ready := "Running", "True"
		if !runs {
			phase, ready = "Pending", "False"
		}
		r := k8s.NewStaticPodStatus(k8s.NamespaceName, id)
		r.TypedSpec().PodStatus = map[string]any{"phase": phase, "conditions": []any{map[string]any{"type": "Ready", "status": ready}}}
		b.res.Put(r)
	}
	for id := range b.podStatuses {
		if _, still := pods[id]; !still {
			b.res.Remove(k8s.NewStaticPodStatus(k8s.NamespaceName, id).Metadata())
		}
	}
	b.podStatuses = pods
}

// argValues are the flags of a component as its resource has them.
func argValues(flags map[string][]string) map[string]k8s.ArgValues {
	all := map[string]k8s.ArgValues{}
	for flag, values := range flags {
		all[flag] = k8s.ArgValues{Values: values}
	}
	return all
}
