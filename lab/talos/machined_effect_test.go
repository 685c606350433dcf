package talos_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	blockcfg "github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/slipway-platform/slipway/lab/talos"
)

const customization = "/etc/cri/conf.d/20-customization.part"

// read returns the content of a node's file; "" if it cannot be read.
func (w *world) read(host byte, path string) string {
	file, err := w.admin(host).Read(w.ctx, path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	content, _ := io.ReadAll(file)
	return string(content)
}

// change applies a changed configuration of the first control plane in mode auto.
func (w *world) change(change ...func(*v1alpha1.Config)) {
	w.t.Helper()
	_, err := w.admin(11).ApplyConfiguration(w.ctx, auto(w.config(configmachine.TypeControlPlane, 11, change...)))
	require.NoError(w.t, err)
}

// reboots makes the first control plane reboot, and waits until it runs.
func (w *world) reboots() {
	w.t.Helper()
	before := bootID(w, w.admin(11))
	require.NoError(w.t, w.admin(11).Reboot(w.ctx))
	w.rebooted(11, before)
	w.stage(11, talos.StageRunning)
}

// events counts the events of a service of the first control plane.
func (w *world) events(id string) (count int) {
	w.t.Helper()
	reply, err := w.admin(11).ServiceList(w.ctx)
	require.NoError(w.t, err)
	for _, service := range reply.Messages[0].Services {
		if service.Id == id {
			count = len(service.Events.Events)
		}
	}
	return count
}

func file(path, content string) func(*v1alpha1.Config) {
	return func(c *v1alpha1.Config) {
		c.MachineConfig.MachineFiles = append(c.MachineConfig.MachineFiles,
			&v1alpha1.MachineFile{FileOp: "create", FilePath: path, FileContent: content})
	}
}

func etcdArgument(flag, value string) func(*v1alpha1.Config) {
	return func(c *v1alpha1.Config) {
		c.ClusterConfig.EtcdConfig.EtcdExtraArgs = v1alpha1.Args{flag: v1alpha1.NewArgValue(value, nil)}
	}
}

func TestEffect_From114OnFilesAndArgumentsOfEtcdWaitForTheNextBootAndNothingSaysSo(t *testing.T) {
	w := newWorld(t)
	w.runs("v1.14.1")
	w.cluster(1, 0)
	boot := bootID(w, w.admin(11))
	w.change(file("/var/etc/mine", "a"), etcdArgument("quota-backend-bytes", "4"))
	w.never(200*time.Millisecond, "a reboot or the file", func() bool { return bootID(w, w.admin(11)) != boot || w.read(11, "/var/etc/mine") != "" })
	log, err := w.log(11, "etcd", -1)
	require.NoError(t, err)
	require.Contains(t, log, `"--name=`)
	require.NotContains(t, log, "quota-backend-bytes")
	w.reboots()
	require.Equal(t, "a", w.read(11, "/var/etc/mine"))
	log, err = w.log(11, "etcd", -1)
	require.NoError(t, err)
	require.Contains(t, log, `"--quota-backend-bytes=4"`)

	w.change()
	w.reboots()
	require.Equal(t, "a", w.read(11, "/var/etc/mine"), "nobody removes it from the disk")
}

func TestEffect_Before114AFileRebootsAndAnArgumentOfEtcdWaits(t *testing.T) {
	w := newWorld(t)
	w.runs("v1.13.9")
	w.cluster(1, 0)
	boot := bootID(w, w.admin(11))
	w.change(etcdArgument("quota-backend-bytes", "4"))
	require.Equal(t, boot, bootID(w, w.admin(11)))
	w.change(etcdArgument("quota-backend-bytes", "4"), file("/var/etc/mine", "a"), file(customization, "b"))
	w.rebooted(11, boot)
	w.stage(11, talos.StageRunning)
	require.Equal(t, "a", w.read(11, "/var/etc/mine"))
	log, err := w.log(11, "etcd", -1)
	require.NoError(t, err)
	require.Contains(t, log, `"--quota-backend-bytes=4"`)
}

func TestEffect_AFileOutsideOfVarEndsEachBoot(t *testing.T) {
	w := newWorld(t)
	w.runs("v1.14.1")
	w.cluster(1, 0)
	w.change(file("/etc/mine", "a"))
	require.NoError(t, w.admin(11).Reboot(w.ctx))
	w.eventually("it reboots for ever", func() bool {
		return strings.Contains(w.status(11).Reason, `create operation not allowed outside of /var: "/etc/mine"`)
	})
}

func TestEffect_From114OnContainerdRestartsForItsSettings(t *testing.T) {
	auth := func(c *v1alpha1.Config) {
		c.MachineConfig.MachineRegistries.RegistryConfig = map[string]*v1alpha1.RegistryConfig{ //nolint:staticcheck // as in a configuration
			"ghcr.io": {RegistryAuth: &v1alpha1.RegistryAuthConfig{RegistryUsername: "a", RegistryPassword: "b"}}, //nolint:staticcheck // the same
		}
	}
	limits := func(c *v1alpha1.Config) {
		c.MachineConfig.MachineBaseRuntimeSpecOverrides.Object = map[string]any{"process": map[string]any{"noNewPrivileges": true}}
	}
	w := newWorld(t)
	w.runs("v1.14.1")
	w.cluster(1, 0)
	boot := bootID(w, w.admin(11))
	kubelet, etcd := w.events("kubelet"), w.events("etcd")
	var changes []func(*v1alpha1.Config)
	for _, change := range []func(*v1alpha1.Config){file(customization, "c"), limits, auth} {
		before := w.events("cri")
		changes = append(changes, change)
		w.change(changes...)
		w.eventually("containerd has restarted", func() bool { return w.events("cri") > before+2 && w.service(11, "cri").Healthy })
	}
	require.Equal(t, "c", w.read(11, customization))
	require.Equal(t, boot, bootID(w, w.admin(11)))
	require.Equal(t, []int{kubelet, etcd}, []int{w.events("kubelet"), w.events("etcd")}, "they go on")

	before := w.events("cri")
	w.change(append(changes, func(c *v1alpha1.Config) { c.MachineConfig.MachineSysctls = map[string]string{"vm.swappiness": "1"} })...)
	w.never(200*time.Millisecond, "a restart of containerd", func() bool { return w.events("cri") != before })
}

func TestEffect_AStagedConfigurationIsThatOfTheNextBoot(t *testing.T) {
	for _, version := range []string{"v1.13.9", "v1.14.1"} {
		w := newWorld(t)
		w.runs(version)
		w.cluster(1, 0)
		data := w.config(configmachine.TypeControlPlane, 11, file("/var/etc/mine", "a"), file(customization, "b"))
		_, err := w.admin(11).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
			Mode: machine.ApplyConfigurationRequest_STAGED, Data: data,
		})
		require.NoError(t, err)
		require.NotContains(t, w.activeConfig(11), "/var/etc/mine")
		w.reboots()
		require.Contains(t, w.activeConfig(11), "/var/etc/mine")
		boot := bootID(w, w.admin(11))
		reply, err := w.admin(11).ApplyConfiguration(w.ctx, auto(data))
		require.NoError(t, err)
		require.Equal(t, machine.ApplyConfigurationRequest_NO_REBOOT, reply.Messages[0].Mode)
		require.Equal(t, boot, bootID(w, w.admin(11)))
	}
}

