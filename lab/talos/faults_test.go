package talos_test

import (
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/talos"
	"github.com/slipway-platform/slipway/lab/vm"
)

// breaks switches a fault on.
func (w *world) breaks(kind fault.Kind, target, detail string) {
	w.t.Helper()
	require.NoError(w.t, w.faults.On(fault.Fault{Kind: kind, Target: target, Detail: detail}))
}

// dmesg returns the kernel log of a configured node; nothing while its API does not answer.
func (w *world) dmesg(host byte) string {
	w.t.Helper()
	stream, err := w.admin(host).Dmesg(w.ctx, false, false)
	if err != nil {
		return ""
	}
	var all strings.Builder
	for {
		data, err := stream.Recv()
		if err != nil {
			return all.String()
		}
		all.Write(data.Bytes)
	}
}

func TestFault_AMachineStuckInMaintenanceAcceptsItsConfigurationButStaysInMaintenance(t *testing.T) {
	w := newWorld(t)
	w.breaks(fault.StuckMaintenance, "vm-11", "")
	_, hw := w.install(configmachine.TypeControlPlane, 11)
	w.stage(11, talos.StageInstalling)
	w.stage(11, talos.StageMaintenance)
	require.NotNil(t, hw.Disks["scsi0"].Content, "it is installed")
	c := w.insecure(11)
	w.eventually("it takes clients without certificate", func() bool { _, err := c.Disks(w.ctx); return err == nil })
	_, err := w.admin(11).Version(w.ctx)
	require.ErrorContains(t, err, "certificate signed by unknown authority", "nobody signed its certificate")
	w.apply(11, w.config(configmachine.TypeControlPlane, 11))
	w.stage(11, talos.StageInstalling)
	w.stage(11, talos.StageMaintenance)

	w.faults.Clear()
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
}

func TestFault_AStuckMachineWithoutAMediumIsInMaintenanceToo(t *testing.T) {
	w := newWorld(t)
	g, hw := w.install(configmachine.TypeControlPlane, 11)
	w.stage(11, talos.StageBooting)
	g.PowerOff()
	hw.ISO = nil
	w.breaks(fault.StuckMaintenance, node(11), "")
	w.site.PowerOn(hw)
	w.stage(11, talos.StageMaintenance)
	require.Equal(t, "v1.12.7", w.status(11).Version)
	w.faults.Clear()
	w.stage(11, talos.StageBooting)
}

func TestFault_AMachineInARebootLoopNeverServesItsAPI(t *testing.T) {
	w := newWorld(t)
	w.breaks(fault.RebootLoop, "vm-11", "")
	w.install(configmachine.TypeControlPlane, 11)
	reason := func() bool { return strings.HasPrefix(w.status(11).Reason, "reboots for ever: ") }
	for range 2 {
		w.eventually("it boots", func() bool { return w.status(11).Stage == talos.StageBooting })
		w.eventually("it reboots", func() bool { return w.status(11).Stage == talos.StageFirmware })
		require.True(t, reason(), "the status shows the reason")
	}
	require.Empty(t, w.status(11).Services)
	w.faults.Clear()
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	require.Empty(t, w.status(11).Reason)
}

func TestFault_WithoutTheTimeNeitherEtcdNorKubeletStarts(t *testing.T) {
	w := newWorld(t)
	w.breaks(fault.NoTime, "vm-11", "")
	w.install(configmachine.TypeControlPlane, 11)
	for _, id := range []string{"etcd", "kubelet"} {
		w.eventually(id+" waits", func() bool {
			s := w.service(11, id)
			return s.State == "Waiting" && s.Message == "Waiting for time sync"
		})
	}
	w.faults.Clear()
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)

	w.breaks(fault.NoTime, "vm-11", "")
	_, err := w.admin(11).ServiceRestart(w.ctx, "kubelet")
	require.NoError(t, err)
	w.eventually("a kubelet starts again", func() bool {
		info, err := w.admin(11).ServiceInfo(w.ctx, "kubelet")
		require.NoError(t, err)
		starts := 0
		for _, event := range info[0].Service.Events.Events {
			if event.Msg == "Starting service" {
				starts++
			}
		}
		return starts == 2 && info[0].Service.State == "Running"
	})
}

