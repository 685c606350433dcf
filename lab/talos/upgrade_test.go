package talos_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/talos"
)

const (
	newer  = "factory.talos.dev/nocloud-installer/def:v1.12.8"
	iscsi  = "siderolabs/iscsi-tools"
	absent = "factory.talos.dev/nocloud-installer/gone:v1.12.8"
)

// installers is a registry with the installer of a newer version with one more extension.
func installers(c *talos.Config) {
	c.Installer = func(image string) ([]string, error) {
		switch image {
		case absent:
			return nil, errors.New(image + ": not found")
		default:
			return []string{agent, iscsi}, nil
		}
	}
}

// upgrade asks a node for an upgrade.
func (w *world) upgrade(host byte, image string, options ...client.UpgradeOption) error {
	w.t.Helper()
	options = append([]client.UpgradeOption{client.WithUpgradeImage(image)}, options...)
	reply, err := w.admin(host).UpgradeWithOptions(w.ctx, options...)
	if err == nil {
		require.Equal(w.t, "Upgrade request received", reply.Messages[0].Ack)
	}
	return err
}

// version is what a node reports that it runs, empty while it does not answer.
func (w *world) version(host byte) string {
	reply, err := w.admin(host).Version(w.ctx)
	if err != nil {
		return ""
	}
	return reply.Messages[0].Version.Tag
}

func TestUpgrade_InstallsTheImageBesideTheConfigurationAndReboots(t *testing.T) {
	w := newWorld(t, installers)
	w.cluster(1, 1)
	before := bootID(w, w.admin(21))
	require.NoError(t, w.upgrade(21, newer))
	w.eventually("it runs the new version", func() bool { return w.version(21) == "v1.12.8" })
	w.stage(21, talos.StageRunning)
	require.NotEqual(t, before, bootID(w, w.admin(21)))
	require.Equal(t, []string{"cordon node-21", "drain node-21", "shutdown node-21"}, w.kube.done())
	require.Equal(t, "def", resource[*runtime.ExtensionStatus](w, 21, runtime.NamespaceName, "schematic").TypedSpec().Metadata.Version)
	require.Equal(t, "iscsi-tools", resource[*runtime.ExtensionStatus](w, 21, runtime.NamespaceName, "iscsi-tools").TypedSpec().Metadata.Name)
	require.True(t, w.service(21, "ext-iscsid").Healthy)
	k, _ := w.kube.kubelet(node(21))
	require.Equal(t, "v1.12.8", k.TalosVersion)
	require.Equal(t, "def", k.Annotations["extensions.talos.dev/schematic"])
	require.Contains(t, w.activeConfig(21), "nocloud-installer/abc:v1.12.7", "an upgrade does not change the configuration")
	require.Equal(t, "v1.12.7", w.version(11), "only the node that was asked")
}

// activeConfig is a node's machine configuration.
func (w *world) activeConfig(host byte) string {
	w.t.Helper()
	raw, err := resource[*configres.MachineConfig](w, host, configres.NamespaceName, configres.ActiveID).Provider().Bytes()
	require.NoError(w.t, err)
	return string(raw)
}

func TestUpgrade_AMissingImageIsAnErrorOfTheCall(t *testing.T) {
	w := newWorld(t, installers)
	w.cluster(1, 0)
	before := bootID(w, w.admin(11))
	err := w.upgrade(11, absent)
	require.ErrorContains(t, err, `error validating installer image "`+absent+`": failed to pull image`)
	require.ErrorContains(t, err, "not found")
	w.breaks(fault.ImagePull, "nocloud-installer/def", "")
	require.ErrorContains(t, w.upgrade(11, newer), "not found")
	require.Equal(t, before, bootID(w, w.admin(11)))
	require.Empty(t, w.kube.done())
}

func TestUpgrade_AFailedBootReturnsToTheFormerVersion(t *testing.T) {
	w := newWorld(t, installers)
	w.cluster(1, 1)
	w.breaks(fault.UpgradeFails, node(21), "")
	before := bootID(w, w.admin(21))
	require.NoError(t, w.upgrade(21, newer))
	w.eventually("it is another boot of the former version", func() bool {
		id := tryBootID(w, w.admin(21))
		return id != "" && id != before && w.version(21) == "v1.12.7"
	})
	w.stage(21, talos.StageRunning)
	w.faults.Clear()
	require.NoError(t, w.upgrade(21, newer))
	w.eventually("it runs the new version", func() bool { return w.version(21) == "v1.12.8" })
	w.stage(21, talos.StageRunning)

	w.breaks(fault.UpgradeFails, node(21), "")
	proven := bootID(w, w.admin(21))
	require.NoError(t, w.admin(21).Reboot(w.ctx))
	w.eventually("a version that has run boots again", func() bool {
		id := tryBootID(w, w.admin(21))
		return id != "" && id != proven && w.version(21) == "v1.12.8"
	})
	w.stage(21, talos.StageRunning)
	require.NoError(t, w.admin(21).Rollback(w.ctx))
	w.eventually("a person can go back", func() bool { return w.version(21) == "v1.12.7" })
}