func TestEffect_KeysOfAVolumeChangeAtBootAndAVolumeIsNotEncryptedAfterwards(t *testing.T) {
	nodeID := blockcfg.EncryptionKey{KeyNodeID: &blockcfg.EncryptionKeyNodeID{}}
	static := blockcfg.EncryptionKey{KeySlot: 1, KeyStatic: &blockcfg.EncryptionKeyStatic{KeyData: "a"}}
	w := newWorld(t)
	w.runs("v1.14.1")
	plain := w.config(configmachine.TypeControlPlane, 11)
	w.boots(w.hardware(11), w.with(plain, encrypted(nodeID)...))
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	apply := func(documents ...configconfig.Document) {
		_, err := w.admin(11).ApplyConfiguration(w.ctx, auto(w.with(plain, documents...)))
		require.NoError(t, err)
	}
	apply(encrypted(nodeID, static)...)
	require.Equal(t, []string{"nodeID"}, volume(w, 11, "EPHEMERAL").ConfiguredEncryptionKeys)
	w.reboots()
	require.Equal(t, []string{"nodeID", "static"}, volume(w, 11, "EPHEMERAL").ConfiguredEncryptionKeys)
	apply(encrypted(static)...)
	w.reboots()
	require.Equal(t, []string{"static"}, volume(w, 11, "EPHEMERAL").ConfiguredEncryptionKeys)
	apply()
	require.Equal(t, block.EncryptionProviderLUKS2, volume(w, 11, "EPHEMERAL").EncryptionProvider)
	require.NoError(t, w.admin(11).Reboot(w.ctx))
	w.eventually("it reboots for ever", func() bool {
		return strings.Contains(w.status(11).Reason, "volume STATE: filesystem type mismatch: luks != xfs")
	})
}