func TestFault_ARefusedConfigurationIsAnInvalidArgument(t *testing.T) {
	w := newWorld(t)
	w.breaks(fault.ApplyRefused, "vm-11", "no, thank you")
	w.site.PowerOn(w.hardware(11))
	w.stage(11, talos.StageMaintenance)
	data := &machine.ApplyConfigurationRequest{Data: w.config(configmachine.TypeControlPlane, 11)}
	_, err := w.insecure(11).ApplyConfiguration(w.ctx, data)
	require.Equal(t, codes.InvalidArgument, client.StatusCode(err))
	require.ErrorContains(t, err, "configuration validation failed: no, thank you")
	require.Equal(t, talos.StageMaintenance, w.status(11).Stage)

	w.faults.Clear()
	w.apply(11, data.Data)
	w.stage(11, talos.StageBooting)
	w.breaks(fault.ApplyRefused, node(11), "")
	c := w.admin(11)
	w.eventually("a running node refuses as well", func() bool {
		_, err := c.ApplyConfiguration(w.ctx, data)
		return client.StatusCode(err) == codes.InvalidArgument
	})
}

func TestFault_ALostReplyToBootstrapLeavesEtcdBootstrapped(t *testing.T) {
	w := newWorld(t)
	w.breaks(fault.BootstrapReplyLost, "vm-11", "")
	w.install(configmachine.TypeControlPlane, 11)
	w.eventually("etcd waits for it", func() bool { return w.service(11, "etcd").State == "Preparing" })
	c := w.admin(11)
	w.eventually("the API answers", func() bool { _, err := c.Version(w.ctx); return err == nil })
	err := c.Bootstrap(w.ctx, &machine.BootstrapRequest{})
	require.Equal(t, codes.Unavailable, client.StatusCode(err), "%v", err)
	w.stage(11, talos.StageRunning)
	err = c.Bootstrap(w.ctx, &machine.BootstrapRequest{})
	require.Equal(t, codes.AlreadyExists, client.StatusCode(err))
	require.ErrorContains(t, err, "etcd data directory is not empty")
	require.Equal(t, 1, w.kube.running())
}

func TestFault_AMissingEtcdMemberIsPreparingAndSaysWhy(t *testing.T) {
	w := newWorld(t)
	w.breaks(fault.EtcdMemberMissing, "vm-12", "")
	for _, h := range []byte{11, 12, 13} {
		w.install(configmachine.TypeControlPlane, h)
	}
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	w.stage(13, talos.StageRunning)
	require.ElementsMatch(t, []string{node(11), node(13)}, etcdMembers(w, 11))
	require.Equal(t, "Preparing", w.service(12, "etcd").State)
	w.eventually("its log says why", func() bool {
		return strings.Contains(w.dmesg(12), "retrying error: error adding member: etcdserver: unhealthy cluster")
	})
	require.False(t, w.kube.answers(w.addr(12)), "no API server without etcd")
	w.faults.Clear()
	w.stage(12, talos.StageRunning)
	require.ElementsMatch(t, []string{node(11), node(12), node(13)}, etcdMembers(w, 11))
}

func TestFault_AMissingEtcdMemberIsTakenOutOfARunningCluster(t *testing.T) {
	w := newWorld(t)
	w.cluster(3, 0)
	w.breaks(fault.EtcdMemberMissing, node(13), "")
	w.eventually("it is no member any more", func() bool { return len(etcdMembers(w, 11)) == 2 })
	w.eventually("its etcd starts anew", func() bool { return w.service(13, "etcd").State == "Preparing" })
	w.faults.Clear()
	w.eventually("it joins again", func() bool { return w.service(13, "etcd").Healthy })
	require.ElementsMatch(t, []string{node(11), node(12), node(13)}, etcdMembers(w, 11))
}

func TestFault_TheOnlyEtcdMemberStays(t *testing.T) {
	w := newWorld(t)
	w.breaks(fault.EtcdMemberMissing, node(11), "")
	w.cluster(1, 0)
	require.Equal(t, []string{node(11)}, etcdMembers(w, 11))
}

