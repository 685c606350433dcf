package talos_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	res "github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/latency"
	"github.com/slipway-platform/slipway/lab/talos"
	"github.com/slipway-platform/slipway/lab/talos/service"
	"github.com/slipway-platform/slipway/lab/vm"
)

const agent = "siderolabs/qemu-guest-agent"

// world is a site on loopback addresses with a fake Kubernetes.
type world struct {
	t      testing.TB
	site   *talos.Site
	faults *fault.Set
	kube   *fakeKubernetes
	links  *fakeAddresses
	net    netip.Addr // 127.x.y.0, only for this test
	port   int
	input  *generate.Input
	iso    string // version of Talos in the boot image
	ctx    context.Context
	askers map[byte]*client.Client // of etcdStatus, by host
}

var lastNet atomic.Uint32

// fast returns latencies for tests: short, and in the order of the real ones.
func fast() latency.Latencies {
	return latency.Latencies{
		Task: 2 * time.Millisecond, Download: 2 * time.Millisecond, Boot: 15 * time.Millisecond, Install: 15 * time.Millisecond,
		Service:  10 * time.Millisecond,
		EtcdJoin: 15 * time.Millisecond, ImagePull: time.Millisecond, PodStart: time.Millisecond, VIPFailover: 30 * time.Millisecond,
		DrainLimit: 2 * time.Second,
		SlowFactor: 2,
	}
}

// bundleOnce creates the machine secrets that all tests share, because their RSA key takes seconds.
var bundleOnce = sync.OnceValues(func() (*secrets.Bundle, error) {
	contract, err := config.ParseContractFromVersion("v1.12.7")
	if err != nil {
		return nil, err
	}
	return secrets.NewBundle(secrets.NewFixedClock(time.Now()), contract)
})

