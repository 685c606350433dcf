package talos_test

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/talos"
	"github.com/slipway-platform/slipway/lab/vm"
)

func TestMachine_NothingAnswersBeforePowerOnNorAfterPowerOff(t *testing.T) {
	w := newWorld(t)
	_, err := net.Dial("tcp", w.endpoint(11))
	require.Error(t, err)
	require.False(t, w.links.has(w.addr(11)))

	g := w.site.PowerOn(w.hardware(11))
	w.stage(11, talos.StageMaintenance)
	require.True(t, w.links.has(w.addr(11)))

	g.PowerOff()
	<-g.Done()
	require.False(t, w.links.has(w.addr(11)))
	_, err = net.Dial("tcp", w.endpoint(11))
	require.Error(t, err)
	require.Equal(t, talos.StageOff, w.status(11).Stage)
}

func TestMachine_AnEmptyDiskBootsTheMediumIntoMaintenanceMode(t *testing.T) {
	w := newWorld(t)
	w.site.PowerOn(w.hardware(11))
	w.stage(11, talos.StageMaintenance)
	c := w.insecure(11)
	w.eventually("disks are listed", func() bool {
		disks, err := c.Disks(w.ctx)
		return err == nil && disks.Messages[0].Disks[0].DeviceName == "/dev/loop0" && disks.Messages[0].Disks[1].DeviceName == "/dev/sda"
	})
}

func TestMachine_WithoutBootableDriveDoesNotBoot(t *testing.T) {
	w := newWorld(t)
	hw := w.hardware(11)
	hw.ISO = nil
	w.site.PowerOn(hw)
	w.eventually("the status shows the reason", func() bool { return w.status(11).Reason == "no bootable device" })
	require.False(t, w.links.has(w.addr(11)))
}

func TestMachine_TheGuestAgentAnswersFromMaintenanceModeOn(t *testing.T) {
	w := newWorld(t)
	g := w.site.PowerOn(w.hardware(11))
	_, answers := g.Interfaces()
	require.False(t, answers, "no agent runs before the operating system does")
	w.stage(11, talos.StageMaintenance)
	links, answers := g.Interfaces()
	require.True(t, answers)
	require.Len(t, links, 2)
	require.Equal(t, "lo", links[0].Name)
	require.Equal(t, "eth0", links[1].Name)
	require.Equal(t, []netip.Prefix{netip.PrefixFrom(w.addr(11), 24)}, links[1].Addresses)
}

func TestMachine_NoGuestAgentWithoutExtensionOrChannel(t *testing.T) {
	w := newWorld(t)
	bare := w.hardware(11)
	bare.ISO.Extensions = nil
	mute := w.hardware(12)
	mute.Agent = false
	g1, g2 := w.site.PowerOn(bare), w.site.PowerOn(mute)
	w.stage(11, talos.StageMaintenance)
	w.stage(12, talos.StageMaintenance)
	_, answers := g1.Interfaces()
	require.False(t, answers)
	_, answers = g2.Interfaces()
	require.False(t, answers)
}

func TestMachine_ComesBackWithItsConfigurationAfterPowerCycle(t *testing.T) {
	w := newWorld(t)
	g, hw := w.install(configmachine.TypeControlPlane, 11)
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	members := etcdMembers(w, 11)
	id := w.kube.ids()
	g.PowerOff()
	w.eventually("the control plane's processes end with the last machine", func() bool { return w.kube.running() == 0 })

	w.site.PowerOn(hw)
	w.stage(11, talos.StageRunning)
	require.Equal(t, members, etcdMembers(w, 11))
	require.Equal(t, append(id, id...), w.kube.ids(), "the data of before is used again")
	require.Equal(t, node(11), w.status(11).Hostname)
}