// Talos exchanges keys after one of them has opened the volume.
func TestEffect_AVolumeDoesNotOpenIfAllItsKeysAreOthers(t *testing.T) {
	w := newWorld(t)
	w.runs("v1.14.1")
	plain := w.config(configmachine.TypeControlPlane, 11)
	w.boots(w.hardware(11), w.with(plain, encrypted(blockcfg.EncryptionKey{KeyNodeID: &blockcfg.EncryptionKeyNodeID{}})...))
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	static := blockcfg.EncryptionKey{KeyStatic: &blockcfg.EncryptionKeyStatic{KeyData: "a"}}
	_, err := w.admin(11).ApplyConfiguration(w.ctx, auto(w.with(plain, encrypted(static)...)))
	require.NoError(t, err, "Talos takes it")
	require.NoError(t, w.admin(11).Reboot(w.ctx))
	w.eventually("it reboots for ever", func() bool {
		return strings.Contains(w.status(11).Reason, "volume STATE: error opening encrypted volume")
	})
}

func TestEffect_ADryRunEndsATryBefore114Only(t *testing.T) {
	for version, reverted := range map[string]bool{"v1.12.7": false, "v1.13.9": false, "v1.14.1": true} {
		w := newWorld(t)
		w.runs(version)
		w.cluster(1, 0)
		labelled := w.config(configmachine.TypeControlPlane, 11,
			func(c *v1alpha1.Config) { c.MachineConfig.MachineNodeLabels = map[string]string{"zone": "a"} })
		_, err := w.admin(11).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
			Data: labelled, Mode: machine.ApplyConfigurationRequest_TRY, TryModeTimeout: durationpb.New(time.Second),
		})
		require.NoError(t, err)
		_, err = w.admin(11).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
			Data: []byte("machine: {}"), DryRun: true, Mode: machine.ApplyConfigurationRequest_AUTO,
		})
		require.Equal(t, codes.InvalidArgument, client.StatusCode(err))
		_, err = w.admin(11).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
			Data: labelled, DryRun: true, Mode: machine.ApplyConfigurationRequest_AUTO,
		})
		require.NoError(t, err)
		gone := func() bool { return !strings.Contains(w.activeConfig(11), "zone: a") }
		if reverted {
			w.eventually(version+": the configuration is taken back", gone)
		} else {
			w.never(1500*time.Millisecond, version+": the configuration is taken back", gone)
		}
	}
}