func TestUpgrade_NeedsAHealthyEtcdUnlessForced(t *testing.T) {
	w := newWorld(t, installers)
	w.cluster(3, 0)
	require.NoError(t, w.admin(13).Shutdown(w.ctx))
	w.stage(13, talos.StageOff)
	require.ErrorContains(t, w.upgrade(11, newer), "all members must be healthy to perform an upgrade")
	members, err := w.admin(11).EtcdMemberList(w.ctx, &machine.EtcdMemberListRequest{})
	require.NoError(t, err)
	for _, m := range members.Messages[0].Members {
		if m.Hostname == node(13) {
			require.NoError(t, w.admin(11).EtcdRemoveMemberByID(w.ctx, &machine.EtcdRemoveMemberByIDRequest{MemberId: m.Id}))
		}
	}
	require.ErrorContains(t, w.upgrade(11, newer), "etcd member count(2) is insufficient to maintain quorum")
	require.NoError(t, w.upgrade(11, newer, client.WithUpgradeForce(true)))
	w.eventually("it runs the new version", func() bool { return w.version(11) == "v1.12.8" })
	w.eventually("it is still a member", func() bool { return w.service(11, "etcd").Healthy })
	require.ElementsMatch(t, []string{node(11), node(12)}, etcdMembers(w, 12))
}

// rebooted waits until a node runs in another boot.
func (w *world) rebooted(host byte, before string) {
	w.t.Helper()
	w.eventually("another boot", func() bool {
		id := tryBootID(w, w.admin(host))
		return id != "" && id != before
	})
	w.stage(host, talos.StageRunning)
}

func TestUpgrade_GoesOnWhenPodsCannotBeEvictedAndRebootsWithoutCordon(t *testing.T) {
	w := newWorld(t, installers)
	w.cluster(1, 2)
	w.kube.set(func() { w.kube.blocked = true })
	began := time.Now()
	require.NoError(t, w.upgrade(21, newer))
	w.stage(21, talos.StageDraining)
	require.NoError(t, w.admin(21).Reboot(w.ctx), "Talos answers, but does not start a second sequence")
	w.eventually("it runs the new version", func() bool { return w.version(21) == "v1.12.8" })
	require.GreaterOrEqual(t, time.Since(began), fast().DrainLimit)

	w.kube.set(func() { w.kube.blocked, w.kube.noCordon = false, true })
	before := bootID(w, w.admin(22))
	require.NoError(t, w.upgrade(22, newer), "the reply is no promise")
	w.rebooted(22, before)
	require.Equal(t, "v1.12.7", w.version(22), "a failed sequence ends in a reboot")
	w.kube.set(func() { w.kube.noCordon = false })
	require.NoError(t, w.upgrade(22, newer))
	w.eventually("the next request upgrades it", func() bool { return w.version(22) == "v1.12.8" })
}

func TestUpgrade_AStagedOneIsInstalledByTheNextBoot(t *testing.T) {
	w := newWorld(t, installers)
	w.cluster(1, 1)
	require.NoError(t, w.upgrade(21, newer, client.WithUpgradeStage(true)))
	w.eventually("it runs the new version", func() bool { return w.version(21) == "v1.12.8" })
	require.Equal(t, []string{"shutdown node-21"}, w.kube.done(), "it is not drained")
}

func TestPower_OnlyAShutdownByTheAPIDrains(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 2)
	require.NoError(t, w.admin(21).Reboot(w.ctx))
	w.eventually("it stops its pods", func() bool { return len(w.kube.done()) == 1 })
	require.Equal(t, []string{"shutdown node-21"}, w.kube.done())
	w.stage(21, talos.StageRunning)
	require.NoError(t, w.admin(22).Shutdown(w.ctx))
	w.stage(22, talos.StageOff)
	require.Equal(t, []string{"cordon node-22", "drain node-22", "shutdown node-22"}, w.kube.done()[1:])
}