// A machine without power sends nothing more. If its API ended first, all that are connected with it would learn of it at once.
func TestMachine_PowerOffTakesTheAddressesBeforeAnythingOnTheMachineEnds(t *testing.T) {
	w := newWorld(t)
	guest, _ := w.install(configmachine.TypeControlPlane, 11)
	w.eventually("the API answers", func() bool { return answers(w.endpoint(11)) })
	var answered []bool
	w.links.mu.Lock()
	w.links.removes = func(netip.Prefix) { answered = append(answered, answers(w.endpoint(11))) }
	w.links.mu.Unlock()
	guest.PowerOff()
	require.Equal(t, []bool{true}, answered)
}

// answers tells whether something takes connections.
func answers(endpoint string) bool {
	conn, err := net.DialTimeout("tcp", endpoint, time.Second)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

func TestMachine_ANetworkCardThatDoesNotMatchGetsNoConfiguredAddress(t *testing.T) {
	w := newWorld(t)
	hw := w.hardware(11)
	hw.CloudInit = nil
	hw.NICs[0].MAC = mac(99)
	w.site.PowerOn(hw)
	w.stage(11, talos.StageMaintenance)
	require.False(t, w.links.has(w.addr(11)), "no cloud-init, no address")

	other := w.hardware(12)
	other.NICs[0].MAC = mac(99)
	w.site.PowerOn(other)
	w.stage(12, talos.StageMaintenance)
	w.apply(12, w.config(configmachine.TypeControlPlane, 12, func(c *v1alpha1.Config) {
		c.MachineConfig.MachineNetwork.NetworkInterfaces[0].DeviceAddresses = []string{w.addr(50).String() + "/24"}
	}))
	w.stage(12, talos.StageBooting)
	w.eventually("the node is up", func() bool { return w.service(12, "apid").Healthy })
	require.False(t, w.links.has(w.addr(50)))
	require.True(t, w.links.has(w.addr(12)), "cloud-init's address stays")
}

func TestFault_AVMThatNeverBootsGetsNoAddressUntilTheFaultIsOff(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.faults.On(fault.Fault{Kind: fault.VMNeverBoots, Target: "vm-11"}))
	w.site.PowerOn(w.hardware(11))
	w.eventually("the fault shows", func() bool { return w.status(11).Reason == "fault vm-never-boots" })
	require.False(t, w.links.has(w.addr(11)))
	w.faults.Clear()
	w.stage(11, talos.StageMaintenance)
}

func TestGuest_ShutdownIsCleanAndWaits(t *testing.T) {
	w := newWorld(t)
	g, _ := w.install(configmachine.TypeControlPlane, 11)
	w.stage(11, talos.StageBooting)
	ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
	defer cancel()
	require.NoError(t, g.Shutdown(ctx))
	require.Equal(t, talos.StageOff, w.status(11).Stage)
	require.False(t, w.links.has(w.addr(11)))
}

func TestSite_CloseEndsEverything(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 1)
	w.site.Close()
	require.Zero(t, w.kube.running())
	require.Empty(t, w.kube.kubelets)
	require.Empty(t, w.links.up)
}

func TestMaintenance_RefusesWhatNeedsACertificate(t *testing.T) {
	w := newWorld(t)
	w.site.PowerOn(w.hardware(11))
	w.stage(11, talos.StageMaintenance)
	c := w.insecure(11)
	w.eventually("it answers", func() bool { _, err := c.Disks(w.ctx); return err == nil })
	const role = "API is not implemented in maintenance mode"
	for name, refused := range map[string]struct {
		says string
		call func() error
	}{
		"Version":   {role, func() error { _, err := c.Version(w.ctx); return err }},
		"Bootstrap": {role, func() error { return c.Bootstrap(w.ctx, &machine.BootstrapRequest{}) }},
		"Reset":     {role, func() error { return c.Reset(w.ctx, true, true) }},
		"Services":  {"method ServiceList not implemented", func() error { _, err := c.ServiceList(w.ctx); return err }},
		"Talosconfig": {"client configuration (talosconfig) can't be generated in the maintenance mode", func() error {
			_, err := c.GenerateClientConfiguration(w.ctx, &machine.GenerateClientConfigurationRequest{})
			return err
		}},
	} {
		err := refused.call()
		require.Equal(t, codes.Unimplemented, client.StatusCode(err), name)
		require.ErrorContains(t, err, refused.says, name)
	}
}

