package talos_test

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/go-kubernetes/kubernetes/upgrade"
	taloscluster "github.com/siderolabs/talos/pkg/cluster"
	upgradek8s "github.com/siderolabs/talos/pkg/cluster/kubernetes"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/talos"
)

// upgradeDryRun runs what `talosctl upgrade-k8s --dry-run` runs, which is Talos's own code, and returns what it prints.
func (w *world) upgradeDryRun(from, to string) (string, error) {
	w.t.Helper()
	path, err := upgrade.NewPath(from, to)
	require.NoError(w.t, err)
	talosctl := &taloscluster.ConfigClientProvider{DefaultClient: w.admin(11)}
	var printed lines
	err = upgradek8s.Upgrade(w.ctx, &struct {
		taloscluster.ClientProvider
		taloscluster.K8sProvider
	}{talosctl, &taloscluster.KubernetesClient{ClientProvider: talosctl}}, upgradek8s.UpgradeOptions{
		Path: path, LogOutput: &printed, PrePullImages: true, UpgradeKubelet: true, DryRun: true,
		EncoderOpt:   encoder.WithComments(encoder.CommentsDocs | encoder.CommentsExamples),
		KubeletImage: constants.KubeletImage, APIServerImage: constants.KubernetesAPIServerImage, ProxyImage: constants.KubeProxyImage,
		ControllerManagerImage: constants.KubernetesControllerManagerImage, SchedulerImage: constants.KubernetesSchedulerImage,
	})
	return printed.text.String(), err
}

// lines ends each write with a new line. Talos checks the nodes' versions at the same time, so writes are serialized.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, _ := l.text.Write(p)
	l.text.WriteByte('\n')
	return n, nil
}

func TestUpgradeK8s_ADryRunSaysWhatItWouldDoAndChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 1)
	w.kubernetesAPI([]byte{11}, []byte{21})
	started := func() (events int) {
		for _, host := range []byte{11, 21} {
			infos, err := w.admin(host).ServiceInfo(w.ctx, "kubelet")
			require.NoError(t, err)
			events += len(infos[0].Service.Events.Events)
		}
		return events
	}
	before := started()
	printed, err := w.upgradeDryRun("1.35.8", "1.35.9")
	require.NoError(t, err, printed)
	cp, worker := w.addr(11).String(), w.addr(21).String()
	at := 0
	for _, line := range []string{
		`discovered controlplane nodes ["` + cp + `"]`, `discovered worker nodes ["` + worker + `"]`,
		`Talos version 1.12.7 is compatible with Kubernetes version 1.35.9`,
		` > "` + cp + `": pre-pulling registry.k8s.io/kube-apiserver:v1.35.9`,
		` > "` + worker + `": pre-pulling ghcr.io/siderolabs/kubelet:v1.35.9`,
		`updating "kube-apiserver" to version "1.35.9"`, ` > update kube-apiserver: v1.35.8 -> 1.35.9`, ` > skipped in dry-run`,
		`updating "kube-controller-manager" to version "1.35.9"`, `updating "kube-scheduler" to version "1.35.9"`,
		`updating kube-proxy to version "1.35.9"`, `updating kubelet to version "1.35.9"`, ` > "` + worker + `": starting update`,
		`updating manifests`, ` > processing manifest v1.ConfigMap/kube-system/kubeconfig-in-cluster`, ` < dry run, change skipped`,
	} {
		next := strings.Index(printed[at:], line+"\n")
		require.GreaterOrEqual(t, next, 0, "%q is missing after its predecessor in:\n%s", line, printed)
		at += next
	}
	require.NotContains(t, printed, "not implemented")
	require.Equal(t, before, started(), "the configuration that it sends back restarts no kubelet")
	require.Equal(t, talos.StageRunning, w.status(11).Stage)
}