func TestFault_ALearnerStaysOneAndKeepsOthersFromJoining(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11)
	w.install(configmachine.TypeControlPlane, 12)
	w.breaks(fault.EtcdLearner, node(12), "")
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	w.eventually("it joins", func() bool { return len(etcdMembers(w, 11)) == 2 })
	w.eventually("it is not healthy", func() bool {
		return w.service(12, "etcd").Message == "Health check failed: etcdserver: rpc not supported for learner"
	})
	w.install(configmachine.TypeControlPlane, 13)
	w.eventually("etcd takes one learner at a time", func() bool {
		return w.service(13, "etcd").State == "Preparing" && strings.Contains(w.dmesg(13), "too many learner members in cluster")
	})
	require.ElementsMatch(t, []string{node(11), node(12) + " (learner)"}, etcdMembers(w, 11))
	require.Contains(t, w.dmesg(12), "can only promote a learner member which is in sync with leader")
	require.False(t, w.kube.answers(w.addr(12)))

	w.faults.Clear()
	w.stage(12, talos.StageRunning)
	w.stage(13, talos.StageRunning)
	require.ElementsMatch(t, []string{node(11), node(12), node(13)}, etcdMembers(w, 11))
}

func TestFault_ABootThatHangsHasItsAddressAndRefusesConnectionsUntilAReset(t *testing.T) {
	w := newWorld(t)
	w.breaks(fault.BootHangs, "vm-11", "2")
	hw := w.hardware(11)
	for range 2 {
		g := w.site.PowerOn(hw)
		w.eventually("the boot hangs", func() bool { return w.status(11).Reason == "downloading config" })
		require.True(t, w.links.has(w.addr(11)))
		links, answers := g.Interfaces()
		require.True(t, answers, "the guest agent runs")
		require.Equal(t, []netip.Prefix{netip.PrefixFrom(w.addr(11), 24)}, links[1].Addresses)
		_, err := net.Dial("tcp", w.endpoint(11))
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		g.PowerOff()
	}
	w.site.PowerOn(hw)
	w.stage(11, talos.StageMaintenance)
}

func TestFault_ABootThatHangsStaysSoWhenTheFaultIsOff(t *testing.T) {
	w := newWorld(t)
	w.breaks(fault.BootHangs, "vm-11", "")
	g := w.site.PowerOn(w.hardware(11))
	w.eventually("the boot hangs", func() bool { return w.status(11).Reason == "downloading config" })
	w.faults.Clear()
	_, err := net.Dial("tcp", w.endpoint(11))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	g.PowerOff()
	w.site.PowerOn(w.hardware(11))
	w.stage(11, talos.StageMaintenance)
}

func TestFault_AFailedInstallationLeavesPartitionsAtWhichTheImageHalts(t *testing.T) {
	w := newWorld(t)
	w.breaks(fault.InstallFails, "vm-11", "")
	g, hw := w.install(configmachine.TypeControlPlane, 11)
	halted := func() bool { return strings.HasPrefix(w.status(11).Reason, "Talos is already installed to disk") }
	w.eventually("the image halts", halted)
	require.True(t, w.links.has(w.addr(11)), "it has its address")
	_, err := net.Dial("tcp", w.endpoint(11))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)

	w.faults.Clear() // neither that nor a reset helps
	g.PowerOff()
	g = w.site.PowerOn(hw)
	w.eventually("it halts again", halted)

	g.PowerOff()
	hw.Disks["scsi0"].Content = nil // another VM
	w.site.PowerOn(hw)
	w.stage(11, talos.StageMaintenance)
}

// Nothing is on the disk then, and the configuration was in memory only.
func TestFault_AnInstallerThatCannotBePulledLeadsBackToMaintenance(t *testing.T) {
	w := newWorld(t)
	w.breaks(fault.ImagePull, "nocloud-installer", "")
	_, hw := w.install(configmachine.TypeControlPlane, 11)
	w.eventually("the installation fails", func() bool {
		return strings.Contains(w.status(11).Reason, "install failed: failed to pull image")
	})
	w.stage(11, talos.StageMaintenance)
	require.Nil(t, hw.Disks["scsi0"].Content)

	w.faults.Clear()
	w.apply(11, w.config(configmachine.TypeControlPlane, 11))
	w.stage(11, talos.StageBooting)
	require.NotNil(t, hw.Disks["scsi0"].Content)
}