func TestMaintenance_RefusesConfigurationThatTalosRejects(t *testing.T) {
	w := newWorld(t)
	w.site.PowerOn(w.hardware(11))
	w.stage(11, talos.StageMaintenance)
	c := w.insecure(11)
	w.eventually("it answers", func() bool { _, err := c.Disks(w.ctx); return err == nil })
	for name, bad := range map[string]struct {
		data []byte
		code codes.Code
		text string
	}{
		"no YAML": {[]byte("machine: ["), codes.Unknown, "failed to parse config: decode error: yaml"},
		"unknown key": {append(w.config(configmachine.TypeWorker, 11), []byte("\n---\napiVersion: v1alpha1\nkind: Nonsense\n")...),
			codes.Unknown, "Nonsense"},
		"no install disk": {w.config(configmachine.TypeWorker, 11, func(c *v1alpha1.Config) { c.MachineConfig.MachineInstall = nil }),
			codes.InvalidArgument, "install instructions are required"},
		"bad endpoint": {w.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
			c.ClusterConfig.ControlPlane.Endpoint.URL.Host = ""
		}), codes.InvalidArgument, "endpoint"},
	} {
		_, err := c.ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{Data: bad.data})
		require.Equal(t, bad.code, client.StatusCode(err), "%s: %v", name, err)
		require.ErrorContains(t, err, bad.text, name)
	}
	require.Equal(t, talos.StageMaintenance, w.status(11).Stage)
}

func TestMaintenance_TakesAConfigurationInstallsAndRebootsFromDisk(t *testing.T) {
	w := newWorld(t)
	_, hw := w.install(configmachine.TypeControlPlane, 11)
	w.stage(11, talos.StageBooting)
	require.NotNil(t, hw.Disks["scsi0"].Content)
	c := w.admin(11)
	w.eventually("the API answers over mTLS", func() bool {
		v, err := c.Version(w.ctx)
		return err == nil && v.Messages[0].Version.Tag == "v1.12.7" && v.Messages[0].Platform.Name == "nocloud"
	})
	_, err := w.insecure(11).Disks(w.ctx)
	require.Error(t, err, "a configured node refuses clients without certificate")
}

func TestMaintenance_ADiskThatIsNotThereLeadsBackToMaintenance(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeWorker, 11, func(c *v1alpha1.Config) { c.MachineConfig.MachineInstall.InstallDisk = "/dev/nvme0n1" })
	w.eventually("the status shows the reason", func() bool { return w.status(11).Reason != "" })
	w.stage(11, talos.StageMaintenance)
}

func TestMaintenance_InstallsToADiskByItsStableName(t *testing.T) {
	w := newWorld(t)
	hw := w.hardware(11)
	hw.Disks["scsi1"] = &vm.Disk{Volume: "local-lvm:data", Size: 20 << 30}
	w.boots(hw, w.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
		c.MachineConfig.MachineInstall.InstallDisk = "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi0"
	}))
	require.NotNil(t, hw.Disks["scsi0"].Content)
	require.Nil(t, hw.Disks["scsi1"].Content)
}

func etcdMembers(w *world, host byte) []string {
	w.t.Helper()
	resp, err := w.admin(host).EtcdMemberList(w.ctx, &machine.EtcdMemberListRequest{})
	require.NoError(w.t, err)
	var out []string
	for _, m := range resp.Messages[0].Members {
		name := m.Hostname
		if m.IsLearner {
			name += " (learner)"
		}
		out = append(out, name)
	}
	return out
}
