package world

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/home"
	"github.com/slipway-platform/slipway/lab/kube/kubetest"
	"github.com/slipway-platform/slipway/lab/kube/process"
	"github.com/slipway-platform/slipway/lab/latency"
	"github.com/slipway-platform/slipway/lab/talos"
	"github.com/slipway-platform/slipway/lab/vm"
	"github.com/slipway-platform/slipway/lab/workload/services"
)

// loopbacks are addresses that exist already.
type loopbacks struct{}

func (loopbacks) Add(netip.Prefix) error    { return nil }
func (loopbacks) Remove(netip.Prefix) error { return nil }

// site is a cluster of simulated nodes on loopback addresses with a real control plane, without the other parts of a lab.
type site struct {
	*World
	t      *testing.T
	bundle *secrets.Bundle
	input  *generate.Input
	ctx    context.Context
}

func newSite(t *testing.T) *site {
	w := &World{Options: Options{Home: &home.Home{Dir: t.TempDir()}, Tools: Tools{Programs: map[string]string{"kube": kubetest.Binary(t, "kube")}},
		Latency: latency.Default(), Log: slog.New(slog.DiscardHandler)}, faults: &fault.Set{}, processes: &process.Table{},
		onePassword: &services.Connect{}}
	w.kube = &kubernetes{world: w, clusters: map[string]*cluster{}, indices: map[string]int{}}
	require.NoError(t, os.MkdirAll(w.Home.Clusters(), 0o700))
	w.site = talos.New(talos.Config{Addresses: loopbacks{}, Kubernetes: w.kube, Latency: w.Latency, Faults: w.faults})
	s := &site{World: w, t: t}
	t.Cleanup(func() {
		w.site.Close()
		w.kube.close()
	})
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	var err error
	s.bundle, err = secrets.NewBundle(secrets.NewFixedClock(time.Now()), config.TalosVersion1_12)
	require.NoError(t, err)
	s.input, err = generate.NewInput("test", "https://"+address(11).String()+":6443", kubetest.Version[1:],
		generate.WithVersionContract(config.TalosVersion1_12),
		generate.WithSecretsBundle(s.bundle), generate.WithInstallDisk("/dev/sda"),
		generate.WithInstallImage("factory.talos.dev/nocloud-installer/abc:v1.13.9"))
	require.NoError(t, err)
	return s
}

// address is an address that only this process uses.
func address(host byte) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 74, byte(os.Getpid()), host})
}

func (s *site) powerOn(host byte) {
	s.site.PowerOn(vm.Hardware{Host: "pve1", ID: int(host), Name: fmt.Sprintf("vm-%d", host), UEFI: true, BootOrder: []string{"scsi0", "ide3"},
		NICs: []vm.NIC{{MAC: fmt.Sprintf("BC:24:11:00:02:%02X", host)}}, Disks: map[string]*vm.Disk{"scsi0": {Size: 20 << 30}},
		ISO:       &vm.Image{Version: "v1.13.9", Schematic: "abc", Platform: "nocloud"},
		CloudInit: &vm.CloudInit{Addresses: []netip.Prefix{netip.PrefixFrom(address(host), 24)}}})
}

func (s *site) config(kind configmachine.Type, host byte, change func(*v1alpha1.Config)) []byte {
	base, err := s.input.Config(kind)
	require.NoError(s.t, err)
	patched, err := base.PatchV1Alpha1(func(c *v1alpha1.Config) error {
		c.ClusterConfig.ClusterNetwork.CNI = &v1alpha1.CNIConfig{CNIName: "none"}
		c.MachineConfig.MachineNetwork = &v1alpha1.NetworkConfig{NetworkInterfaces: v1alpha1.NetworkDeviceList{{ //nolint:staticcheck // see talos
			DeviceInterface: "eth0", DeviceAddresses: []string{netip.PrefixFrom(address(host), 24).String()}}}}
		change(c)
		return nil
	})
	require.NoError(s.t, err)
	name := network.NewHostnameConfigV1Alpha1()
	name.ConfigHostname = fmt.Sprintf("node-%d", host)
	docs := slices.DeleteFunc(patched.Documents(), func(d configconfig.Document) bool { return d.Kind() == network.HostnameKind })
	whole, err := container.New(append(docs, name)...)
	require.NoError(s.t, err)
	out, err := whole.Bytes()
	require.NoError(s.t, err)
	return out
}

func (s *site) eventually(what string, is func() bool) {
	s.t.Helper()
	require.Eventually(s.t, is, 90*time.Second, 100*time.Millisecond, what)
}

// install applies a first configuration.
func (s *site) install(kind configmachine.Type, host byte) {
	c, err := client.New(s.ctx, client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}), client.WithEndpoints(address(host).String()))
	require.NoError(s.t, err)
	defer c.Close()
	s.eventually("the first configuration is taken", func() bool {
		_, err := c.ApplyConfiguration(s.ctx, &machine.ApplyConfigurationRequest{Data: s.config(kind, host, func(*v1alpha1.Config) {})})
		return err == nil
	})
}

