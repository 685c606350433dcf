package talos_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/talos"
)

// runs makes new machines of the world boot and install a version of Talos.
func (w *world) runs(version string) {
	w.iso, w.input.Options.InstallImage = version, "factory.talos.dev/nocloud-installer/abc:"+version
}

// installer is the image of a version.
func installer(version string) string { return "factory.talos.dev/nocloud-installer/def:" + version }

// system is where installers are pulled to.
var system = &common.ContainerdInstance{Driver: common.ContainerDriver_CRI, Namespace: common.ContainerdNamespace_NS_SYSTEM}

// pull pulls an image by the service of Talos 1.13, and returns the name that it answers.
func (w *world) pull(host byte, image string) (name string, err error) {
	stream, err := w.admin(host).ImageClient.Pull(w.ctx, &machine.ImageServicePullRequest{Containerd: system, ImageRef: image})
	for err == nil {
		var answer *machine.ImageServicePullResponse
		if answer, err = stream.Recv(); err == nil && answer.GetName() != "" {
			name = answer.GetName()
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return name, err
}

// startInstall starts an installation by LifecycleService.
func (w *world) startInstall(host byte, image string) grpc.ServerStreamingClient[machine.LifecycleServiceUpgradeResponse] {
	w.t.Helper()
	stream, err := w.admin(host).LifecycleClient.Upgrade(w.ctx, &machine.LifecycleServiceUpgradeRequest{
		Containerd: system, Source: &machine.InstallArtifactsSource{ImageName: image}})
	require.NoError(w.t, err)
	return stream
}

// lifecycle pulls an installer and runs it. It returns the messages and the exit code.
func (w *world) lifecycle(host byte, image string) (messages []string, code int32, err error) {
	w.t.Helper()
	name, err := w.pull(host, image)
	require.NoError(w.t, err)
	require.Regexp(w.t, "^factory.talos.dev/nocloud-installer/def@sha256:[0-9a-f]{64}$", name)
	return follow(w.startInstall(host, name))
}

// follow reads an installation to its end.
func follow(stream grpc.ServerStreamingClient[machine.LifecycleServiceUpgradeResponse]) (messages []string, code int32, err error) {
	code = -1
	for {
		answer, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return messages, code, nil
		case err != nil:
			return messages, code, err
		}
		switch progress := answer.GetProgress().GetResponse().(type) {
		case *machine.LifecycleServiceInstallProgress_Message:
			messages = append(messages, progress.Message)
		case *machine.LifecycleServiceInstallProgress_ExitCode:
			code = progress.ExitCode
		}
	}
}

// entries are the boot entry that runs and the one that boots next.
func (w *world) entries(host byte) (booted, next string) {
	w.t.Helper()
	file, err := w.admin(host).Read(w.ctx, "/sys/firmware/efi/efivars/LoaderEntryDefault-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f")
	require.NoError(w.t, err)
	data, err := io.ReadAll(file)
	require.NoError(w.t, err)
	for text := data[4:]; len(text) > 2; text = text[2:] {
		next += string(rune(binary.LittleEndian.Uint16(text)))
	}
	return resource[*runtime.BootedEntry](w, host, runtime.NamespaceName, runtime.BootedEntryID).TypedSpec().BootedEntry, next
}

func TestLifecycle_InstallsAndLeavesTheRebootToTheClient(t *testing.T) {
	for from, to := range map[string]string{"v1.13.8": "v1.13.9", "v1.13.9": "v1.14.1"} {
		w := newWorld(t, installers)
		w.runs(from)
		w.cluster(1, 1)
		before := bootID(w, w.admin(21))
		messages, code, err := w.lifecycle(21, installer(to))
		require.NoError(t, err)
		require.Zero(t, code)
		require.Contains(t, messages[0], "running Talos installer "+to)
		require.Contains(t, messages[len(messages)-1], "installation of "+to+" complete\n")
		require.Equal(t, before, bootID(w, w.admin(21)))
		require.Equal(t, from, w.version(21))
		require.Equal(t, talos.StageRunning, w.status(21).Stage)
		require.Empty(t, w.kube.done(), "it is not drained")
		booted, next := w.entries(21)
		require.Equal(t, []string{"Talos-" + from + ".efi", "Talos-" + to + ".efi"}, []string{booted, next})
		require.NoError(t, w.admin(21).Reboot(w.ctx))
		w.rebooted(21, before)
		require.Equal(t, to, w.version(21))
		booted, next = w.entries(21)
		require.Equal(t, booted, next)
	}
}

func TestLifecycle_IsUnknownToTalos112(t *testing.T) {
	w := newWorld(t, installers)
	w.cluster(1, 0)
	_, err := w.pull(11, newer)
	require.Equal(t, codes.Unimplemented, client.StatusCode(err))
	require.ErrorContains(t, err, "unknown service machine.ImageService")
	_, _, err = follow(w.startInstall(11, newer))
	require.Equal(t, codes.Unimplemented, client.StatusCode(err))
	require.ErrorContains(t, err, "unknown service machine.LifecycleService")
}

func TestLifecycle_RefusesAnImageThatWasNotPulled(t *testing.T) {
	w := newWorld(t, installers)
	w.runs("v1.13.8")
	w.cluster(1, 0)
	_, err := w.pull(11, absent)
	require.Equal(t, codes.NotFound, client.StatusCode(err))
	require.ErrorContains(t, err, "error pulling image: failed to pull image")
	_, _, err = follow(w.startInstall(11, installer("v1.13.9")))
	require.Equal(t, codes.Internal, client.StatusCode(err))
	require.ErrorContains(t, err, "not found in containerd store")
	_, _, err = follow(w.startInstall(11, ""))
	require.Equal(t, codes.InvalidArgument, client.StatusCode(err))
	w.breaks(fault.ImagePull, "nocloud-installer/def", "")
	_, err = w.pull(11, installer("v1.13.9"))
	require.Equal(t, codes.NotFound, client.StatusCode(err))
}

func TestLifecycle_ASkippedMinorVersionIsAnExitCode(t *testing.T) {
	w := newWorld(t, installers)
	w.runs("v1.14.1")
	w.cluster(1, 0)
	messages, code, err := w.lifecycle(11, installer("v1.11.5"))
	require.NoError(t, err)
	require.EqualValues(t, 1, code)
	require.Equal(t, "pre-flight checks failed: host version 1.14.1 is too new to downgrade to Talos 1.11.5\n", messages[len(messages)-1])
	_, next := w.entries(11)
	require.Equal(t, "Talos-v1.14.1.efi", next)

	old := newWorld(t, installers)
	old.runs("v1.13.9")
	old.cluster(1, 0)
	messages, code, err = old.lifecycle(11, installer("v1.16.0"))
	require.NoError(t, err)
	require.EqualValues(t, 4, code, "the installer's version decides")
	require.Equal(t, "pre-flight checks failed: upgrades to version 1.16.0 are not supported\n", messages[len(messages)-1])
	messages, _, err = old.lifecycle(11, installer("v1.11.5"))
	require.NoError(t, err)
	require.Greater(t, len(messages), 5)
	for _, message := range messages {
		require.LessOrEqual(t, len(message), 512, "the usage of the installer comes in pieces")
	}
	require.Contains(t, strings.Join(messages, ""), "host version 1.13.9 is too new to downgrade to Talos 1.11.5\n")
}

func TestUpgrade_OfTalos112ToAVersionThatIsTooNewEndsInAReboot(t *testing.T) {
	w := newWorld(t, installers)
	w.cluster(1, 1)
	before := bootID(w, w.admin(21))
	require.NoError(t, w.upgrade(21, installer("v1.15.0")), "the call knows nothing of it")
	w.rebooted(21, before)
	require.Equal(t, "v1.12.7", w.version(21))
}

func TestLifecycle_DoesNotLookAtEtcd(t *testing.T) {
	w := newWorld(t, installers)
	w.runs("v1.13.8")
	w.cluster(3, 0)
	require.NoError(t, w.admin(13).Shutdown(w.ctx))
	w.stage(13, talos.StageOff)
	require.ErrorContains(t, w.upgrade(11, installer("v1.13.9")), "all members must be healthy to perform an upgrade", "the former call does")
	_, code, err := w.lifecycle(11, installer("v1.13.9"))
	require.NoError(t, err)
	require.Zero(t, code)
	require.NoError(t, w.upgrade(12, installer("v1.13.9"), client.WithUpgradePreserve(true)), "and does not with Preserve")
	w.eventually("it runs the new version", func() bool { return w.version(12) == "v1.13.9" })
}

func TestUpgrade_OfTalos112LooksAtEtcdWithPreserve(t *testing.T) {
	w := newWorld(t, installers)
	w.cluster(3, 0)
	require.NoError(t, w.admin(13).Shutdown(w.ctx))
	w.stage(13, talos.StageOff)
	require.ErrorContains(t, w.upgrade(11, newer, client.WithUpgradePreserve(true)), "all members must be healthy to perform an upgrade")
}

func TestLifecycle_ASecondInstallationBeforeTheRebootRemovesTheWayBack(t *testing.T) {
	for times, runs := range map[int]string{1: "v1.13.8", 2: "v1.13.9"} {
		w := newWorld(t, installers)
		w.runs("v1.13.8")
		w.cluster(1, 1)
		var messages []string
		for range times {
			var err error
			messages, _, err = w.lifecycle(21, installer("v1.13.9"))
			require.NoError(t, err)
		}
		removes := strings.Contains(strings.Join(messages, ""), "removing old UKI: /boot/EFI/EFI/Linux/Talos-v1.13.8.efi")
		require.Equal(t, times == 2, removes)
		w.breaks(fault.UpgradeFails, node(21), "")
		before := bootID(w, w.admin(21))
		require.NoError(t, w.admin(21).Reboot(w.ctx))
		if times == 1 {
			w.rebooted(21, before)
			require.Equal(t, runs, w.version(21), "it rolls back")
			continue
		}
		w.eventually("it never boots", func() bool { return strings.Contains(w.status(21).Reason, "reboots for ever") })
		w.faults.Clear()
		w.rebooted(21, before)
		require.Equal(t, runs, w.version(21))
	}
}

func TestLifecycle_GoesOnWithoutItsClientAndRunsOneInstallationAtATime(t *testing.T) {
	w := newWorld(t, installers, func(c *talos.Config) { c.Latency.Install *= 20 })
	w.runs("v1.13.8")
	w.cluster(1, 1)
	name, err := w.pull(21, installer("v1.13.9"))
	require.NoError(t, err)
	ctx, leave := context.WithCancel(w.ctx)
	gone, err := w.admin(21).LifecycleClient.Upgrade(ctx, &machine.LifecycleServiceUpgradeRequest{
		Containerd: system, Source: &machine.InstallArtifactsSource{ImageName: name}})
	require.NoError(t, err)
	_, err = gone.Recv()
	require.NoError(t, err)
	leave()
	_, _, err = follow(w.startInstall(21, name))
	require.Equal(t, codes.FailedPrecondition, client.StatusCode(err))
	require.ErrorContains(t, err, "another installation/upgrade is already in progress")
	w.eventually("the installation ends", func() bool { _, next := w.entries(21); return next == "Talos-v1.13.9.efi" })
}

func TestVersions_TakeTheKubernetesOfTheirOwnRange(t *testing.T) {
	for version, ranges := range map[string][2]string{
		"v1.12.7": {"v1.30.0", "v1.35.8"}, "v1.13.9": {"v1.31.0", "v1.36.4"}, "v1.14.1": {"v1.32.0", "v1.37.2"},
	} {
		w := newWorld(t)
		w.runs(version)
		w.cluster(1, 0)
		apply := func(kubernetes string) error {
			scheduler := &v1alpha1.SchedulerConfig{ContainerImage: "registry.k8s.io/kube-scheduler:" + kubernetes}
			_, err := w.admin(11).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
				DryRun: true, Mode: machine.ApplyConfigurationRequest_AUTO,
				Data: w.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) { c.ClusterConfig.SchedulerConfig = scheduler }),
			})
			return err
		}
		for _, taken := range ranges {
			require.NoError(t, apply(taken), version)
		}
		require.EqualError(t, apply("v1.38.0"), "rpc error: code = InvalidArgument desc = 1 error occurred:\n\t* "+
			"v1alpha1.Config: 1 error occurred:\n\t* "+
			"kube-scheduler image is not valid: version of Kubernetes 1.38.0 is too new to be used with Talos "+version[1:]+"\n\n\n\n")
		require.ErrorContains(t, apply("v1.29.9"), "version of Kubernetes 1.29.9 is too old to be used with Talos "+version[1:])
	}
}

func TestVersions_From114OnEveryConfigurationIsAppliedWithoutAReboot(t *testing.T) {
	for version, want := range map[string]machine.ApplyConfigurationRequest_Mode{
		"v1.13.9": machine.ApplyConfigurationRequest_REBOOT, "v1.14.1": machine.ApplyConfigurationRequest_NO_REBOOT,
	} {
		w := newWorld(t)
		w.runs(version)
		w.cluster(1, 0)
		data := w.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
			c.MachineConfig.MachineUdev = &v1alpha1.UdevConfig{UdevRules: []string{"x"}}
		})
		in := &machine.ApplyConfigurationRequest{DryRun: true, Data: data, Mode: machine.ApplyConfigurationRequest_AUTO}
		reply, err := w.admin(11).ApplyConfiguration(w.ctx, in)
		require.NoError(t, err)
		require.Equal(t, want, reply.Messages[0].Mode, version)
		in.Mode = machine.ApplyConfigurationRequest_REBOOT
		_, err = w.admin(11).ApplyConfiguration(w.ctx, in)
		require.Equal(t, version == "v1.14.1", client.StatusCode(err) == codes.Unimplemented, "%v", err)
	}
}