func newWorld(t testing.TB, adjust ...func(*talos.Config)) *world {
	t.Helper()
	n := lastNet.Add(1)
	w := &world{
		t: t, faults: &fault.Set{}, kube: newFakeKubernetes(), links: &fakeAddresses{up: map[netip.Prefix]bool{}},
		askers: map[byte]*client.Client{},
		net:    netip.AddrFrom4([4]byte{127, 71, byte(n), 0}), port: freePort(t), iso: "v1.12.7",
	}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	cfg := talos.Config{
		Addresses: w.links, Kubernetes: w.kube, Latency: fast(), Faults: w.faults,
		Listen: func(a netip.Addr) (net.Listener, error) {
			if a.Is6() { // a test has one IPv6 loopback address: it listens there, but nobody connects
				return net.Listen("tcp", "127.0.0.1:0")
			}
			return net.Listen("tcp", net.JoinHostPort(a.String(), fmt.Sprint(w.port)))
		},
	}
	for _, f := range adjust {
		f(&cfg)
	}
	w.site = talos.New(cfg)
	t.Cleanup(w.site.Close)
	contract, err := config.ParseContractFromVersion("v1.12.7")
	require.NoError(t, err)
	bundle, err := bundleOnce()
	require.NoError(t, err)
	w.input, err = generate.NewInput("test", "https://"+w.vip().String()+":6443", "1.35.8",
		generate.WithVersionContract(contract), generate.WithSecretsBundle(bundle),
		generate.WithInstallDisk("/dev/sda"), generate.WithInstallImage("factory.talos.dev/nocloud-installer/abc:v1.12.7"))
	require.NoError(t, err)
	return w
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (w *world) addr(host byte) netip.Addr {
	a := w.net.As4()
	a[3] = host
	return netip.AddrFrom4(a)
}

func (w *world) vip() netip.Addr { return w.addr(10) }

func mac(host byte) string { return fmt.Sprintf("BC:24:11:00:01:%02X", host) }

// hardware is a VM as in the stacks: empty scsi0, ISO, cloud-init with a static address, guest agent.
func (w *world) hardware(host byte) vm.Hardware {
	return vm.Hardware{
		Host: "pve1", ID: 1100 + int(host), Name: fmt.Sprintf("vm-%d", host), Cores: 2, MemoryMiB: 4096, UEFI: true,
		NICs: []vm.NIC{{MAC: mac(host), Bridge: "vmbr0"}}, BootOrder: []string{"scsi0", "ide3"},
		Disks:     map[string]*vm.Disk{"scsi0": {Volume: "local-lvm:disk", Size: 20 << 30}},
		ISO:       &vm.Image{Name: "talos.iso", Version: w.iso, Schematic: "abc", Platform: "nocloud", Extensions: []string{agent}},
		CloudInit: &vm.CloudInit{Addresses: []netip.Prefix{netip.PrefixFrom(w.addr(host), 24)}},
		Agent:     true,
	}
}

// config is a machine configuration for a host, changed by the test.
func (w *world) config(kind configmachine.Type, host byte, change ...func(*v1alpha1.Config)) []byte {
	w.t.Helper()
	base, err := w.input.Config(kind)
	require.NoError(w.t, err)
	provider, err := base.PatchV1Alpha1(func(c *v1alpha1.Config) error {
		device := &v1alpha1.Device{
			DeviceSelector:  &v1alpha1.NetworkDeviceSelector{NetworkDeviceHardwareAddress: mac(host)},
			DeviceAddresses: []string{netip.PrefixFrom(w.addr(host), 24).String()},
		}
		if kind == configmachine.TypeControlPlane {
			device.DeviceVIPConfig = &v1alpha1.DeviceVIPConfig{SharedIP: w.vip().String()}
		}
		c.MachineConfig.MachineNetwork = &v1alpha1.NetworkConfig{NetworkInterfaces: v1alpha1.NetworkDeviceList{device}} //nolint:staticcheck // what the stacks render
		for _, f := range change {
			f(c)
		}
		return nil
	})
	require.NoError(w.t, err)
	name := network.NewHostnameConfigV1Alpha1()
	name.ConfigHostname = node(host)
	docs := slices.DeleteFunc(provider.Documents(), func(d configconfig.Document) bool { return d.Kind() == network.HostnameKind })
	whole, err := container.New(append(docs, name)...)
	require.NoError(w.t, err)
	out, err := whole.Bytes()
	require.NoError(w.t, err)
	return out
}

func node(host byte) string { return fmt.Sprintf("node-%d", host) }

// eager makes a client retry soon, because the machines of a test boot in milliseconds.
var eager = client.WithGRPCDialOptions(grpc.WithConnectParams(grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1.1, MaxDelay: 20 * time.Millisecond},
	MinConnectTimeout: 5 * time.Second,
}))

// insecure is a client without certificate.
func (w *world) insecure(host byte) *client.Client {
	w.t.Helper()
	c, err := client.New(w.ctx, client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}), client.WithEndpoints(w.endpoint(host)), eager)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (w *world) endpoint(host byte) string {
	return net.JoinHostPort(w.addr(host).String(), fmt.Sprint(w.port))
}

// admin is machinery's client over mTLS; the default role is os:admin.
func (w *world) admin(host byte, roles ...role.Role) *client.Client {
	w.t.Helper()
	if len(roles) == 0 {
		roles = []role.Role{role.Admin}
	}
	crt, err := w.input.Options.SecretsBundle.GenerateTalosAPIClientCertificateWithTTL(role.MakeSet(roles...), time.Hour)
	require.NoError(w.t, err)
	cc := clientconfig.NewConfig("test", []string{w.endpoint(host)}, w.input.Options.SecretsBundle.Certs.OS.Crt, crt)
	c, err := client.New(w.ctx, client.WithConfig(cc), eager)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// eventually waits for a condition.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	require.Eventually(w.t, ok, time.Minute, 3*time.Millisecond, what)
}

// never is that something does not happen for a time. Nothing of it runs on when the test ends, as it does with require.Never.
func (w *world) never(d time.Duration, what string, happens func() bool) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(d); ; {
		require.False(w.t, happens(), what)
		select {
		case <-tick.C:
		case <-end:
			return
		}
	}
}