func (s *site) admin(host byte) *client.Client {
	crt, err := s.bundle.GenerateTalosAPIClientCertificateWithTTL(role.MakeSet(role.Admin), time.Hour)
	require.NoError(s.t, err)
	c, err := client.New(s.ctx, client.WithConfig(clientconfig.NewConfig("test", []string{address(host).String()}, s.bundle.Certs.OS.Crt, crt)))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// api is a client of the API server that answers on the control plane's address.
func (s *site) api() clientset.Interface {
	s.kube.mu.Lock()
	defer s.kube.mu.Unlock()
	for _, c := range s.kube.clusters {
		direct := c.RESTConfig()
		direct.Host, direct.Timeout = "https://"+netip.AddrPortFrom(address(11), 6443).String(), 5*time.Second
		api, err := clientset.NewForConfig(direct)
		require.NoError(s.t, err)
		return api
	}
	return nil
}

func (s *site) node(host byte) *corev1.Node {
	api := s.api()
	if api == nil {
		return &corev1.Node{}
	}
	n, err := api.CoreV1().Nodes().Get(s.ctx, fmt.Sprintf("node-%d", host), metav1.GetOptions{})
	if err != nil {
		return &corev1.Node{}
	}
	return n
}

func TestLifecycle_OfSimulatedNodesOnTheRealControlPlane(t *testing.T) {
	s := newSite(t)
	s.powerOn(11)
	s.powerOn(21)
	s.install(configmachine.TypeControlPlane, 11)
	s.install(configmachine.TypeWorker, 21)
	cp := s.admin(11)
	s.eventually("bootstrap is taken", func() bool { return cp.Bootstrap(s.ctx, &machine.BootstrapRequest{}) == nil })
	s.eventually("both nodes are there", func() bool {
		return s.node(11).Name != "" && s.node(21).Status.NodeInfo.KubeletVersion == kubetest.Version
	})

	before := s.node(21).Status.NodeInfo.BootID
	_, err := s.admin(21).UpgradeWithOptions(s.ctx, client.WithUpgradeImage("factory.talos.dev/nocloud-installer/abc:v1.13.10"))
	require.NoError(t, err)
	s.eventually("Talos cordons the node", func() bool { return s.node(21).Annotations["talos.dev/cordoned"] == "true" })
	s.eventually("the upgraded node is schedulable again", func() bool {
		n := s.node(21)
		return n.Status.NodeInfo.OSImage == "Talos (v1.13.10)" && n.Status.NodeInfo.BootID != before && !n.Spec.Unschedulable &&
			n.Annotations["talos.dev/cordoned"] == ""
	})

	require.NoError(t, errOf(cp.ApplyConfiguration(s.ctx, &machine.ApplyConfigurationRequest{Mode: machine.ApplyConfigurationRequest_AUTO,
		Data: s.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
			c.ClusterConfig.APIServerConfig.ContainerImage = "registry.k8s.io/kube-apiserver:" + kubetest.Later
			c.MachineConfig.MachineKubelet.KubeletImage = "ghcr.io/siderolabs/kubelet:" + kubetest.Later
		})})))
	s.eventually("API server, its pod and the kubelet have the new version", func() bool {
		v, err := s.api().Discovery().ServerVersion()
		pod, err2 := s.api().CoreV1().Pods("kube-system").Get(s.ctx, "kube-apiserver-node-11", metav1.GetOptions{})
		return err == nil && err2 == nil && v.GitVersion == kubetest.Later &&
			strings.HasSuffix(pod.Spec.Containers[0].Image, ":"+kubetest.Later) &&
			pod.Status.Phase == corev1.PodRunning && s.node(11).Status.NodeInfo.KubeletVersion == kubetest.Later
	})

	r, err := cp.EtcdSnapshot(s.ctx, &machine.EtcdSnapshotRequest{})
	require.NoError(t, err)
	snapshot, err := io.ReadAll(r)
	require.NoError(t, err)
	uid := s.node(21).UID
	require.NoError(t, errOf(cp.ResetGenericWithResponse(s.ctx, &machine.ResetRequest{Reboot: true})))
	s.kube.mu.Lock()
	clear(s.kube.clusters)
	s.kube.mu.Unlock()
	s.install(configmachine.TypeControlPlane, 11)
	cp = s.admin(11)
	s.eventually("the snapshot is taken", func() bool {
		_, err := cp.EtcdRecover(s.ctx, strings.NewReader(string(snapshot)))
		return err == nil && cp.Bootstrap(s.ctx, &machine.BootstrapRequest{RecoverEtcd: true}) == nil
	})
	s.eventually("the worker is the Node that it was", func() bool { return s.node(21).UID == uid })
}

func errOf[T any](_ T, err error) error { return err }