func TestKubernetesVersion_ChangesTheStaticPodsOfOneNodeAtATime(t *testing.T) {
	w := newWorld(t)
	w.cluster(2, 0)
	next := func(c *v1alpha1.Config) {
		c.ClusterConfig.APIServerConfig.ContainerImage = "registry.k8s.io/kube-apiserver:v1.35.9"
		c.ClusterConfig.ControllerManagerConfig.ContainerImage = "registry.k8s.io/kube-controller-manager:v1.35.9"
		c.MachineConfig.MachineKubelet.KubeletImage = "ghcr.io/siderolabs/kubelet:v1.35.9"
	}
	require.Equal(t, "registry.k8s.io/kube-apiserver:v1.35.8", w.kube.serves(w.addr(11)))
	w.breaks(fault.ImagePull, "kube-apiserver:v1.35.9", "")
	before := bootID(w, w.admin(11))
	_, err := w.admin(11).ApplyConfiguration(w.ctx, auto(w.config(configmachine.TypeControlPlane, 11, next)))
	require.NoError(t, err)
	w.eventually("without its image the API server of the node does not answer", func() bool { return !w.kube.answers(w.addr(11)) })
	require.True(t, w.kube.answers(w.addr(12)))
	w.eventually("the kubelet shows why", func() bool {
		k, runs := w.kube.kubelet(node(11))
		if !runs {
			return false
		}
		for _, p := range k.StaticPods() {
			if p.Name == "kube-apiserver" && p.Image == "registry.k8s.io/kube-apiserver:v1.35.9" && !p.Runs {
				return true
			}
		}
		return false
	})
	w.faults.Clear()
	w.eventually("it answers in the new version", func() bool { return w.kube.serves(w.addr(11)) == "registry.k8s.io/kube-apiserver:v1.35.9" })
	require.Equal(t, "registry.k8s.io/kube-apiserver:v1.35.8", w.kube.serves(w.addr(12)))
	require.Equal(t, w.kube.serves(w.addr(11)), w.kube.serves(w.vip()), "the virtual IP is where it was")
	w.eventually("the kubelet has the new version", func() bool {
		k, runs := w.kube.kubelet(node(11))
		return runs && k.KubernetesVersion == "v1.35.9"
	})
	require.Equal(t, before, bootID(w, w.admin(11)), "nothing reboots")

	c := w.admin(12)
	require.NoError(t, c.ImagePull(w.ctx, common.ContainerdNamespace_NS_CRI, "registry.k8s.io/kube-apiserver:v1.35.9"))
	w.breaks(fault.ImagePull, "kube-apiserver:v1.35.9", "")
	_, err = c.ApplyConfiguration(w.ctx, auto(w.config(configmachine.TypeControlPlane, 12, next)))
	require.NoError(t, err)
	w.eventually("an image that was pulled before is there", func() bool {
		return w.kube.serves(w.addr(12)) == "registry.k8s.io/kube-apiserver:v1.35.9"
	})
	w.eventually("the controller manager follows", func() bool {
		return strings.HasSuffix(w.kube.manager("kube-controller-manager"), ":v1.35.9")
	})
	require.True(t, strings.HasSuffix(w.kube.manager("kube-scheduler"), ":v1.35.8"))
}

func TestStaticPods_AreNotReadyWhileTheirProgramEndsAtItsStart(t *testing.T) {
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		t.Run(component, func(t *testing.T) {
			w := newWorld(t)
			w.cluster(1, 0)
			w.kube.set(func() { w.kube.ends = component })
			applied := func(value string) {
				_, err := w.admin(11).ApplyConfiguration(w.ctx, auto(w.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
					args := v1alpha1.Args{"v": v1alpha1.NewArgValue(value, nil)}
					c.ClusterConfig.APIServerConfig.ExtraArgsConfig = args
					c.ClusterConfig.ControllerManagerConfig.ExtraArgsConfig = args
					c.ClusterConfig.SchedulerConfig.ExtraArgsConfig = args
				})))
				require.NoError(t, err)
			}
			pods := func() map[string]talos.StaticPod {
				k, _ := w.kube.kubelet(node(11))
				all := map[string]talos.StaticPod{}
				for _, p := range k.StaticPods() {
					all[p.Name] = p
				}
				return all
			}
			applied("3")
			w.eventually("it is not ready", func() bool { p := pods()[component]; return p.Ends && !p.Runs })
			w.eventually("the others are", func() bool {
				for name, p := range pods() {
					if name != component && !p.Runs {
						return false
					}
				}
				return true
			})
			w.kube.set(func() { w.kube.ends = "" })
			applied("4")
			w.eventually("another configuration starts", func() bool { p := pods()[component]; return p.Runs && !p.Ends })
		})
	}
}

func TestReboot_KeepsThePulledImages(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 1)
	c := w.admin(21)
	require.NoError(t, c.ImagePull(w.ctx, common.ContainerdNamespace_NS_CRI, "example.com/x:1"))
	before := bootID(w, c)
	require.NoError(t, c.Reboot(w.ctx))
	w.eventually("it is back", func() bool {
		id := tryBootID(w, c)
		return id != "" && id != before && w.service(21, "kubelet").Healthy
	})
	k, _ := w.kube.kubelet(node(21))
	require.True(t, k.Images.Has("example.com/x:1"))
	require.False(t, k.Images.Has("example.com/x:2"))
	w.breaks(fault.ImagePull, "example.com/x", "")
	require.NoError(t, c.ImagePull(w.ctx, common.ContainerdNamespace_NS_CRI, "example.com/x:1"))
	require.Equal(t, codes.NotFound, client.StatusCode(c.ImagePull(w.ctx, common.ContainerdNamespace_NS_CRI, "example.com/x:2")))
}