func (w *world) status(host byte) talos.MachineStatus {
	for _, m := range w.site.Machines() {
		if m.VMID == 1100+int(host) {
			return m
		}
	}
	return talos.MachineStatus{}
}

func (w *world) stage(host byte, stage talos.Stage) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("host %d reaches %s", host, stage), func() bool { return w.status(host).Stage == stage })
}

func (w *world) service(host byte, id string) service.Status {
	for _, s := range w.status(host).Services {
		if s.ID == id {
			return s
		}
	}
	return service.Status{}
}

// with adds documents to a machine configuration.
func (w *world) with(data []byte, docs ...configconfig.Document) []byte {
	w.t.Helper()
	provider, err := configloader.NewFromBytes(data)
	require.NoError(w.t, err)
	whole, err := container.New(append(provider.Documents(), docs...)...)
	require.NoError(w.t, err)
	out, err := whole.Bytes()
	require.NoError(w.t, err)
	return out
}

// boots powers a machine on, applies a configuration and waits until its API answers.
func (w *world) boots(hw vm.Hardware, data []byte) vm.Guest {
	w.t.Helper()
	host := byte(hw.ID - 1100)
	g := w.site.PowerOn(hw)
	w.stage(host, talos.StageMaintenance)
	w.apply(host, data)
	w.eventually("its API is up", func() bool { return w.service(host, "apid").Healthy })
	return g
}

// resource reads one resource of a configured node.
func resource[T res.Resource](w *world, host byte, namespace, id string) T {
	w.t.Helper()
	var zero T
	typed, ok := any(zero).(meta.ResourceDefinitionProvider)
	require.True(w.t, ok)
	r, err := safe.StateGet[T](w.ctx, w.admin(host).COSI, res.NewMetadata(namespace, typed.ResourceDefinition().Type, id,
		res.VersionUndefined))
	require.NoError(w.t, err)
	return r
}

// listed reads all resources of a type of a configured node.
func listed[T meta.ResourceWithRD](w *world, host byte) (out []T) {
	w.t.Helper()
	list, err := safe.StateListAll[T](w.ctx, w.admin(host).COSI)
	require.NoError(w.t, err)
	for r := range list.All() {
		out = append(out, r)
	}
	return out
}

// install powers a machine on and applies a configuration in maintenance mode.
func (w *world) install(kind configmachine.Type, host byte, change ...func(*v1alpha1.Config)) (vm.Guest, vm.Hardware) {
	w.t.Helper()
	hw := w.hardware(host)
	g := w.site.PowerOn(hw)
	w.stage(host, talos.StageMaintenance)
	w.apply(host, w.config(kind, host, change...))
	return g, hw
}

// apply retries until the maintenance service answers, as the provider does.
func (w *world) apply(host byte, data []byte) {
	w.t.Helper()
	c := w.insecure(host)
	w.eventually("configuration is taken", func() bool {
		_, err := c.ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{Data: data})
		return err == nil
	})
}

// cluster starts control planes at .11 and up and workers at .21 and up, bootstraps, and waits until all run.
func (w *world) cluster(controlPlanes, workers int) {
	w.t.Helper()
	var hosts []byte
	for i := range controlPlanes {
		hosts = append(hosts, byte(11+i))
		w.install(configmachine.TypeControlPlane, byte(11+i))
	}
	for i := range workers {
		hosts = append(hosts, byte(21+i))
		w.install(configmachine.TypeWorker, byte(21+i))
	}
	w.bootstrap(11)
	for _, h := range hosts {
		w.stage(h, talos.StageRunning)
	}
}

func (w *world) bootstrap(host byte) {
	w.t.Helper()
	c := w.admin(host)
	w.eventually("bootstrap is taken", func() bool { return c.Bootstrap(w.ctx, &machine.BootstrapRequest{}) == nil })
}