func TestUpgradeK8s_IsRefusedWhereTalosRefusesIt(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
		c.ClusterConfig.APIServerConfig.ExtraArgsConfig = v1alpha1.Args{
			"feature-gates": v1alpha1.NewArgValue("SizeMemoryBackedVolumes=true", nil)}
	})
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	w.kubernetesAPI([]byte{11}, nil)
	_, err := w.upgradeDryRun("1.34.2", "1.35.9")
	require.ErrorContains(t, err, "REMOVED FEATURE GATE")
	require.ErrorContains(t, err, "SizeMemoryBackedVolumes")
	_, err = w.upgradeDryRun("1.35.8", "1.36.0")
	require.ErrorContains(t, err, "version of Kubernetes 1.36.0 is too new to be used with Talos 1.12.7")

	w.breaks(fault.ImagePull, "kube-scheduler:v1.35.9", "")
	_, err = w.upgradeDryRun("1.35.8", "1.35.9")
	require.Equal(t, codes.NotFound, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "error pre-pulling registry.k8s.io/kube-scheduler:v1.35.9 on "+w.addr(11).String())
}

func TestImagePull_AsksForTheNamespaceAndKeepsWhatItHas(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11)
	w.eventually("its API is up", func() bool { return w.service(11, "apid").Healthy && w.service(11, "cri").Healthy })
	c := w.admin(11)
	require.Equal(t, codes.InvalidArgument, status.Code(c.ImagePull(w.ctx, common.ContainerdNamespace_NS_UNKNOWN, "x")))
	require.NoError(t, c.ImagePull(w.ctx, common.ContainerdNamespace_NS_CRI, "example.com/x:1"))
	w.breaks(fault.ImagePull, "example.com/x", "")
	require.NoError(t, c.ImagePull(w.ctx, common.ContainerdNamespace_NS_CRI, "example.com/x:1"), "it is there")
	require.Equal(t, codes.NotFound, status.Code(c.ImagePull(w.ctx, common.ContainerdNamespace_NS_SYSTEM, "example.com/x:1")))
}

func TestArguments_ThatTalosKeepsForItselfStartNoComponent(t *testing.T) {
	for version, deniesTLS := range map[string]bool{"v1.13.9": false, "v1.14.1": true} {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t)
			w.runs(version)
			w.cluster(1, 0)
			argue := func(of *v1alpha1.Args, flag, value string) {
				*of = v1alpha1.Args{flag: v1alpha1.NewArgValue(value, nil)}
			}
			_, err := w.admin(11).ApplyConfiguration(w.ctx, auto(w.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
				argue(&c.ClusterConfig.APIServerConfig.ExtraArgsConfig, "tls-min-version", "VersionTLS12")
			})))
			require.NoError(t, err, "its validation does not know")
			refused := func() bool {
				return strings.Contains(w.dmesg(11), `static pod kube-apiserver: extra arg "tls-min-version" is not allowed`)
			}
			runs := func() bool {
				k, runs := w.kube.kubelet(node(11))
				return runs && slices.ContainsFunc(k.StaticPods(), func(p talos.StaticPod) bool { return p.Name == k8s.APIServerID && p.Runs })
			}
			if deniesTLS {
				w.eventually("Talos makes no pod", refused)
				require.True(t, runs(), "the former pod stays")
			} else {
				w.eventually("Talos passes it on", func() bool { return runs() && !refused() })
			}
		})
	}
	w := newWorld(t)
	w.runs("v1.14.1")
	w.install(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
		c.ClusterConfig.EtcdConfig.EtcdExtraArgs = v1alpha1.Args{"feature-gates": v1alpha1.NewArgValue("InitialCorruptCheck=true", nil)}
	})
	w.bootstrap(11)
	w.eventually("etcd does not start", func() bool {
		return strings.Contains(w.service(11, "etcd").Message, `extra arg "feature-gates" is not allowed`)
	})
}

func TestManifests_AndStaticPodsAreResourcesOfEveryControlPlane(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11) // not bootstrapped
	w.eventually("its API is up", func() bool { return w.service(11, "apid").Healthy })
	require.Equal(t, []string{"11-kube-config-in-cluster"}, w.manifests(11))
	pod := resource[*k8s.StaticPod](w, 11, k8s.NamespaceName, k8s.APIServerID).TypedSpec().Pod
	container := pod["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	require.Contains(t, container["command"], "--enable-admission-plugins=NodeRestriction")
}

// manifests are the ids of a node's bootstrap manifests.
func (w *world) manifests(host byte) (ids []string) {
	w.t.Helper()
	list, err := safe.StateListAll[*k8s.Manifest](w.ctx, w.admin(host).COSI)
	require.NoError(w.t, err)
	for r := range list.All() {
		ids = append(ids, r.Metadata().ID())
	}
	return ids
}