func TestFault_AnInstallationWaitsForARegistryThatDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.breaks(fault.ImagePull, "nocloud-installer", "dial tcp: lookup factory.talos.dev: no such host")
	w.install(configmachine.TypeControlPlane, 11)
	w.stage(11, talos.StageInstalling)
	require.Never(t, func() bool { return w.status(11).Stage != talos.StageInstalling }, 7*time.Second, time.Second, "it tries again")
	w.faults.Clear()
	w.stage(11, talos.StageBooting)
}

func TestBoot_TheBootOrderIsNotLookedAtBeforeTheFirmwareRuns(t *testing.T) {
	w := newWorld(t)
	wrong := func(host byte) vm.Hardware {
		hw := w.hardware(host)
		hw.BootOrder = []string{"ide3", "scsi0"}
		return hw
	}
	halts := func(host byte) {
		w.eventually("the image halts", func() bool {
			return strings.HasPrefix(w.status(host).Reason, "Talos is already installed to disk")
		})
	}
	hw := wrong(11)
	guest := w.boots(hw, w.config(configmachine.TypeControlPlane, 11))
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	before := resource[*runtime.Version](w, 11, runtime.NamespaceName, "version").Metadata().Created()
	require.NoError(t, w.admin(11).Reboot(w.ctx))
	w.eventually("a reboot of Talos starts the same disk", func() bool {
		version, err := safe.StateGetByID[*runtime.Version](w.ctx, w.admin(11).COSI, "version")
		return err == nil && version.Metadata().Created().After(before)
	})
	guest.PowerOff()
	guest = w.site.PowerOn(hw)
	halts(11)

	guest.PowerOff() // the order is fixed
	hw.BootOrder = []string{"scsi0", "ide3"}
	guest = w.site.PowerOn(hw)
	w.stage(11, talos.StageRunning)
	guest.PowerOff()
	hw.BootOrder = []string{"scsi0"}
	w.site.PowerOn(hw)
	w.stage(11, talos.StageRunning)

	w.boots(wrong(12), w.config(configmachine.TypeControlPlane, 12))
	require.NoError(t, w.admin(12).Reboot(w.ctx, client.WithPowerCycle))
	halts(12)

	signed := wrong(13)
	signed.ISO.SecureBoot = true
	w.site.PowerOn(signed)
	w.stage(13, talos.StageMaintenance)
	w.apply(13, w.config(configmachine.TypeControlPlane, 13))
	halts(13) // no kexec under SecureBoot
}

func TestFault_AnInstallationThatFailsBeforeItWritesLeavesNoTraces(t *testing.T) {
	w := newWorld(t)
	_, hw := w.install(configmachine.TypeWorker, 11, func(c *v1alpha1.Config) { c.MachineConfig.MachineInstall.InstallDisk = "/dev/nvme0n1" })
	w.stage(11, talos.StageMaintenance)
	require.Nil(t, hw.Disks["scsi0"].Content)
}

func TestFault_AKubeletThatNeverStartsKeepsTheMachineBootingWithAnAPI(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	w.breaks(fault.KubeletDown, "vm-21", "exec /usr/local/bin/kubelet: no such file or directory")
	w.install(configmachine.TypeWorker, 21)
	w.eventually("it waits, and says why", func() bool {
		kubelet := w.service(21, "kubelet")
		return kubelet.State == "Waiting" && kubelet.Message == "Error running Containerd(kubelet), going to restart forever: "+
			"exec /usr/local/bin/kubelet: no such file or directory"
	})
	require.Equal(t, talos.StageBooting, w.status(21).Stage)
	boot := bootID(w, w.admin(21))
	_, err := w.admin(21).ApplyConfiguration(w.ctx, auto(w.config(configmachine.TypeWorker, 21)))
	require.NoError(t, err, "its API takes configurations")
	w.faults.Clear()
	w.stage(21, talos.StageRunning)
	require.Equal(t, boot, bootID(w, w.admin(21)), "without a reboot")
}
